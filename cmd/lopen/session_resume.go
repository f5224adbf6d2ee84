package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func newSessionResume(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "resume [ID]",
		Short: "Go on with a session, or end the wait of a run: lopen run, with what the session remembers",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := a.open()
			if err != nil {
				return err
			}
			id, err := resolveArg(store, args)
			woken := false
			if err == nil && a.refuseInside(store) == nil {
				woken, err = store.RequestWake(cmd.Context(), id)
			}
			if err = errors.Join(err, closeStore(store)); err != nil {
				return err
			}
			if woken {
				fmt.Fprintf(a.stderr, "session %s waits no longer: its run goes on\n", id)
				return nil
			}
			r := runCall{app: a, runFlags: runFlags{resume: id.String()}, module: id.Module}
			return r.run(cmd.Context())
		},
	}
}
