package main

import (
	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/plan"
)

func newPlanRemove(a *app) *cobra.Command {
	return newPlanEdit(a, &cobra.Command{Use: "remove MODULE TASK", Short: "Take a task out with all beneath it", Args: cobra.ExactArgs(2)},
		func(p *plan.Plan, args []string) (plan.Change, error) {
			t, err := p.Find(args[0])
			return plan.Remove(t.ID), err
		},
		func(before, after *plan.Plan) { a.printNew(after, before) }, nil)
}
