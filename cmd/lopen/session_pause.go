package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

func newSessionPause(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "pause [ID]",
		Short: "Pause a session after its current task, from another terminal",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.editNamed(args, func(store *lifecycle.Store, id session.ID) error {
				if err := a.refuseAgents(store, id); err != nil {
					return err
				}
				asked, err := store.RequestPause(cmd.Context(), id)
				if err != nil {
					return err
				}
				if asked {
					fmt.Fprintf(a.stderr, "session %s pauses after its current task\n", id)
					return nil
				}
				st, _, err := store.Read(id)
				if err == nil {
					fmt.Fprintf(a.stderr, "session %s is %s\n", id, st.Status())
				}
				return err
			})
		},
	}
}
