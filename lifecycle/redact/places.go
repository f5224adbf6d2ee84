package redact

import (
	"cmp"
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
	groupEscape // and what a comma begins without a blank
	firstLong   // of the others
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
	groupOf := divide(slices.Compact(long), groups-firstLong)
	t := new([256]uint64)
	for _, r := range all {
		group := cmp.Or(r.apart, len(r.trigger)-1)
		if r.apart == 0 && len(r.trigger) > 2 {
			group = firstLong + groupOf[r.trigger[:3]]
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

// A part is a group of first three bytes of triggers.
type part struct {
	count [3][256]int
	sum   [3]float64 // how often one of the bytes stands in a text, for each place
}

// change returns how much more often three bytes that the part takes stand in a text with by more of x, 1 or -1.
func (p *part) change(x string, by int) float64 {
	sum := p.sum
	for k := range 3 {
		if c := x[k]; p.count[k][c] == 0 || p.count[k][c]+by == 0 {
			sum[k] += float64(by) * often[c]
		}
	}
	return sum[0]*sum[1]*sum[2] - p.sum[0]*p.sum[1]*p.sum[2]
}

func (p *part) add(x string, by int) {
	for k := range 3 {
		c := x[k]
		if p.count[k][c] == 0 || p.count[k][c]+by == 0 {
			p.sum[k] += float64(by) * often[c]
		}
		p.count[k][c] += by
	}
}

// divide puts the sorted first three bytes of triggers into n parts, so that three bytes of the same part stand in a
// text as rarely as can be: each goes where it does the least, until none goes.
func divide(all []string, n int) map[string]int {
	const maxPasses, least = 10, 1e-12
	parts, of := make([]part, n), map[string]int{}
	for i, x := range all {
		of[x] = i * n / len(all)
		parts[of[x]].add(x, 1)
	}
	for moved, pass := true, 0; moved && pass < maxPasses; pass++ {
		moved = false
		for _, x := range all {
			from := of[x]
			to, best := from, -parts[from].change(x, -1)-least
			for k := range parts {
				if more := parts[k].change(x, 1); k != from && more < best {
					to, best = k, more
				}
			}
			if to != from {
				parts[from].add(x, -1)
				parts[to].add(x, 1)
				of[x], moved = to, true
			}
		}
	}
	return of
}

// often says about how often a byte stands in prose and in programs.
var often = func() (t [256]float64) {
	for c := range t {
		t[c] = 0.0003
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
}()
