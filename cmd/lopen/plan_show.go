package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
)

// planView is what `plan show --json` prints.
type planView struct {
	Module   string           `json:"module"`
	Path     string           `json:"path"`
	Title    string           `json:"title,omitempty"`
	Progress session.Progress `json:"progress"`
	Next     string           `json:"next,omitempty"`
	Tasks    []planTask       `json:"tasks"`
}

type planTask struct {
	ID        string     `json:"id"`
	Kind      string     `json:"kind"`
	Name      string     `json:"name"`
	State     string     `json:"state"`
	Line      int        `json:"line"`
	Details   string     `json:"details,omitempty"`
	DependsOn []string   `json:"dependsOn,omitempty"`
	Children  []planTask `json:"children,omitempty"`
}

func newPlanShow(a *app) *cobra.Command {
	return a.reads(&cobra.Command{
		Use:   "show MODULE",
		Short: "Show a module's plan as a tree, and what is next",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			store, p, err := a.openPlan(args[0])
			if err != nil {
				return err
			}
			defer release(store)
			a.warnPlan(lifecycle.PlanPath(args[0]), p)
			st, err := planState(store, args[0], p)
			if err != nil {
				return err
			}
			view := planView{Module: args[0], Path: lifecycle.PlanPath(args[0]), Title: p.Title(), Progress: st.Progress(), Tasks: planTree(p, st, p.Roots())}
			if ready, _ := tasks.Order(st); len(ready) > 0 {
				view.Next = ready[0]
			}
			if a.out.machine() {
				return a.printJSON(view)
			}
			return a.printPlan(st, view)
		},
	})
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
		id, err := session.NewID(module, timeNow(), 1)
		if err != nil {
			return nil, err
		}
		if st, err = session.New(id, timeNow()); err != nil {
			return nil, err
		}
	}
	res, err := tasks.Reconcile(st, p, tasks.Between)
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

func planTree(p *plan.Plan, st *session.State, ids []string) []planTask {
	tree := make([]planTask, 0, len(ids))
	for _, id := range ids {
		pt, _ := p.Task(id)
		t, _ := st.Task(id)
		tree = append(tree, planTask{ID: id, Kind: string(t.Kind), Name: t.Name, State: string(t.State), Line: pt.Line, Details: pt.Details,
			DependsOn: t.DependsOn, Children: planTree(p, st, pt.Children)})
	}
	return tree
}
