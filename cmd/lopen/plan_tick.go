package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
)

func newPlanTick(a *app, ticked bool) *cobra.Command {
	use, short, to := "tick MODULE TASK", "Tick a task's box; a parent's ticks all beneath it", session.TaskComplete
	if !ticked {
		use, short, to = "untick MODULE TASK", "Untick a task's box: it runs again, also when it was skipped or failed", session.TaskPending
	}
	edit := planEdit{
		change: func(e *planEdit, p *plan.Plan) (plan.Change, error) {
			if err := e.find(p); err != nil {
				return nil, err
			}
			boxes, marks := plan.Closure(p, e.task.ID, ticked), map[string]plan.Mark{}
			for id := range boxes {
				if t, _ := p.Task(id); !ticked && len(t.Children) == 0 && t.Mark != (plan.Mark{}) {
					marks[id] = plan.Mark{}
				}
			}
			return boxesAndMarks(boxes, marks), nil
		},
		decide: func(e *planEdit, _, after *plan.Plan) map[string]session.TaskState {
			want := map[string]session.TaskState{}
			for id := range plan.Closure(after, e.task.ID, ticked) {
				want[id] = to
			}
			return want
		},
	}
	return newPlanEdit(a, &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(2)}, edit, func(before, after *plan.Plan) {
		for t := range after.All() {
			if was, ok := before.Task(t.ID); ok && was.Checked != t.Checked {
				fmt.Fprintf(a.stdout, "[%s] %s\n", tick(t.Checked), t.ID)
			}
		}
	})
}
