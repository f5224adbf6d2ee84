package main

import (
	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/plan"
)

func newPlanRemove(a *app) *cobra.Command {
	return newPlanEdit(a, &cobra.Command{Use: "remove MODULE TASK", Short: "Take a task out with all beneath it", Args: cobra.ExactArgs(2)},
		planEdit{change: func(e *planEdit, p *plan.Plan) (plan.Change, error) {
			err := e.find(p)
			return plan.Remove(e.task.ID), err
		}},
		func(before, after *plan.Plan) { a.printNew(after, before) })
}
