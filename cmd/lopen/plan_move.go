package main

import (
	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/plan"
)

func newPlanMove(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "move MODULE TASK", Short: "Move a task with all beneath it, to the end or where a flag says", Args: cobra.ExactArgs(2)}
	at := placeFlags(cmd)
	return newPlanEdit(a, cmd, planEdit{change: func(e *planEdit, p *plan.Plan) (plan.Change, error) {
		if err := e.find(p); err != nil {
			return nil, err
		}
		to, err := at.find(p)
		return plan.Move(e.task.ID, to), err
	}}, a.printNew)
}
