package tasks

import (
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
)

// derive sets the state of every parent from its children's, last items first,
// so that children are right before their parents.
func derive(e *session.Edit, p *plan.Plan) {
	all := p.Tasks()
	for i := len(all) - 1; i >= 0; i-- {
		if len(all[i].Children) > 0 {
			deriveOne(e, all[i].ID)
		}
	}
}

func deriveOne(e *session.Edit, id string) {
	t, ok := e.Task(id)
	if !ok {
		return
	}
	var n [5]int
	for _, c := range t.Children {
		child, _ := e.Task(c)
		switch child.State {
		case session.TaskInProgress:
			n[0]++
		case session.TaskPending:
			n[1]++
		case session.TaskFailed:
			n[2]++
		case session.TaskSkipped:
			n[3]++
		case session.TaskComplete:
			n[4]++
		}
	}
	state := session.TaskComplete
	switch {
	case n[0] > 0:
		state = session.TaskInProgress
	case n[1] > 0:
		state = session.TaskPending
	case n[2] > 0:
		state = session.TaskFailed
	case n[3] > 0:
		state = session.TaskSkipped
	}
	if t.State != state {
		t.State = state
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
