package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

//go:embed specification.md
var skeleton string

// afterInit are the two ways on from a project without a module.
const afterInit = `  for a run:         lopen init MODULE
  for your own work: start claude or codex here, once lopen plugin claude install (or codex) was called
`

func newInit(a *app) *cobra.Command {
	var inProject bool
	cmd := &cobra.Command{
		Use:   "init [MODULE]",
		Short: "Make .lopen, and with MODULE a specification to fill in",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				if err := session.ValidateModule(args[0]); err != nil {
					return &usageError{err}
				}
			}
			return a.initStore(func(project string, store *lifecycle.Store) error {
				a.keepHere(project)
				if inProject {
					if err := store.IgnoreInProject(); err != nil {
						return err
					}
				}
				if len(args) == 0 {
					fmt.Fprintf(a.stderr, "%s is ready; next:\n%s", store.Path(), afterInit)
					return nil
				}
				values, err := a.storeSettings(store, nil)
				if err != nil {
					return err
				}
				return a.writeSkeleton(project, specPath(values, args[0]), args[0])
			})
		},
	}
	cmd.Flags().BoolVar(&inProject, "gitignore", false, "add .lopen/ to the project's own .gitignore")
	return cmd
}

// writeSkeleton writes a specification to fill in. One that exists is left alone.
func (a *app) writeSkeleton(project, spec, module string) error {
	root, err := os.OpenRoot(project)
	if err != nil {
		return err
	}
	defer root.Close()
	name := filepath.FromSlash(spec)
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("make the folder of %s: %w", filepath.Join(project, name), err)
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		fmt.Fprintf(a.stderr, "%s is there already and was left alone; next: lopen run %s -- CMD\n", spec, module)
		return nil
	}
	if err != nil {
		return fmt.Errorf("write specification: %w", err)
	}
	_, err = f.WriteString(strings.ReplaceAll(skeleton, "MODULE", module))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write specification: %w", errors.Join(err, root.Remove(name)))
	}
	fmt.Fprintf(a.stdout, "%s\n", spec)
	fmt.Fprintf(a.stderr, "fill it in, then: lopen run %s --check 'make test' -- CMD\n", module)
	return nil
}
