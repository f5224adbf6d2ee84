// Package nearest finds what somebody who mistyped a name may have meant.
package nearest

import (
	"cmp"
	"iter"
	"slices"
)

// Of returns up to n of the names that take the fewest edits from a name, the nearest
// first, and of equal ones those that come first.
func Of(name string, all iter.Seq[string], n int) []string {
	type candidate struct {
		name  string
		edits int
	}
	var best []candidate
	for other := range all {
		best = append(best, candidate{other, distance(name, other)})
		if len(best) > n {
			slices.SortStableFunc(best, func(a, b candidate) int { return cmp.Compare(a.edits, b.edits) })
			best = best[:n]
		}
	}
	slices.SortStableFunc(best, func(a, b candidate) int { return cmp.Compare(a.edits, b.edits) })
	names := make([]string, len(best))
	for i, c := range best {
		names[i] = c.name
	}
	return names
}

// distance is Levenshtein's, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
