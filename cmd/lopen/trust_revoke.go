package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newTrustRevoke(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke [PROJECT]",
		Short: "Forget all commands that you approved for this project, or for one that the list names",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := a.approvals()
			if err != nil {
				return err
			}
			var here trust.Project
			if len(args) == 0 {
				project, err := a.project()
				if err != nil {
					return err
				}
				here = a.known(cmd.Context(), project)
			} else if here.Folder, err = filepath.Abs(args[0]); err != nil {
				return err
			}
			n, err := store.Revoke(here.Is)
			if n == 0 && err == nil {
				return fmt.Errorf("approvals of %s: %w; see lopen trust list", here.Folder, lifecycle.ErrNotFound)
			}
			fmt.Fprintf(a.stderr, "revoked: %d approvals of %s\n", n, plain.Line(here.Folder))
			return err
		},
	}
}
