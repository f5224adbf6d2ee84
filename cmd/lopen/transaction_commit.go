package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/sidecar"
)

func newTransactionCommit(a *app) *cobra.Command {
	var remake, force bool
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "commit [ID]",
		Short: "End a transaction: its changes become one commit on main of the side-car",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var t *sidecar.Transaction
			if err := a.readTransaction(args, func(_ *transactions, found *sidecar.Transaction) error {
				t = found
				return nil
			}); err != nil {
				return err
			}
			return a.editTransaction(cmd.Context(), t, false, func(all *transactions, t *sidecar.Transaction, sess *lifecycle.Session) error {
				st := all.Status(cmd.Context(), t, all.chain())
				if st.State == sidecar.RolledBack {
					return &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("transaction %s was rolled back%s", t.ID, undoOf(t))}
				}
				src, done, err := all.source(sess)
				if err != nil {
					return err
				}
				defer done()
				if remake && st.State == sidecar.InProgress {
					if err := all.Remake(cmd.Context(), t, src); err != nil {
						return err
					}
				}
				p := sess.State().Progress()
				id, err := all.Commit(cmd.Context(), t, src, fmt.Sprintf("%s, %d/%d tasks", sess.ID(), p.Done, p.Total), force)
				all.warnLeft(a.stderr)
				if err != nil {
					return err
				}
				if err := sess.PinCheckpoint(cmd.Context(), t.Begin, false); err != nil {
					a.logger.Debug().Err(err).Msg("the checkpoint at the begin stays pinned")
				}
				if a.out.machine() {
					return a.printJSON(all.Status(cmd.Context(), t, nil))
				}
				fmt.Fprintf(a.stdout, "%s\n", id)
				fmt.Fprintf(a.stderr, "transaction %s is committed on main of %s\n", t.ID, all.sidecarPath())
				return nil
			})
		},
	})
	cmd.Flags().BoolVar(&force, "force", false, "where main has other changes of the same lines, give it all files as the transaction has them")
	cmd.Flags().BoolVar(&remake, "remake", false, "first make again from the checkpoints what is missing of the side-car")
	return cmd
}
