package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
)

func newFilesChanged(a *app) *cobra.Command {
	return a.jsonFlags(&cobra.Command{
		Use:   "changed",
		Short: "List what changed since `lopen files record`",
		Long:  "List what changed since `lopen files record`: A created, M modified, D deleted, R moved, m mode only.\nEach is listed until the next record.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.readStore(func(store *lifecycle.Store) error {
				base, _, err := a.recorded(store) // of one that was not remembered the contents are compared
				if errors.Is(err, fs.ErrNotExist) {
					return &loop.Exit{Code: exitNotFound, Reason: "no files are recorded yet; record them with `lopen files record`"}
				}
				if err != nil {
					return fmt.Errorf("%w; record the files anew with `lopen files record`", err)
				}
				now, err := files.Take(cmd.Context(), store.Project(), base, files.Options{Paths: base.Paths, Nested: true, Outside: git.Of(store.Project().Name(), a.environ, a.logger).Outside(cmd.Context())})
				if err != nil {
					return err
				}
				a.warnSkipped(now.Skipped)
				if err := a.printChanges(files.Compare(base, now)); err != nil {
					return err
				}
				if err := a.record(store, base.Refresh(now)); err != nil {
					a.logger.Warn().Err(err).Msg("the record of the files stays as it was")
				}
				return nil
			})
		},
	})
}
