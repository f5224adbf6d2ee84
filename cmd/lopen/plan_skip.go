package main

import (
	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
)

func newPlanSkip(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "skip MODULE TASK", Short: "Skip a task: it does not run until it is revived; a parent's open tasks likewise", Args: cobra.ExactArgs(2)}
	return newPlanEdit(a, cmd, leavesEdit(plan.Mark{State: plan.MarkSkipped}, session.TaskSkipped,
		func(_ *planEdit, t plan.Task) bool { return !t.Checked }, "%s has no open task: untick it first"), a.printMarks)
}

func newPlanRevive(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "revive MODULE TASK", Short: "Run a task again that was skipped or has failed, with all its attempts", Args: cobra.ExactArgs(2)}
	return newPlanEdit(a, cmd, leavesEdit(plan.Mark{}, session.TaskPending, passedOver, "%s is neither skipped nor failed"), a.printMarks)
}

// passedOver reports whether a task does not run because it was skipped or has failed.
func passedOver(e *planEdit, t plan.Task) bool {
	if t.Checked {
		return false
	}
	if t.Mark.State == plan.MarkSkipped || t.Mark.State == plan.MarkFailed {
		return true
	}
	if e.st == nil {
		return false
	}
	is, _ := e.st.Task(t.ID)
	return is.State == session.TaskSkipped || is.State == session.TaskFailed
}

// leavesEdit gives a mark and a state to those of the tasks at or beneath one that are meant and
// have none beneath them. none is what is wrong if there is none.
func leavesEdit(mark plan.Mark, to session.TaskState, meant func(e *planEdit, t plan.Task) bool, none string) planEdit {
	leaves := func(e *planEdit, p *plan.Plan) (ids []string) {
		for id := range plan.Closure(p, e.task.ID, false) {
			if t, _ := p.Task(id); len(t.Children) == 0 && t.Box >= 0 && meant(e, t) {
				ids = append(ids, id)
			}
		}
		return ids
	}
	return planEdit{
		change: func(e *planEdit, p *plan.Plan) (plan.Change, error) {
			if err := e.find(p); err != nil {
				return nil, err
			}
			marks := map[string]plan.Mark{}
			for _, id := range leaves(e, p) {
				marks[id] = mark
			}
			if len(marks) == 0 {
				return nil, usagef(none, e.task.ID)
			}
			return plan.Marks(marks), nil
		},
		decide: func(e *planEdit, before, _ *plan.Plan) map[string]session.TaskState {
			want := map[string]session.TaskState{}
			for _, id := range leaves(e, before) {
				want[id] = to
			}
			return want
		},
	}
}
