package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
)

// sessionless reports whether there is no session yet for a command that takes the latest one.
func (a *app) sessionless(name string) (alone bool, err error) {
	err = a.readStore(func(store *lifecycle.Store) error {
		_, err := store.Resolve(name)
		if alone = name == "" && errors.Is(err, lifecycle.ErrNotFound); alone {
			return nil
		}
		return err
	})
	return alone, err
}

func newCheckpointCreate(a *app) *cobra.Command {
	var name string
	var pin bool
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "create [PATH...]",
		Short: "Keep the project's files, or the named ones, as they are",
		Long: `Keep the project's files as they are. With PATHs, files or folders: keep these; all others
are in the checkpoint as in the one before, and a rewind to it touches what is named alone,
and no tasks.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			made := func(store *lifecycle.Store, e *checkpoint.Entry) error {
				row := (&chain{}).row(e)
				row.Pinned = pin
				if err := a.warnUnrecorded(store, e); err != nil {
					return err
				}
				if a.out.machine() {
					return a.printJSON(row)
				}
				fmt.Fprintf(a.stderr, "checkpoint %s%s\n", numbered(e), ofList(e))
				_, err := fmt.Fprintln(a.stdout, e.Number)
				return err
			}
			alone, err := a.sessionless(name)
			if err != nil {
				return err
			}
			if alone {
				return a.editStore(func(store *lifecycle.Store) error {
					only, err := a.listed(store.Project().Name(), args)
					if err != nil {
						return err
					}
					e, err := store.Checkpoint(cmd.Context(), only, pin)
					if err != nil {
						return usageIf(err, lifecycle.ErrInvalid)
					}
					return made(store, e)
				})
			}
			return a.editSession(cmd.Context(), name, false, func(store *lifecycle.Store, sess *lifecycle.Session) error {
				only, err := a.listed(sess.State().Header().Worktree.Folder(store.Project().Name()), args)
				if err != nil {
					return err
				}
				e, err := checkpointOf(cmd.Context(), sess, only)
				if err == nil && pin {
					err = sess.PinCheckpoint(cmd.Context(), e.ID, true)
				}
				if err != nil {
					return usageIf(err, lifecycle.ErrInvalid)
				}
				return made(store, e)
			})
		},
	})
	sessionFlag(cmd, &name)
	cmd.Flags().BoolVar(&pin, "pin", false, "keep it when checkpoints beyond the limit are removed")
	return cmd
}

// checkpointOf makes a checkpoint of some paths, or of all files for nil.
func checkpointOf(ctx context.Context, sess *lifecycle.Session, only []string) (e *checkpoint.Entry, err error) {
	if only == nil {
		e, _, err = sess.Checkpoint(ctx, checkpoint.Manual, "")
	} else {
		e, _, err = sess.CheckpointOf(ctx, only)
	}
	return e, err
}

// listed turns the paths of a checkpoint from where the command was called into paths of a folder,
// and names those at which nothing is; nil for none.
func (a *app) listed(folder string, args []string) (only []string, err error) {
	for _, arg := range args {
		path, err := a.within(folder, arg)
		if err != nil {
			return nil, err
		}
		if _, err := os.Lstat(filepath.Join(folder, filepath.FromSlash(path))); errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(a.stderr, "nothing is at %s: a rewind removes what comes there\n", shown(path))
		}
		only = append(only, path)
	}
	return only, nil
}

// ofList is what a line says of a checkpoint of a list.
func ofList(e *checkpoint.Entry) string {
	if e.Only == nil {
		return ""
	}
	return " of " + firstOf(e.Only) + " alone"
}
