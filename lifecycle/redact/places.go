package redact

import (
	"cmp"
	"math"
	"slices"
)

// groups is how many the triggers are put into. The first two are for triggers of one byte and of two.
const groups = 21

// The groups of triggers that are apart: what ends the cells of a table or begins a call would make all that is with it
// frequent.
const (
	groupShort = 2 + iota // a letter and a byte behind a cell
	groupLong             // two bytes behind it
	groupCall
	groupEscape
	firstLong // of the others
)

// placesOf says of each byte in which groups it is the first byte of a trigger, the second one
// and the third one: groups bits for each. A trigger that is shorter may have any byte there. Only
// where three bytes in a row have a group in common a trigger may begin, which is so at
// one place of twenty in most text, and eight places are asked at once.
func placesOf(all []rule) *[256]uint64 {
	var long []string
	for _, r := range all {
		if len(r.trigger) > 2 && r.apart == 0 {
			long = append(long, r.trigger[:3])
		}
	}
	slices.Sort(long)
	long = slices.Compact(long)
	ends := parts(long, groups-firstLong)
	t := new([256]uint64)
	for _, r := range all {
		group := cmp.Or(r.apart, len(r.trigger)-1)
		if r.apart == 0 && len(r.trigger) > 2 {
			at, _ := slices.BinarySearch(long, r.trigger[:3])
			group, _ = slices.BinarySearch(ends, at+1)
			group += firstLong
		}
		for k := range 3 {
			bit := uint64(1) << (k*groups + group)
			if k < len(r.trigger) {
				t[r.trigger[k]] |= bit
				continue
			}
			for c := range t {
				t[c] |= bit
			}
		}
	}
	return t
}

// parts cuts the sorted first three bytes of triggers into at most n parts, so that what is of the same part in all three
// places stands in a text as rarely as can be. It returns the ends of the parts.
func parts(all []string, n int) (ends []int) {
	often := oftenTable()
	chance := make([][]float64, len(all)) // chance[i][j-i] is that of all[i:j+1]
	for i := range all {
		var has [3][256]bool
		var sum [3]float64
		for _, three := range all[i:] {
			for k := range 3 {
				if c := three[k]; !has[k][c] {
					has[k][c] = true
					sum[k] += often[c]
				}
			}
			chance[i] = append(chance[i], sum[0]*sum[1]*sum[2])
		}
	}
	least, from := make([]float64, len(all)+1), make([][]int, n)
	for j := range least[1:] {
		least[j+1] = math.Inf(1)
	}
	for p := range n {
		next := make([]float64, len(all)+1)
		from[p] = make([]int, len(all)+1)
		for j := range all {
			next[j+1] = math.Inf(1)
			for i := range j + 1 {
				if c := least[i] + chance[i][j-i]; c < next[j+1] {
					next[j+1], from[p][j+1] = c, i
				}
			}
		}
		least = next
	}
	for p, j := n-1, len(all); p >= 0 && j > 0; p-- {
		ends = append(ends, j)
		j = from[p][j]
	}
	slices.Reverse(ends)
	return ends
}

// oftenTable says about how often a byte stands in prose and in programs.
func oftenTable() (t [256]float64) {
	for c := range t {
		t[c] = 0.001
	}
	for _, like := range []struct {
		bytes string
		often float64
	}{{" ", 0.15}, {"etaoinsr", 0.05}, {"\n\tlhdcumpfg", 0.025}, {"_-=:;,.()\"'/", 0.012}, {"bywvkxjqz0123456789", 0.008}, {"ACDEFILMNOPRST", 0.004}} {
		for i := range len(like.bytes) {
			t[like.bytes[i]] = like.often
		}
	}
	return t
}
