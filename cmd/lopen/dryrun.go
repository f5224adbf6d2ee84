package main

import (
	"fmt"
	"io/fs"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/plan"
)

// printDryRun lists the tasks that would run, in order, and the first prompt.
func (r *runCall) printDryRun(p *plan.Plan, docs fs.FS, spec string, values *settings.Values) error {
	cfg := loop.Config{Docs: docs, Module: r.module, Spec: spec, Check: values.String("check"), Unit: values.String("unit"), Prompt: r.template, Only: r.only}
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
