package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
)

func newPlan(a *app) *cobra.Command {
	return group("plan", "Show, create and edit plans",
		newPlanList(a), newPlanShow(a), newPlanCreate(a), newPlanUpdate(a), newPlanTick(a, true), newPlanTick(a, false), newPlanSkip(a), newPlanRevive(a),
		newPlanAdd(a), newPlanRemove(a), newPlanMove(a), newPlanRename(a), newPlanMark(a), newPlanPush(a))
}

// moduleState returns the State of the session that the module's next run resumes,
// or else of the one that was changed last. It is nil where there is none or where
// it cannot be read: a damaged session must not hide the plan.
func moduleState(store *lifecycle.Store, module string) (*session.State, error) {
	info, ok, err := store.Unfinished(module)
	if err != nil {
		return nil, err
	}
	id := info.ID
	if !ok {
		if id, err = store.Latest(module); errors.Is(err, lifecycle.ErrNotFound) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	}
	st, _, _ := store.Read(id)
	return st, nil
}

// leavesDone says that nothing is left to do of some leaves of a plan: each is ticked, or is marked
// as skipped, or was skipped in the module's last session. What a person skipped does not run
// unasked.
func leavesDone(store *lifecycle.Store, module string, leaves []plan.Task) (bool, *session.State) {
	st, err := moduleState(store, module)
	if err != nil {
		return false, nil
	}
	for _, t := range leaves {
		if t.Checked || t.Mark.State == plan.MarkSkipped {
			continue
		}
		if st == nil {
			return false, nil
		}
		if is, _ := st.Task(t.ID); is.State != session.TaskSkipped {
			return false, nil
		}
	}
	return len(leaves) > 0, st
}

// openPlan opens the store and a module's plan. The caller closes the store.
func (a *app) openPlan(module string) (*lifecycle.Store, *plan.Plan, error) {
	if err := session.ValidateModule(module); err != nil {
		return nil, nil, &usageError{err}
	}
	store, err := a.open()
	if err != nil {
		return nil, nil, err
	}
	p, err := store.Plan(module)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("no plan for module %s at %s: make one with lopen plan create %s --from FILE: %w",
			module, lifecycle.PlanPath(module), module, lifecycle.ErrNotFound)
	}
	if err != nil {
		return nil, nil, errors.Join(err, closeStore(store))
	}
	return store, p, nil
}

// planState is the plan's tasks with what the module's session and the
// plan's marks say of them beyond their boxes: which failed, which one is being
// worked on.
func planState(store *lifecycle.Store, module string, p *plan.Plan) (*session.State, error) {
	st, err := moduleState(store, module)
	if err != nil {
		return nil, err
	}
	if st == nil {
		if st, err = loop.Fresh(module); err != nil {
			return nil, err
		}
	}
	noted, err := store.Decisions(module)
	if err != nil {
		noted = nil // the next command that decides something says why
	}
	res, err := tasks.Newest(noted).Reconcile(st, p, tasks.Between)
	if err != nil {
		return nil, err
	}
	return withMarks(res.State, p)
}

// withMarks gives the tasks that no session says anything of the state that the
// plan marks them with.
func withMarks(st *session.State, p *plan.Plan) (*session.State, error) {
	marks := map[string]session.TaskState{plan.MarkFailed: session.TaskFailed, plan.MarkInProgress: session.TaskInProgress}
	e := st.Edit()
	for t := range p.All() {
		state, marked := marks[t.Mark.State]
		if !marked || len(t.Children) > 0 {
			continue
		}
		tasks.Set(e, t.ID, func(st *session.Task) {
			if st.State == session.TaskPending {
				st.State = state
			}
		})
	}
	return e.State()
}
