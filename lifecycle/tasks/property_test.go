package tasks_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/plan"
)

// The same examples in every run; -rapid.seed 0 draws others.
func init() { _ = flag.Set("rapid.seed", "1") }

// drawPlan draws a plan from few names, so that two plans have much in common:
// tasks move, vanish, come back, gain children, and headings change their level.
func drawPlan(t *rapid.T, label string) *plan.Plan {
	var b strings.Builder
	b.WriteString("# Title\n\n")
	depth := -1
	for i := range rapid.IntRange(0, 12).Draw(t, label+" lines") {
		name := rapid.SampledFrom([]string{"A", "B", "C", "D"}).Draw(t, fmt.Sprint(label, " name ", i))
		if rapid.IntRange(0, 4).Draw(t, fmt.Sprint(label, " heading ", i)) == 0 {
			level := rapid.IntRange(2, 4).Draw(t, fmt.Sprint(label, " level ", i))
			fmt.Fprintf(&b, "\n%s %s\n\n", strings.Repeat("#", level), name)
			depth = -1
			continue
		}
		depth = rapid.IntRange(0, depth+1).Draw(t, fmt.Sprint(label, " depth ", i))
		box := rapid.SampledFrom([]string{" ", "x"}).Draw(t, fmt.Sprint(label, " box ", i))
		fmt.Fprintf(&b, "%s- [%s] %s\n", strings.Repeat("  ", depth), box, name)
	}
	return plan.Parse([]byte(b.String()))
}

// TestReconcileTree: whatever a State knew and whatever happened to the plan,
// the State then has the plan's tree, parents follow their children, and what
// storage writes of it can be read.
func TestReconcileTree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		st := empty(t)
		all := []session.TaskState{session.TaskPending, session.TaskInProgress, session.TaskComplete, session.TaskFailed, session.TaskSkipped}
		for round := range 3 {
			p := drawPlan(t, fmt.Sprint("plan ", round))
			when := tasks.When(rapid.IntRange(0, 2).Draw(t, "when"))
			first := st.NumTasks() == 0
			res, err := tasks.Reconcile(st, p, when)
			require.NoError(t, err)
			if first {
				require.Empty(t, res.Notes)
			}
			requireTree(t, p, res.State)
			requireNoted(t, res)
			for id := range res.Boxes {
				pt, ok := p.Task(id)
				require.True(t, ok && pt.Box >= 0, "box of %s", id)
				require.NotEqual(t, pt.Checked, res.Boxes[id], "box of %s is so already", id)
			}
			var r wire.Replay
			require.NoError(t, r.Load(wire.EncodeState(res.State, session.Mark{Seq: 1}), wire.EncodeMetrics(res.State, session.Mark{Seq: 1})))

			e := res.State.Edit()
			for _, id := range tasks.Leaves(res.State, firstRoot(res.State)) {
				state := rapid.SampledFrom(all).Draw(t, "state of "+id)
				tasks.Set(e, id, func(t *session.Task) { t.State = state })
			}
			st, err = e.State()
			require.NoError(t, err)
		}
	})
}

func firstRoot(st *session.State) string {
	if len(st.Roots()) == 0 {
		return ""
	}
	return st.Roots()[0]
}

func requireTree(t *rapid.T, p *plan.Plan, st *session.State) {
	require.True(t, slices.Equal(p.Roots(), st.Roots()), "%v and %v", p.Roots(), st.Roots())
	require.Equal(t, len(p.Tasks()), st.NumTasks())
	var order []string
	for task := range st.All() {
		order = append(order, task.ID)
		pt, ok := p.Task(task.ID)
		require.True(t, ok, task.ID)
		require.Equal(t, pt.Name, task.Name)
		require.Equal(t, pt.Kind, string(task.Kind))
		require.Equal(t, pt.Parent, task.Parent)
		require.True(t, slices.Equal(pt.Children, task.Children), task.ID)
		if len(task.Children) == 0 {
			continue
		}
		complete := true
		for _, c := range task.Children {
			child, _ := st.Task(c)
			complete = complete && child.State == session.TaskComplete
		}
		require.Equal(t, complete, task.State == session.TaskComplete, task.ID)
	}
	var want []string
	for _, pt := range p.Tasks() {
		want = append(want, pt.ID)
	}
	require.Equal(t, want, order)
}

// requireNoted says that no difference is noted twice.
func requireNoted(t *rapid.T, res tasks.Result) {
	seen := map[tasks.Note]bool{}
	for _, n := range res.Notes {
		require.False(t, seen[n], "told twice: %s", n)
		seen[n] = true
	}
}
