package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/writer/crypt"
	"github.com/lopen-dev/lopen/writer/mount"
	"github.com/lopen-dev/lopen/writer/plain"
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
means that an import would refuse it, or that a session in it is damaged and can be used.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			has, err := a.verifyBundle(cmd.Context(), args[0], keys)
			if err != nil && !refused(err) {
				return err
			}
			row := verifiedRow{File: args[0], Intact: err == nil, Has: has}
			if err != nil {
				row.Error = err.Error()
			}
			if a.out.machine() {
				if perr := a.printJSON(row); perr != nil {
					return perr
				}
			} else if has != nil {
				a.showArrived(has)
			}
			if err != nil {
				return &problemsError{plain.Line(err.Error())}
			}
			if !a.out.machine() {
				fmt.Fprintf(a.stderr, "%s is intact\n", shown(row.File))
			}
			return nil
		},
	})
	keys = a.keyFlags(cmd, false)
	return cmd
}

// verifyBundle returns what a bundle has, also with an error about a session that is not intact.
func (a *app) verifyBundle(ctx context.Context, name string, keys *keyFlags) (has *carry.Report, err error) {
	err = a.openBundle(ctx, name, keys, func(r *bundle.Reader) error {
		temp, err := os.MkdirTemp("", "lopen-verify-")
		if err != nil {
			return err
		}
		has, err = lifecycle.VerifyBundle(ctx, r, temp)
		return errors.Join(err, mount.RemoveAll(temp))
	})
	if err != nil {
		return nil, err
	}
	for _, s := range has.Sessions {
		if s.Condition != string(repair.Intact) {
			return has, &problemsError{fmt.Sprintf("%s can be imported, and session %s is %s, as it was where it comes from", shown(name), s.Was, s.Condition)}
		}
	}
	return has, nil
}

// refused reports whether an error is one of the bundle, and not of the way to it.
func refused(err error) bool {
	if errors.As(err, new(*usageError)) || errors.Is(err, crypt.ErrKey) {
		return false
	}
	return errors.As(err, new(*problemsError)) || errors.Is(err, lifecycle.ErrCorrupt) || errors.Is(err, lifecycle.ErrFutureVersion) || errors.Is(err, lifecycle.ErrInvalid)
}
