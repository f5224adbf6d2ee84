package tasks_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
)

var day = time.Date(2026, 2, 14, 9, 0, 0, 0, time.UTC)

// lines joins the lines of a plan.
func lines(l ...string) *plan.Plan { return plan.Parse([]byte(strings.Join(l, "\n") + "\n")) }

// empty is the State of a session that has not seen a plan yet.
func empty(t require.TestingT) *session.State {
	id, err := session.NewID("auth", day, 1)
	require.NoError(t, err)
	st, err := session.New(id, day)
	require.NoError(t, err)
	return st
}

// from is the State after the first look at a plan.
func from(t require.TestingT, p *plan.Plan) *session.State {
	res, err := tasks.Reconcile(empty(t), p, tasks.Between)
	require.NoError(t, err)
	return res.State
}

// set gives one task a state and a box that lopen remembers.
func set(id string, state session.TaskState, box session.Box) func(*session.Edit) {
	return func(e *session.Edit) {
		tasks.Set(e, id, func(t *session.Task) { t.State, t.Box = state, box })
	}
}

func states(st *session.State) map[string]session.TaskState {
	got := map[string]session.TaskState{}
	for t := range st.All() {
		got[t.ID] = t.State
	}
	return got
}

func notes(r tasks.Result) []string {
	var got []string
	for _, n := range r.Notes {
		got = append(got, n.String())
	}
	return got
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	type is = map[string]session.TaskState
	type ticks = map[string]bool
	const (
		pending  = session.TaskPending
		complete = session.TaskComplete
		open     = session.BoxOpen
		ticked   = session.BoxTicked
	)
	ab := lines("- [ ] A", "- [ ] B")
	tree := lines("## C", "- [ ] P", "  - [ ] A", "  - [ ] B")
	for name, tt := range map[string]struct {
		before  *plan.Plan // nil: the State has no tasks yet
		edits   []func(*session.Edit)
		after   *plan.Plan
		when    tasks.When
		notes   []string
		boxes   ticks
		unclear []string
		states  is
	}{
		"first time, nothing is noted": {
			after:  lines("- [x] A", "- [ ] B"),
			states: is{"a": complete, "b": pending},
		},
		"first time in the middle of a task": {
			after: lines("- [x] A"), when: tasks.Cut,
			states: is{"a": complete},
		},
		"nothing changed": {
			before: ab, after: ab, states: is{"a": pending, "b": pending},
		},
		"a new task": {
			before: ab, after: lines("- [ ] A", "- [ ] N", "- [ ] B"),
			notes:  []string{"new in the plan: n"},
			states: is{"a": pending, "n": pending, "b": pending},
		},
		"a new task that is ticked": {
			before: ab, after: lines("- [ ] A", "- [ ] B", "- [x] N"),
			notes:  []string{"new in the plan: n"},
			states: is{"a": pending, "b": pending, "n": complete},
		},
		"a task that is gone": {
			before: ab, after: lines("- [ ] B"),
			notes:  []string{"no longer in the plan: a"},
			states: is{"b": pending},
		},
		"a parent that is gone takes its children along in one note": {
			before: tree, after: lines("## C", "- [ ] N"),
			notes:  []string{"reworded, so a new task: c/n (was c/p)"},
			states: is{"c": pending, "c/n": pending},
		},
		"a heading that is gone": {
			before: lines("## C", "- [ ] A", "## D", "- [ ] B"), after: lines("## D", "- [ ] B"),
			notes:  []string{"no longer in the plan: c"},
			states: is{"d": pending, "d/b": pending},
		},
		"a heading that moves out of one that is gone": {
			before: lines("# T", "## C", "- [ ] A", "### D", "- [ ] B"), after: lines("# T", "## D", "- [ ] B"),
			edits:  []func(*session.Edit){set("d/b", complete, open)},
			boxes:  ticks{"d/b": true},
			notes:  []string{"done already, ticked now: d/b", "no longer in the plan: c"},
			states: is{"d": complete, "d/b": complete},
		},
		"everything is gone": {
			before: tree, after: lines("nothing"),
			notes:  []string{"no longer in the plan: c"},
			states: is{},
		},
		"reworded": {
			before: ab, after: lines("- [ ] A better", "- [ ] B"),
			edits:  []func(*session.Edit){set("a", session.TaskFailed, open)},
			notes:  []string{"reworded, so a new task: a-better (was a)"},
			states: is{"a-better": pending, "b": pending},
		},
		"one gone and another new elsewhere are not one reworded": {
			before: ab, after: lines("- [ ] B", "- [ ] N"),
			notes:  []string{"new in the plan: n", "no longer in the plan: a"},
			states: is{"b": pending, "n": pending},
		},
		"moved, with what is known of it": {
			before: ab, after: lines("- [ ] B", "- [x] A"),
			edits:  []func(*session.Edit){set("a", complete, ticked)},
			states: is{"b": pending, "a": complete},
		},
		"ticked by hand": {
			before: ab, after: lines("- [x] A", "- [ ] B"),
			notes:  []string{"ticked by hand, counts as done: a"},
			states: is{"a": complete, "b": pending},
		},
		"a failed one ticked by hand": {
			before: ab, after: lines("- [x] A", "- [ ] B"),
			edits:  []func(*session.Edit){set("a", session.TaskFailed, open)},
			notes:  []string{"ticked by hand, counts as done: a"},
			states: is{"a": complete, "b": pending},
		},
		"unticked by hand": {
			before: lines("- [x] A", "- [x] B"), after: lines("- [x] A", "- [ ] B"),
			notes:  []string{"unticked by hand, runs again: b"},
			states: is{"a": complete, "b": pending},
		},
		"ticked while the command ran": {
			before: ab, after: lines("- [x] A", "- [ ] B"), when: tasks.During,
			notes:  []string{"its box was changed while the command ran, set back: a; if it was you: lopen plan tick auth a"},
			boxes:  ticks{"a": false},
			states: is{"a": pending, "b": pending},
		},
		"unticked while the command ran": {
			before: lines("- [x] A"), after: lines("- [ ] A"), when: tasks.During,
			notes:  []string{"its box was changed while the command ran, set back: a; if it was you: lopen plan untick auth a"},
			boxes:  ticks{"a": true},
			states: is{"a": complete},
		},
		"a parent ticked while the command ran": {
			before: tree, after: lines("## C", "- [x] P", "  - [ ] A", "  - [ ] B"), when: tasks.During,
			notes:  []string{"its box was changed while the command ran, set back: c/p; if it was you: lopen plan tick auth c/p"},
			boxes:  ticks{"c/p": false},
			states: is{"c": pending, "c/p": pending, "c/p/a": pending, "c/p/b": pending},
		},
		"new while the command ran": {
			before: ab, after: lines("- [ ] A", "- [ ] B", "- [ ] N"), when: tasks.During,
			notes:  []string{"new in the plan: n"},
			states: is{"a": pending, "b": pending, "n": pending},
		},
		"new and ticked while the command ran": {
			before: ab, after: lines("- [ ] A", "- [ ] B", "- [x] N"), when: tasks.During,
			notes:  []string{"new in the plan: n", "its box was changed while the command ran, set back: n; if it was you: lopen plan tick auth n"},
			boxes:  ticks{"n": false},
			states: is{"a": pending, "b": pending, "n": pending},
		},
		"reworded and ticked while the command ran": {
			before: ab, after: lines("- [x] A, see a.go", "- [ ] B"), when: tasks.Cut,
			notes: []string{"reworded, so a new task: a-see-a-go (was a)",
				"its box was changed while the command ran, set back: a-see-a-go; if it was you: lopen plan tick auth a-see-a-go"},
			boxes:   ticks{"a-see-a-go": false},
			unclear: []string{"a-see-a-go"},
			states:  is{"a-see-a-go": pending, "b": pending},
		},
		"done already and reworded while the command ran": {
			before: lines("- [x] A", "- [ ] B"), after: lines("- [x] A better", "- [ ] B"), when: tasks.During,
			notes:  []string{"reworded, so a new task: a-better (was a)"},
			states: is{"a-better": complete, "b": pending},
		},
		"ticked before a kill": {
			before: ab, after: lines("- [x] A", "- [ ] B"), when: tasks.Cut,
			notes:   []string{"its box was changed while the command ran, set back: a; if it was you: lopen plan tick auth a"},
			boxes:   ticks{"a": false},
			unclear: []string{"a"},
			states:  is{"a": pending, "b": pending},
		},
		"mended: killed before the tick": {
			before: ab, after: ab, when: tasks.Cut,
			edits:  []func(*session.Edit){set("a", complete, open)},
			notes:  []string{"done already, ticked now: a"},
			boxes:  ticks{"a": true},
			states: is{"a": complete, "b": pending},
		},
		"killed after the tick and before it was remembered": {
			before: ab, after: lines("- [x] A", "- [ ] B"), when: tasks.Cut,
			edits:  []func(*session.Edit){set("a", complete, open)},
			states: is{"a": complete, "b": pending},
		},
		"mended, and its parent with the last child": {
			before: tree, after: lines("## C", "- [ ] P", "  - [x] A", "  - [ ] B"), when: tasks.Cut,
			edits:  []func(*session.Edit){set("c/p/a", complete, ticked), set("c/p/b", complete, open)},
			notes:  []string{"done already, ticked now: c/p/b"},
			boxes:  ticks{"c/p": true, "c/p/b": true},
			states: is{"c": complete, "c/p": complete, "c/p/a": complete, "c/p/b": complete},
		},
		"a parent is ticked with its last child": {
			before: tree, after: lines("## C", "- [ ] P", "  - [x] A", "  - [x] B"),
			notes:  []string{"ticked by hand, counts as done: c/p/a", "ticked by hand, counts as done: c/p/b"},
			boxes:  ticks{"c/p": true},
			states: is{"c": complete, "c/p": complete, "c/p/a": complete, "c/p/b": complete},
		},
		"a parent ticked by hand decides nothing": {
			before: tree, after: lines("## C", "- [x] P", "  - [ ] A", "  - [ ] B"),
			states: is{"c": pending, "c/p": pending, "c/p/a": pending, "c/p/b": pending},
		},
		"a new open child opens what was complete": {
			before: lines("- [x] P", "  - [x] A"), after: lines("- [x] P", "  - [x] A", "  - [ ] B"),
			notes:  []string{"new in the plan: p/b"},
			states: is{"p": pending, "p/a": complete, "p/b": pending},
		},
		"a leaf gets a child": {
			before: lines("- [x] A"), after: lines("- [x] A", "  - [ ] B"),
			notes:  []string{"new in the plan: a/b"},
			states: is{"a": pending, "a/b": pending},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := empty(t)
			if tt.before != nil {
				st = from(t, tt.before)
			}
			e := st.Edit()
			for _, edit := range tt.edits {
				edit(e)
			}
			st, err := e.State()
			require.NoError(t, err)

			got, err := tasks.Reconcile(st, tt.after, tt.when)
			require.NoError(t, err)
			require.Equal(t, tt.notes, notes(got))
			if tt.boxes == nil {
				tt.boxes = ticks{}
			}
			require.Equal(t, tt.boxes, got.Boxes)
			require.Equal(t, tt.unclear, got.Unclear)
			require.Equal(t, tt.states, states(got.State))
		})
	}
}

// A task that is unticked by hand begins anew: its attempts do not count
// against the threshold, its log stays.
func TestReconcileUntickedBeginsAnew(t *testing.T) {
	t.Parallel()
	st := from(t, lines("- [x] A"))
	e := st.Edit()
	tasks.Set(e, "a", func(t *session.Task) {
		t.Attempts = 3
		t.Log = []session.Attempt{{Number: 1, StartedAt: day, EndedAt: day.Add(time.Second)}}
	})
	st, err := e.State()
	require.NoError(t, err)
	res, err := tasks.Reconcile(st, lines("- [ ] A"), tasks.Between)
	require.NoError(t, err)
	a, _ := res.State.Task("a")
	require.Zero(t, a.Attempts)
	require.Len(t, a.Log, 1)
}

// Reconcile after its own boxes were written finds nothing more.
func TestReconcileSettles(t *testing.T) {
	t.Parallel()
	st := from(t, lines("- [x] P", "  - [ ] A", "  - [x] B"))
	p := lines("- [ ] P", "  - [x] A", "  - [ ] B")
	for _, when := range []tasks.When{tasks.Between, tasks.During, tasks.Cut} {
		res, err := tasks.Reconcile(st, p, when)
		require.NoError(t, err)
		settled := tick(p, res.Boxes)
		again, err := tasks.Reconcile(res.State, settled, when)
		require.NoError(t, err)
		require.Empty(t, again.Notes, "when %d", when)
		require.Empty(t, again.Boxes, "when %d", when)
	}
}

// tick is the plan after its boxes were set.
func tick(p *plan.Plan, boxes map[string]bool) *plan.Plan {
	at := map[int]bool{}
	for id, ticked := range boxes {
		t, _ := p.Task(id)
		at[t.Box] = ticked
	}
	return plan.Parse(plan.Toggle(p.Source(), at))
}

func TestSetDerivesParents(t *testing.T) {
	t.Parallel()
	base := from(t, lines("## C", "- [ ] P", "  - [ ] A", "  - [ ] B", "- [ ] Q"))
	const (
		pending, running, complete = session.TaskPending, session.TaskInProgress, session.TaskComplete
		failed, skipped            = session.TaskFailed, session.TaskSkipped
	)
	for _, tt := range []struct{ a, b, q, p, c session.TaskState }{
		{pending, pending, pending, pending, pending},
		{running, pending, pending, running, running},
		{complete, pending, complete, pending, pending},
		{complete, complete, pending, complete, pending},
		{complete, complete, complete, complete, complete},
		{complete, failed, complete, failed, failed},
		{failed, pending, complete, pending, pending},
		{failed, running, complete, running, running},
		{skipped, complete, complete, skipped, skipped},
		{skipped, failed, complete, failed, failed},
		{complete, complete, running, complete, running},
	} {
		e := base.Edit()
		for id, state := range map[string]session.TaskState{"c/p/a": tt.a, "c/p/b": tt.b, "c/q": tt.q} {
			tasks.Set(e, id, func(t *session.Task) { t.State = state })
		}
		tasks.Set(e, "c/none", func(*session.Task) { t.Error("called for a task that is not there") })
		st, err := e.State()
		require.NoError(t, err)
		got := states(st)
		require.Equal(t, tt.p, got["c/p"], "%+v", tt)
		require.Equal(t, tt.c, got["c"], "%+v", tt)
	}
}

// Whoever replaces a plan by another one, all of whose tasks are new, waits for twice as
// many tasks twice as long.
func TestReconcileIsLinear(t *testing.T) {
	allocated := func(n int) uint64 {
		texts := func(what string) *plan.Plan {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, "- [ ] %s %d\n", what, i)
			}
			return plan.Parse([]byte(b.String()))
		}
		st, p := from(t, texts("old")), texts("new")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := tasks.Reconcile(st, p, tasks.Between)
		require.NoError(t, err)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	few, many := allocated(1000), allocated(2000)
	require.Less(t, float64(many), 2.5*float64(few))
}
