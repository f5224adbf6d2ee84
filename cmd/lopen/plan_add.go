package main

import (
	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/plan"
)

func newPlanAdd(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "add MODULE TEXT", Short: "Add a task, at the end or where a flag says", Args: cobra.ExactArgs(2)}
	at := placeFlags(cmd)
	return newPlanEdit(a, cmd, planEdit{change: func(e *planEdit, p *plan.Plan) (plan.Change, error) {
		to, err := at.find(p)
		return plan.Add(e.args[0], to), err
	}}, a.printNew)
}
