package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/plan"
)

func newPlanMark(a *app) *cobra.Command {
	marks := map[string]plan.Mark{"failed": {State: plan.MarkFailed}, "in-progress": {State: plan.MarkInProgress}, "none": {}}
	return newPlanEdit(a, &cobra.Command{Use: "mark MODULE TASK failed|in-progress|none", Short: "Write what a box cannot say behind a task's text", Args: cobra.ExactArgs(3)},
		func(p *plan.Plan, args []string) (plan.Change, error) {
			t, err := p.Find(args[0])
			mark, known := marks[args[1]]
			switch {
			case err != nil:
			case !known:
				err = usagef("%q: give failed, in-progress or none", args[1])
			case t.Box < 0 || t.Checked && mark != (plan.Mark{}):
				err = usagef("%s takes no mark: only an open task does", t.ID)
			}
			return plan.Marks(map[string]plan.Mark{t.ID: mark}), err
		},
		func(before, after *plan.Plan) {
			for t := range after.All() {
				if was, _ := before.Task(t.ID); was.Mark != t.Mark {
					fmt.Fprintf(a.stdout, "%s\n", strings.TrimSuffix(fmt.Sprintf("%s: %s", t.ID, t.Mark), ": "))
				}
			}
		}, nil)
}
