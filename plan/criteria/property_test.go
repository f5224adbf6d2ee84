package criteria_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/plan/convert"
	"github.com/lopen-dev/lopen/plan/criteria"
)

// drawSpec draws a specification of few words, so that criteria are equal, similar and moved.
func drawSpec(t *rapid.T) string {
	var b strings.Builder
	b.WriteString("# Title\n")
	for n := range rapid.IntRange(1, 3).Draw(t, "sections") {
		name := rapid.SampledFrom([]string{"", "A", "B"}).Draw(t, "heading")
		if name != "" {
			fmt.Fprintf(&b, "\n## %s\n\n### Acceptance Criteria\n\n", name)
		} else {
			fmt.Fprintf(&b, "\n## %d. Acceptance Criteria\n\n", n)
		}
		depth := 0
		for i := range rapid.IntRange(1, 5).Draw(t, "criteria") {
			if depth = rapid.IntRange(0, depth+1).Draw(t, "depth"); i == 0 {
				depth = 0
			}
			words := rapid.SliceOfN(rapid.SampledFrom([]string{"log", "in", "out", "mail", "fast", "`x`"}), 1, 4).Draw(t, "words")
			box := rapid.SampledFrom([]string{"[ ]", "[ ]", "[x]"}).Draw(t, "box")
			fmt.Fprintf(&b, "%s- %s %s\n", strings.Repeat("  ", depth), box, strings.Join(words, " "))
			if rapid.IntRange(0, 4).Draw(t, "details") == 0 {
				fmt.Fprintf(&b, "%s  given %s\n", strings.Repeat("  ", depth), words[0])
			}
		}
	}
	return b.String()
}

// An update of any plan to any specification leaves every criterion a task, and nothing that is done
// or a person's own is lost. That is so as well if its record was never written and it is made again.
func TestAnyUpdate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p, record := made(rt, drawSpec(rt))
		boxes := map[string]bool{}
		for _, task := range p.Tasks() {
			if task.Box >= 0 && rapid.IntRange(0, 3).Draw(rt, "done") == 0 {
				boxes[task.ID] = true
			}
		}
		for _, change := range []plan.Change{plan.Boxes(boxes), plan.Add("my own", plan.Place{})} {
			var err error
			p, err = change(p, p)
			require.NoError(rt, err)
		}
		to := drawSpec(rt)
		now := read(rt, to)
		wanted, err := convert.FromCriteria("m", []byte(to))
		require.NoError(rt, err)
		first := update(rt, record, now, p)
		again := update(rt, record, now, first)
		for _, next := range []*plan.Plan{first, again} {
			left := names(next, func(plan.Task) bool { return true })
			for name, n := range names(plan.Parse(wanted), func(t plan.Task) bool { return t.Box >= 0 }) {
				require.GreaterOrEqual(rt, left[name], n, "%q is asked for\n%s", name, next.Source())
			}
			for name, n := range names(p, func(t plan.Task) bool { return t.Checked && len(t.Children) == 0 || t.Name == "my own" }) {
				require.GreaterOrEqual(rt, left[name], n, "%q was done\n%s", name, next.Source())
			}
		}
	})
}

// update returns the plan after an update, whose record says that nothing is left to do.
func update(t *rapid.T, record *criteria.Record, now *criteria.Specification, p *plan.Plan) *plan.Plan {
	next, after, steps, err := record.Compare(now, p).Update(p, untouched)
	require.NoError(t, err)
	require.Empty(t, after.Compare(now, next).Criteria, "%s", next.Source())
	for _, s := range steps {
		if _, is := next.Task(s.Task); s.Task != "" && s.What != criteria.StepRemoved {
			require.True(t, is, "%s %s\n%s", s.What, s.Task, next.Source())
		}
	}
	return next
}

// names counts the tasks of a name.
func names(p *plan.Plan, want func(plan.Task) bool) map[string]int {
	all := map[string]int{}
	for _, task := range p.Tasks() {
		if want(task) {
			all[task.Name]++
		}
	}
	return all
}
