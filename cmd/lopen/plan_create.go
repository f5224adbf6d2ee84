package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer/documents"
)

func newPlanCreate(a *app) *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "create MODULE --from FILE",
		Short: "Make a plan from the headings and checkboxes of any Markdown",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := session.ValidateModule(args[0]); err != nil {
				return &usageError{err}
			}
			if from == "" {
				return usagef("--from FILE is missing: a Markdown file with checkboxes, such as TODO.md or tasks.md")
			}
			path, err := a.path(from)
			if err != nil {
				return err
			}
			content, err := a.planFrom(args[0], from, path)
			if err != nil {
				return err
			}
			return a.initStore(func(project string, store *lifecycle.Store) error {
				if rel, err := filepath.Rel(project, path); err == nil && filepath.IsLocal(rel) {
					path = rel
				}
				content = plan.WithOrigin(content, filepath.ToSlash(path))
				err = store.CreatePlan(args[0], content)
				if errors.Is(err, fs.ErrExist) {
					return fmt.Errorf("module %s has a plan already, which was left alone: %s", args[0], lifecycle.PlanPath(args[0]))
				}
				if err != nil {
					return err
				}
				fmt.Fprintf(a.stdout, "%s\n", lifecycle.PlanPath(args[0]))
				p := plan.Parse(content)
				a.warnMissing(lifecycle.PlanPath(args[0]), p)
				done, total := p.Progress()
				fmt.Fprintf(a.stderr, "%d tasks, %d of them done; next: lopen run %s -- CMD\n", total, done, args[0])
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the Markdown `FILE`")
	return cmd
}

func (a *app) planFrom(module, from, path string) ([]byte, error) {
	src, err := documents.ReadFile(path, prompt.MaxDocument)
	if err != nil {
		return nil, fmt.Errorf("make a plan from %s: %w", from, err)
	}
	content, err := plan.FromMarkdown(module, src)
	if err != nil {
		return nil, fmt.Errorf("make a plan from %s: %w", from, err)
	}
	a.warnLookalikes(from, plan.Dropped(src))
	return content, nil
}
