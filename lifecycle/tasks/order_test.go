package tasks_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
)

func TestOrder(t *testing.T) {
	t.Parallel()
	type wait = []tasks.Waiting
	for name, tt := range map[string]struct {
		plan    *plan.Plan
		edits   []func(*session.Edit)
		ready   []string
		waiting wait
	}{
		"the plan's order, leaves only": {
			plan:  lines("## D", "- [ ] P", "  - [ ] B", "  - [ ] A", "## C", "- [ ] Q"),
			ready: []string{"d/p/b", "d/p/a", "c/q"},
		},
		"nothing": {plan: lines("nothing")},
		"what is done, failed or skipped is in neither list": {
			plan: lines("- [x] A", "- [ ] B", "- [ ] C", "- [ ] D", "- [ ] E"),
			edits: []func(*session.Edit){set("b", session.TaskFailed, session.BoxOpen),
				set("c", session.TaskSkipped, session.BoxOpen), set("d", session.TaskInProgress, session.BoxOpen)},
			ready: []string{"d", "e"},
		},
		"a task": {
			plan:    lines("- [ ] A <!-- after: b -->", "- [ ] B"),
			ready:   []string{"b"},
			waiting: wait{{Task: "a", For: []string{"b"}}},
		},
		"a task that is done": {
			plan:  lines("- [ ] A <!-- after: b -->", "- [x] B"),
			ready: []string{"a"},
		},
		"a task that a person skipped": {
			plan:  lines("- [ ] A <!-- after: b -->", "- [ ] B"),
			edits: []func(*session.Edit){set("b", session.TaskSkipped, session.BoxOpen)},
			ready: []string{"a"},
		},
		"a task that failed": {
			plan:    lines("- [ ] A <!-- after: b -->", "- [ ] B"),
			edits:   []func(*session.Edit){set("b", session.TaskFailed, session.BoxOpen)},
			waiting: wait{{Task: "a", For: []string{"b"}}},
		},
		"two, one of them done": {
			plan:    lines("- [ ] A <!-- after: b, c -->", "- [x] B", "- [ ] C"),
			ready:   []string{"c"},
			waiting: wait{{Task: "a", For: []string{"c"}}},
		},
		"a component": {
			plan:    lines("## C", "- [x] A", "- [ ] B", "## D", "- [ ] E <!-- after: c -->"),
			ready:   []string{"c/b"},
			waiting: wait{{Task: "d/e", For: []string{"c"}}},
		},
		"a component that is done": {
			plan:  lines("## C", "- [x] A", "## D", "- [ ] E <!-- after: c -->"),
			ready: []string{"d/e"},
		},
		"inherited from the parent, said once": {
			plan:    lines("- [ ] P <!-- after: b -->", "  - [ ] A <!-- after: b -->", "    - [ ] L", "- [ ] B"),
			ready:   []string{"b"},
			waiting: wait{{Task: "p/a/l", For: []string{"b"}}},
		},
		"unknown": {
			plan:    lines("- [ ] A <!-- after: nobody -->"),
			waiting: wait{{Task: "a", For: []string{"nobody"}}},
		},
		"a cycle": {
			plan:    lines("- [ ] A <!-- after: b -->", "- [ ] B <!-- after: a -->", "- [ ] C <!-- after: c -->", "- [ ] D"),
			ready:   []string{"d"},
			waiting: wait{{Task: "a", For: []string{"b"}}, {Task: "b", For: []string{"a"}}, {Task: "c", For: []string{"c"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := from(t, tt.plan).Edit()
			for _, edit := range tt.edits {
				edit(e)
			}
			st, err := e.State()
			require.NoError(t, err)
			ready, waiting := tasks.Order(st)
			require.Equal(t, tt.ready, ready)
			require.Equal(t, tt.waiting, waiting)
		})
	}
}

func TestUnitLeavesComponent(t *testing.T) {
	t.Parallel()
	st := from(t, lines("- [ ] Top", "  - [ ] Low", "", "## C", "- [ ] P", "  - [ ] A", "    - [ ] L", "  - [ ] B", "- [ ] Q"))
	for _, tt := range []struct{ leaf, unit, want string }{
		{"c/p/a/l", "", "c/p/a/l"},
		{"c/p/a/l", "leaf", "c/p/a/l"},
		{"c/p/a/l", "task", "c/p"},
		{"c/p/a/l", "component", "c"},
		{"c/q", "task", "c/q"},
		{"c/q", "component", "c"},
		{"top/low", "task", "top"},
		{"top/low", "component", "top"},
	} {
		require.Equal(t, tt.want, tasks.Unit(st, tt.leaf, tt.unit), "%+v", tt)
	}
	for id, want := range map[string][]string{
		"c":       {"c/p/a/l", "c/p/b", "c/q"},
		"c/p":     {"c/p/a/l", "c/p/b"},
		"c/q":     {"c/q"},
		"top":     {"top/low"},
		"nothing": nil,
	} {
		require.Equal(t, want, tasks.Leaves(st, id), id)
	}
	for id, want := range map[string]string{"c": "c", "c/p/a/l": "c", "c/q": "c", "top": "", "top/low": "", "nothing": ""} {
		require.Equal(t, want, tasks.Component(st, id), id)
	}
}
