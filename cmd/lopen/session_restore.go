package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

func newSessionRestore(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "restore [ID]",
		Short: "Take a pruned session out of the trash; without an ID, list what is there",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.editStore(func(store *lifecycle.Store) error {
				if len(args) == 0 {
					all, err := store.Trash()
					for _, x := range all {
						fmt.Fprintf(a.stdout, "%s\t%s\t%s\n", x.ID, bytesText(x.Bytes), x.Why)
					}
					return err
				}
				id, err := session.ParseID(args[0])
				if err != nil {
					return usagef("restore takes a whole ID: %w", err)
				}
				return store.Restore(cmd.Context(), id)
			})
		},
	}
}
