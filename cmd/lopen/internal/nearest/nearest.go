// Package nearest finds what somebody who mistyped a name may have meant.
package nearest

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/plan"
)

// maxNear is how many IDs are compared with one that is not there.
const maxNear = 10_000

// Task returns the IDs of a plan's tasks that are nearest to an ID, but one.
func Task(p *plan.Plan, id, but string) []string {
	return ID(id, func(yield func(string) bool) {
		for t := range p.All() {
			if t.ID != but && !yield(t.ID) {
				return
			}
		}
	})
}

// ID returns the IDs of tasks that are nearest to what somebody wrote, with or without
// the names of what is above the task.
func ID(name string, ids iter.Seq[string]) []string {
	full := map[string]string{}
	short := func(yield func(string) bool) {
		for id := range ids {
			end := id
			if n := strings.Count(id, "/") - strings.Count(name, "/"); n > 0 {
				end = strings.Join(strings.Split(id, "/")[n:], "/")
			}
			if _, known := full[end]; known {
				continue
			}
			full[end] = id
			if !yield(end) || len(full) == maxNear {
				return
			}
		}
	}
	near := Of(name, short, 2)
	for i := range near {
		near[i] = full[near[i]]
	}
	return near
}

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
