package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
)

func newCheckpointCreate(a *app) *cobra.Command {
	var name string
	var pin bool
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "create",
		Short: "Keep the project's files as they are",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.editSession(cmd.Context(), name, false, func(store *lifecycle.Store, sess *lifecycle.Session) error {
				e, _, err := sess.Checkpoint(cmd.Context(), checkpoint.Manual, "")
				if err == nil && pin {
					err = sess.PinCheckpoint(cmd.Context(), e.ID, true)
				}
				if err != nil {
					return err
				}
				row := (&chain{}).row(e)
				row.Pinned = pin
				if err := a.warnUnrecorded(store, e); err != nil {
					return err
				}
				if a.out.machine() {
					return a.printJSON(row)
				}
				fmt.Fprintf(a.stderr, "checkpoint %s\n", numbered(e))
				_, err = fmt.Fprintln(a.stdout, e.Number)
				return err
			})
		},
	})
	sessionFlag(cmd, &name)
	cmd.Flags().BoolVar(&pin, "pin", false, "keep it when checkpoints beyond the limit are removed")
	return cmd
}
