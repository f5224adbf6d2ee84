package main

import (
	"fmt"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/plan"
)

// printDryRun lists the tasks that would run, in order, and the first prompt.
// docs is where documents are.
func (r *runCall) printDryRun(p *plan.Plan, docs loop.Config, values *settings.Values) error {
	cfg := docs
	cfg.Module, cfg.Check, cfg.Unit, cfg.Prompt, cfg.Only = r.module, values.String("check"), values.String("unit"), r.template, r.only
	order, first, err := loop.DryRun(cfg, p)
	if err != nil {
		return err
	}
	for i, line := range order {
		fmt.Fprintf(r.stdout, "%3d  %s\n", i+1, line)
	}
	if len(order) == 0 {
		fmt.Fprintln(r.stdout, "nothing would run")
		return nil
	}
	_, err = fmt.Fprintf(r.stdout, "\nThe first prompt:\n\n%s", first)
	return err
}
