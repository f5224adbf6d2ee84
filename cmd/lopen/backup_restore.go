package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/backup"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

func newBackupRestore(a *app) *cobra.Command {
	var keys *keyFlags
	var to string
	var number uint64
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "restore FOLDER [NUMBER | SESSION]",
		Short: "Take the sessions of a backup, or one of them, into this project",
		Long: `Take the sessions of the newest backup, or of one, into this project or another folder, as lopen
session import does: everything is checked before anything is visible, what is here already stays
as it is, and a session whose ID is taken gets another one. lopen session resume goes on with one.

SESSION is an ID, the prefix of one, or a module. It alone comes back, with its checkpoints, from
the newest backup that has it or from the one of --backup. Damage elsewhere does not matter then.

The project's own files are not in a backup, but for what checkpoints have of them:
lopen checkpoint rewind last --scope files.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			typed := ""
			if len(args) > 1 {
				if n, err := strconv.ParseUint(args[1], 10, 63); err != nil {
					typed = args[1]
				} else if number > 0 || n == 0 {
					return usagef("%s is no session; lopen backup list FOLDER has the numbers", args[1])
				} else {
					number = n
				}
			}
			return a.openBackup(cmd.Context(), args[0], keys, func(f *backup.Folder) error {
				s, id, err := backupOf(f, number, typed)
				if err != nil {
					return notFound(err)
				}
				defer s.Close()
				var from carry.Source = carry.Whole{Source: s}
				if typed != "" {
					from = &carry.One{Source: s, Session: id, Contents: s.Contents()}
					fmt.Fprintf(a.stderr, "session %s as backup %d has it, of %s\n", id, s.Snapshot().Number, s.Snapshot().At.Local().Format(time.DateTime))
				}
				return a.restoreInto(to, func(store *lifecycle.Store) error { return a.imports(cmd.Context(), store, from) })
			})
		},
	})
	keys = a.keyFlags(cmd, false)
	cmd.Flags().StringVar(&to, "to", "", "into the project in `DIR`, which is made if it is not there")
	cmd.Flags().Uint64Var(&number, "backup", 0, "take SESSION from the backup with this `NUMBER`")
	return cmd
}

// backupOf opens the backup that is restored from, and returns the ID of the session that was
// typed, if one was: of the newest backup that has that ID, or else something that fits.
func backupOf(f *backup.Folder, number uint64, typed string) (*backup.Source, string, error) {
	if typed == "" {
		s, err := f.Source(number)
		return s, "", err
	}
	all, err := f.List()
	if err != nil {
		return nil, "", err
	}
	var unread error
	for _, exact := range []bool{true, false} {
		unread = nil
		for _, b := range slices.Backward(all) {
			if number > 0 && b.Number != number {
				continue
			}
			s, err := f.Source(b.Number)
			if err != nil {
				unread = errors.Join(err, unread)
				continue
			}
			id, err := sessionIn(s.Header(), typed, exact)
			if id != "" && err == nil {
				return s, id, nil
			}
			if err = errors.Join(err, s.Close()); err != nil {
				return nil, "", fmt.Errorf("backup %d: %w", b.Number, err)
			}
		}
	}
	return nil, "", errors.Join(fmt.Errorf("session %q in the backups: %w; what was in the trash or damaged comes with a whole backup only", typed, lifecycle.ErrNotFound), unread)
}

// sessionIn returns the ID of the session that was typed, as [lifecycle.Store.Resolve] does: an
// ID, a module for the newest of its sessions, or the prefix of exactly one ID. It is "" if
// there is none.
func sessionIn(h *bundle.Header, typed string, exact bool) (string, error) {
	var fits []string
	var newest session.ID
	for _, s := range h.Sessions {
		id, err := session.ParseID(s.ID)
		switch {
		case err != nil:
		case s.ID == typed:
			return s.ID, nil
		case exact:
		case id.Module == typed && (newest == session.ID{} || newest.Compare(id) < 0):
			newest = id
		case strings.HasPrefix(s.ID, typed):
			fits = append(fits, s.ID)
		}
	}
	switch {
	case newest != session.ID{}:
		return newest.String(), nil
	case len(fits) == 1:
		return fits[0], nil
	case len(fits) > 1:
		return "", fmt.Errorf("session %q: %w: %s", typed, lifecycle.ErrAmbiguous, strings.Join(fits, ", "))
	}
	return "", nil
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
	if err := a.owned(path, path, path); err != nil {
		return err
	}
	store, err := a.create(path, a.storeOptions(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore(store)) }()
	return fn(store)
}
