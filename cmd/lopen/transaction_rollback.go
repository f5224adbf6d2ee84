package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/sidecar"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newTransactionRollback(a *app) *cobra.Command {
	rf := rewindFlags{scope: "both"}
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "rollback [ID]",
		Short: "End a transaction: rewind files and tasks to its begin; lopen undo takes it back",
		Long:  "End a transaction by a rewind of files and tasks to the checkpoint at its begin." + rewindLong,
		Args:  cobra.MaximumNArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return a.rollback(cmd.Context(), rf, args) },
	})
	rf.addHow(cmd)
	return cmd
}

// rollback rewinds to the begin of a transaction and notes that. A crash between the two
// leaves a transaction in progress that has nothing to roll back.
func (a *app) rollback(ctx context.Context, rf rewindFlags, args []string) error {
	var t *sidecar.Transaction
	if err := a.readTransaction(args, func(all *transactions, found *sidecar.Transaction) error {
		t = found
		return inProgress(ctx, all, t)
	}); err != nil {
		return err
	}
	rf.session = t.Session
	r, agreed, err := a.planRewind(ctx, rf, t.Begin.String(), nil)
	if err != nil || !agreed {
		return err
	}
	return a.editTransaction(ctx, t, rf.force, func(all *transactions, t *sidecar.Transaction, sess *lifecycle.Session) error {
		if err := inProgress(ctx, all, t); err != nil {
			return err
		}
		done, err := r.do(ctx, sess)
		if err != nil {
			return err
		}
		before := t.Rewound(all.chain()) // if nothing changes, an earlier rewind did it
		if done.Before != nil {
			before = done.Before.Number
		}
		if err := all.RolledBack(ctx, t, before); err != nil {
			return fmt.Errorf("the files are rolled back, and the transaction does not say so: give the command again: %w", err)
		}
		what := "is rolled back"
		if before == 0 {
			what = "had nothing to roll back: nothing was changed, and it has ended"
		}
		fmt.Fprintf(a.stderr, "transaction %s %s\n", t.ID, what)
		return nil
	})
}

// inProgress returns an error for a transaction that has ended.
func inProgress(ctx context.Context, all *transactions, t *sidecar.Transaction) error {
	st := all.Status(ctx, t, all.chain())
	if st.State == sidecar.InProgress {
		return nil
	}
	what := undoOf(t)
	if st.State == sidecar.Committed {
		what = " and stays on main of the side-car; to bring the files back: lopen checkpoint rewind " + t.Begin.Short()
	}
	return &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("transaction %s is %s%s", t.ID, st.State, what)}
}

// undoOf is how a rollback is taken back; "" where it changed nothing.
func undoOf(t *sidecar.Transaction) string {
	if t.Before == 0 {
		return ""
	}
	return fmt.Sprintf(": lopen undo --session %s takes that back", plain.Quote(t.Session))
}
