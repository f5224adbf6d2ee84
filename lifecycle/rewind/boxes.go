package rewind

import (
	"errors"
	"io/fs"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
)

// Plans reads and edits the plans of modules.
type Plans interface {
	// Plan reads a module's plan. The error wraps fs.ErrNotExist if there is none.
	Plan(module string) (*plan.Plan, error)
	// EditPlan changes a plan, durably. base is the plan as it was read.
	EditPlan(module string, base *plan.Plan, change plan.Change) (*plan.Plan, error)
}

// followBoxes ticks and unticks the plan's boxes to agree with a State, and returns the State
// with the boxes as they are then. If there is no plan, it returns the State unchanged.
func followBoxes(plans Plans, st *session.State) (*session.State, error) {
	module := st.ID().Module
	p, err := plans.Plan(module)
	if errors.Is(err, fs.ErrNotExist) {
		return st, nil
	}
	if err != nil {
		return nil, err
	}
	want := map[string]bool{}
	for t := range st.All() {
		if box, ok := p.Task(t.ID); ok && t.Box != session.BoxNone && box.Checked != (t.State == session.TaskComplete) {
			want[t.ID] = !box.Checked
		}
	}
	if len(want) > 0 {
		if p, err = plans.EditPlan(module, p, plan.Boxes(want)); err != nil {
			return nil, err
		}
	}
	e := st.Edit()
	for t := range st.All() {
		box, ok := p.Task(t.ID)
		if !ok || t.Box == session.BoxNone {
			continue
		}
		is := session.BoxOpen
		if box.Checked {
			is = session.BoxTicked
		}
		if t.Box != is {
			t.Box = is
			e.Put(t)
		}
	}
	return e.State()
}
