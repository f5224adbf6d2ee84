package main

import (
	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/plan"
)

func newPlanRename(a *app) *cobra.Command {
	return newPlanEdit(a, &cobra.Command{Use: "rename MODULE TASK TEXT", Short: "Give a task another text, and so another ID", Args: cobra.ExactArgs(3)},
		func(p *plan.Plan, args []string) (plan.Change, error) {
			t, err := p.Find(args[0])
			return plan.Rename(t.ID, args[1]), err
		}, a.printNew, nil)
}
