package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newTrustRevoke(a *app) *cobra.Command {
	everything := false
	cmd := &cobra.Command{
		Use:   "revoke [PROJECT]",
		Short: "Forget what you approved and set for this project, or for one that the list names",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := a.approvals()
			if err != nil {
				return err
			}
			var here trust.Project
			match, of := func(trust.Project) bool { return true }, "all projects"
			switch {
			case everything && len(args) > 0:
				return usagef("give one PROJECT or --all")
			case everything:
			case len(args) == 0:
				project, err := a.project()
				if err != nil {
					return err
				}
				here = a.known(cmd.Context(), project)
			default:
				if here.Folder, err = filepath.Abs(args[0]); err != nil {
					return err
				}
			}
			if !everything {
				match, of = here.Is, here.Folder
			}
			n, err := store.Revoke(match)
			set, serr := store.ForgetHere(match)
			if !errors.Is(err, serr) { // else it is the same one
				err = errors.Join(err, serr)
			}
			if n += set; n == 0 && err == nil {
				return fmt.Errorf("approvals of %s: %w; see lopen trust list", of, lifecycle.ErrNotFound)
			}
			fmt.Fprintf(a.stderr, "revoked: %d approvals of %s\n", n, plain.Line(of))
			return err
		},
	}
	cmd.Flags().BoolVar(&everything, "all", false, "of all projects")
	return cmd
}
