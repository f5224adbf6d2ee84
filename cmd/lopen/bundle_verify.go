package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/plain"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
)

// verifiedRow is what `bundle verify --json` prints.
type verifiedRow struct {
	File   string        `json:"file"`
	Intact bool          `json:"intact"`
	Error  string        `json:"error,omitempty"`
	Has    *carry.Report `json:"has,omitempty"`
}

func newBundleVerify(a *app) *cobra.Command {
	var keys *keyFlags
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "verify FILE",
		Short: "Check a file of session export, without importing it",
		Long: `Check a file of session export as an import does, without importing it: every hash, every
session, every checkpoint with all that it needs. FILE may be - for stdin. Exit code 3
means that an import would refuse it.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			row := verifiedRow{File: args[0]}
			err := a.openBundle(cmd.Context(), args[0], keys, func(r *bundle.Reader) error {
				temp, err := os.MkdirTemp("", "lopen-verify-")
				if err != nil {
					return err
				}
				row.Has, err = lifecycle.VerifyBundle(cmd.Context(), r, temp)
				return errors.Join(err, os.RemoveAll(temp))
			})
			refused := err != nil && (errors.Is(err, lifecycle.ErrCorrupt) || errors.Is(err, lifecycle.ErrFutureVersion) || errors.Is(err, lifecycle.ErrInvalid))
			if err != nil && !refused {
				return err
			}
			if row.Intact = err == nil; !row.Intact {
				row.Error = err.Error()
			}
			if a.out.machine() {
				if perr := a.printJSON(row); perr != nil {
					return perr
				}
			} else if row.Intact {
				a.showArrived(row.Has)
				fmt.Fprintf(a.stderr, "%s is intact\n", shown(row.File))
			}
			if err != nil {
				return &problemsError{plain.Line(err.Error())}
			}
			return nil
		},
	})
	keys = a.keyFlags(cmd, false)
	return cmd
}
