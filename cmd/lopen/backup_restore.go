package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/backup"
)

func newBackupRestore(a *app) *cobra.Command {
	var keys *keyFlags
	var to string
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "restore FOLDER [NUMBER]",
		Short: "Take the sessions of the newest backup, or of one, into this project",
		Long: `Take the sessions of the newest backup, or of one, into this project or another folder, as lopen
session import does: everything is checked before anything is visible, what is here already stays
as it is, and a session whose ID is taken gets another one. lopen session resume goes on with one.

The project's own files are not in a backup, but for what checkpoints have of them:
lopen checkpoint rewind last --scope files.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := backupNumber(args[1:])
			if err != nil {
				return err
			}
			return a.openBackup(cmd.Context(), args[0], keys, func(f *backup.Folder) error {
				s, err := f.Source(number)
				if err != nil {
					return notFound(err)
				}
				defer s.Close()
				return a.restoreInto(to, func(store *lifecycle.Store) error { return a.imports(cmd.Context(), store, s) })
			})
		},
	})
	keys = a.keyFlags(cmd, false)
	cmd.Flags().StringVar(&to, "to", "", "into the project in `DIR`, which is made if it is not there")
	return cmd
}

// restoreInto runs fn on the store of this project, or of the one in a folder that was named.
func (a *app) restoreInto(to string, fn func(store *lifecycle.Store) error) (err error) {
	if to == "" {
		return a.initStore(func(_ string, store *lifecycle.Store) error { return fn(store) })
	}
	path, err := a.path(to)
	if err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o777); err != nil && !errors.Is(err, os.ErrExist) { //nolint:gosec // a project's folder has the user's own mode
		return fmt.Errorf("make the project's folder: %w", err)
	}
	if err := a.owned(path, path); err != nil {
		return err
	}
	store, err := a.create(path, a.storeOptions(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore(store)) }()
	return fn(store)
}
