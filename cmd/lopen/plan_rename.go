package main

import (
	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/plan"
)

func newPlanRename(a *app) *cobra.Command {
	return newPlanEdit(a, &cobra.Command{Use: "rename MODULE TASK TEXT", Short: "Give a task another text, and so another ID", Args: cobra.ExactArgs(3)},
		planEdit{change: func(e *planEdit, p *plan.Plan) (plan.Change, error) {
			err := e.find(p)
			return plan.Rename(e.task.ID, e.args[1]), err
		}}, a.printNew)
}
