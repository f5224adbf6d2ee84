package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/plan"
)

// printDryRun lists the tasks that would run, in order, and the first prompt.
func (r *runCall) printDryRun(project string, store *lifecycle.Store, spec string, values *settings.Values) error {
	text, err := r.promptText()
	if err != nil {
		return err
	}
	prompt, err := loop.ParsePrompt(text)
	if err != nil {
		return usagef("--prompt: %w", err)
	}
	docs, err := os.OpenRoot(project)
	if err != nil {
		return err
	}
	defer docs.Close()
	var p *plan.Plan
	if store != nil {
		if p, err = store.Plan(r.module); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if p == nil {
		src, err := loop.ReadSpec(docs.FS(), spec)
		if err != nil {
			return err
		}
		content, err := plan.FromCriteria(r.module, src)
		if err != nil {
			return fmt.Errorf("make a plan from %s: %w", spec, err)
		}
		p = plan.Parse(content)
	}
	cfg := loop.Config{Docs: docs.FS(), Module: r.module, Project: project, Spec: spec, Check: values.String("check"), Unit: values.String("unit"), Prompt: prompt}
	if r.task != "" {
		t, err := p.Find(r.task)
		if err != nil {
			return &usageError{err}
		}
		cfg.Only = t.ID
	}
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
