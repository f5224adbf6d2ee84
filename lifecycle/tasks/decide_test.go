package tasks_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
)

// What a person decided by a command counts whenever it is noticed, and only once.
func TestDecided(t *testing.T) {
	t.Parallel()
	const (
		pending, running, complete = session.TaskPending, session.TaskInProgress, session.TaskComplete
		failed, skipped            = session.TaskFailed, session.TaskSkipped
		open, ticked               = session.BoxOpen, session.BoxTicked
	)
	type ids = map[string]bool
	for name, tt := range map[string]struct {
		is      session.TaskState // of a before
		box     session.Box
		decided session.TaskState
		after   string // the line of a in the plan
		state   session.TaskState
		boxes   ids
		marks   ids
		notes   []string
	}{
		"ticked": {pending, open, complete, "- [x] A", complete, ids{}, ids{}, []string{"ticked by command, counts as done: a"}},
		"ticked, and the plan is not written yet": {pending, open, complete, "- [ ] A", complete, ids{"a": true}, ids{}, []string{"ticked by command, counts as done: a"}},
		"the one in progress":                     {running, open, complete, "- [x] A", complete, ids{}, ids{}, []string{"ticked by command, counts as done: a"}},
		"done meanwhile":                          {complete, open, complete, "- [x] A", complete, ids{}, ids{}, nil},
		"taken, and unticked in the file since": {complete, ticked, complete, "- [ ] A", complete, ids{"a": true}, ids{},
			[]string{"its box was changed while the command ran, set back: a; if it was you: lopen plan untick auth a"}},
		"unticked":                         {complete, ticked, pending, "- [ ] A", pending, ids{}, ids{}, []string{"unticked or revived by command, runs again: a"}},
		"revived":                          {failed, open, pending, "- [ ] A", pending, ids{}, ids{}, []string{"unticked or revived by command, runs again: a"}},
		"unticked while it is in progress": {running, open, pending, "- [ ] A", running, ids{}, ids{}, nil},
		"skipped":                          {running, open, skipped, "- [ ] A <!-- lopen: skipped -->", skipped, ids{}, ids{}, []string{"skipped by command, does not run: a"}},
		"skipped, and the plan is not written yet": {pending, open, skipped, "- [ ] A", skipped, ids{}, ids{"a": true}, []string{"skipped by command, does not run: a"}},
		"revived, and the plan is not written yet": {skipped, open, pending, "- [ ] A <!-- lopen: skipped -->", pending, ids{}, ids{"a": false},
			[]string{"unticked or revived by command, runs again: a"}},
		"failed": {pending, open, failed, "- [ ] A <!-- lopen: failed -->", failed, ids{}, ids{}, []string{"marked as failed by command, does not run in this run: a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := from(t, lines("- [ ] A", "- [ ] B")).Edit()
			tasks.Set(e, "a", func(t *session.Task) { t.State, t.Box, t.Attempts = tt.is, tt.box, 2 })
			st, err := e.State()
			require.NoError(t, err)
			decided := tasks.Newest([]tasks.Decision{
				{Seq: 1, At: day, State: failed, Tasks: []string{"a"}}, {Seq: 2, At: day, State: tt.decided, Tasks: []string{"a"}},
			})
			for _, when := range []tasks.When{tasks.During, tasks.Cut} {
				got, err := decided.Reconcile(st, lines(tt.after, "- [ ] B"), when)
				require.NoError(t, err)
				a, _ := got.State.Task("a")
				require.Equal(t, tt.state, a.State)
				require.Equal(t, tt.boxes, got.Boxes)
				require.Equal(t, tt.marks, got.Marks)
				require.Equal(t, tt.notes, notes(got))
				if tt.state == pending {
					require.Zero(t, a.Attempts)
				}
			}
		})
	}
}

// A new task whose box or mark a command has set is not set back, and a reworded one that was
// skipped stays so.
func TestDecidedAboutNewTasks(t *testing.T) {
	t.Parallel()
	st := from(t, lines("- [ ] A", "- [ ] B <!-- lopen: skipped -->"))
	b, _ := st.Task("b")
	require.Equal(t, session.TaskSkipped, b.State, "a new session honours the mark")
	after := plan.Parse([]byte("- [ ] A\n- [ ] Better <!-- lopen: skipped -->\n- [x] N\n"))
	decided := tasks.Newest([]tasks.Decision{{Seq: 1, At: day, State: session.TaskComplete, Tasks: []string{"n", "gone"}},
		{Seq: 2, At: day, State: session.TaskSkipped, Tasks: []string{"better"}}})
	got, err := decided.Reconcile(st, after, tasks.During)
	require.NoError(t, err)
	require.Empty(t, got.Boxes)
	require.Empty(t, got.Marks)
	require.Equal(t, map[string]session.TaskState{"a": session.TaskPending, "better": session.TaskSkipped, "n": session.TaskComplete}, states(got.State))
}
