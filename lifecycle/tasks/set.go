package tasks

import (
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
)

// derive sets the state of every parent from its children's, last items first,
// so that children are right before their parents.
func derive(e *session.Edit, p *plan.Plan) {
	for _, t := range slices.Backward(p.Tasks()) {
		if len(t.Children) > 0 {
			deriveOne(e, t.ID)
		}
	}
}

// weight has the states that a child may have: the first one that any has is its parent's.
var weight = []session.TaskState{session.TaskInProgress, session.TaskPending, session.TaskFailed, session.TaskSkipped, session.TaskComplete}

func deriveOne(e *session.Edit, id string) {
	t, ok := e.Task(id)
	if !ok {
		return
	}
	first := len(weight) - 1
	for _, c := range t.Children {
		if child, ok := e.Task(c); ok {
			first = min(first, slices.Index(weight, child.State))
		}
	}
	if t.State != weight[first] {
		t.State = weight[first]
		e.Put(t)
	}
}

// Set changes one task through fn and derives the states of its parents.
func Set(e *session.Edit, id string, fn func(*session.Task)) {
	t, ok := e.Task(id)
	if !ok {
		return
	}
	fn(&t)
	e.Put(t)
	for parent := t.Parent; parent != ""; {
		deriveOne(e, parent)
		p, ok := e.Task(parent)
		if !ok {
			return
		}
		parent = p.Parent
	}
}
