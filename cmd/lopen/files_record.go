package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
	"github.com/lopen-dev/lopen/lifecycle"
)

func newFilesRecord(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "record [PATH...]",
		Short: "Remember what the project's files are now",
		Long:  "Remember what the project's files, or the named ones, are now, for `lopen files changed`.\nWhat .gitignore and .lopenignore leave out is left out.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.readStore(func(store *lifecycle.Store) error {
				named, err := a.inProject(store, args)
				if err != nil {
					return err
				}
				before, known, err := a.recorded(store)
				if err != nil || !known {
					before = nil // it spares reading, no more
				}
				now, err := files.Take(cmd.Context(), store.Project(), before, files.Options{Paths: named, Nested: true, Outside: git.Of(store.Project().Name(), a.environ, a.logger).Outside(cmd.Context())})
				if err != nil {
					return usageIf(err, lifecycle.ErrInvalid)
				}
				if err := a.record(store, now); err != nil {
					return err
				}
				a.warnSkipped(now.Skipped)
				bytes := int64(0)
				for i := range now.Files {
					bytes += now.Files[i].Size
				}
				fmt.Fprintf(a.stdout, "%d files recorded, %d bytes, %d skipped\n", now.Count(), bytes, len(now.Skipped))
				return nil
			})
		},
	}
}

// inProject turns paths from where the command was called into paths of the project.
func (a *app) inProject(store *lifecycle.Store, args []string) (named []string, err error) {
	for _, arg := range args {
		name, err := a.within(store.Project().Name(), arg)
		if err != nil {
			return nil, err
		}
		if _, err := store.Project().Lstat(filepath.FromSlash(name)); err != nil {
			return nil, usagef("record: %w", err)
		}
		named = append(named, name)
	}
	return named, nil
}
