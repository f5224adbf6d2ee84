package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
)

func newPlanMark(a *app) *cobra.Command {
	marks := map[string]plan.Mark{"failed": {State: plan.MarkFailed}, "in-progress": {State: plan.MarkInProgress}, "skipped": {State: plan.MarkSkipped}, "none": {}}
	edit := planEdit{
		change: func(e *planEdit, p *plan.Plan) (plan.Change, error) {
			mark, known := marks[e.args[1]]
			err := e.find(p)
			switch t := e.task; {
			case err != nil:
			case !known:
				err = usagef("%q: give failed, skipped, in-progress or none", e.args[1])
			case t.Box < 0 || t.Checked && mark != (plan.Mark{}):
				err = usagef("%s takes no mark: only an open task does", t.ID)
			}
			return plan.Marks(map[string]plan.Mark{e.task.ID: mark}), err
		},
		decide: func(e *planEdit, _, _ *plan.Plan) map[string]session.TaskState {
			to := map[string]session.TaskState{"failed": session.TaskFailed, "skipped": session.TaskSkipped, "none": session.TaskPending}[e.args[1]]
			if to == "" || len(e.task.Children) > 0 || to == session.TaskPending && !passedOver(e, e.task) {
				return nil
			}
			return map[string]session.TaskState{e.task.ID: to}
		},
	}
	cmd := &cobra.Command{Use: "mark MODULE TASK failed|skipped|in-progress|none", Short: "Write what a box cannot say behind a task's text", Args: cobra.ExactArgs(3)}
	newPlanEdit(a, cmd, edit, a.printMarks)
	cmd.Long += "\n\n" + markHelp
	return cmd
}

// printMarks prints the marks that differ between two plans.
func (a *app) printMarks(before, after *plan.Plan) {
	for t := range after.All() {
		if was, _ := before.Task(t.ID); was.Mark != t.Mark {
			fmt.Fprintf(a.stdout, "%s\n", strings.TrimSuffix(fmt.Sprintf("%s: %s", t.ID, t.Mark), ": "))
		}
	}
}

const markHelp = `A mark is a comment behind the text, as in "- [ ] Sign <!-- lopen: failed, 3 attempts -->".

failed       a run in progress does not start the task any more; the next one tries it
             again. A run writes it when a task has used up its attempts, and takes it
             away when it tries the task again or ticks it.
skipped      no run starts the task: as plan skip.
in-progress  a note for people and for plan show. No run reads or writes it.
none         takes the mark away; of a failed or skipped task as plan revive.

In an editor you may write skipped while no run works, and delete the others.`
