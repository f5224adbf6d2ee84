package main

import (
	"errors"
	"fmt"

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
		Use:   "create",
		Short: "Keep the project's files as they are",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			made := func(store *lifecycle.Store, e *checkpoint.Entry) error {
				row := (&chain{}).row(e)
				row.Pinned = pin
				if err := a.warnUnrecorded(store, e); err != nil {
					return err
				}
				if a.out.machine() {
					return a.printJSON(row)
				}
				fmt.Fprintf(a.stderr, "checkpoint %s\n", numbered(e))
				_, err := fmt.Fprintln(a.stdout, e.Number)
				return err
			}
			alone, err := a.sessionless(name)
			if err != nil {
				return err
			}
			if alone {
				return a.editStore(func(store *lifecycle.Store) error {
					e, err := store.Checkpoint(cmd.Context(), pin)
					if err != nil {
						return err
					}
					return made(store, e)
				})
			}
			return a.editSession(cmd.Context(), name, false, func(store *lifecycle.Store, sess *lifecycle.Session) error {
				e, _, err := sess.Checkpoint(cmd.Context(), checkpoint.Manual, "")
				if err == nil && pin {
					err = sess.PinCheckpoint(cmd.Context(), e.ID, true)
				}
				if err != nil {
					return err
				}
				return made(store, e)
			})
		},
	})
	sessionFlag(cmd, &name)
	cmd.Flags().BoolVar(&pin, "pin", false, "keep it when checkpoints beyond the limit are removed")
	return cmd
}
