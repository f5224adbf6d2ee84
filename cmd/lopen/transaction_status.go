package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/sidecar"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newTransactionStatus(a *app) *cobra.Command {
	return a.jsonFlags(&cobra.Command{
		Use:   "status [ID]",
		Short: "Show what has become of a transaction",
		Long:  "Show what has become of a transaction. ID is its own or that of its session; without one it is that of the newest session.",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.readTransaction(args, func(all *transactions, t *sidecar.Transaction) error {
				st := all.Status(cmd.Context(), t, all.chain())
				if a.out.machine() {
					if err := a.printJSON(st); err != nil {
						return err
					}
				} else {
					a.showTransaction(all, st)
				}
				if st.Problem != "" {
					return &problemsError{st.Problem}
				}
				return nil
			})
		},
	})
}

func (a *app) showTransaction(all *transactions, st sidecar.Status) {
	w := a.stdout
	fmt.Fprintf(w, "transaction  %s\nstate        %s\nsession      %s\n", st.ID, plain.Line(string(st.State)), plain.Line(st.Session))
	if st.Origin != "" {
		fmt.Fprintf(w, "continues    %s\n", plain.Line(st.Origin))
	}
	fmt.Fprintf(w, "begun        %s, at checkpoint %s\n", st.Begun.Local().Format(time.DateTime), st.Begin.Short())
	if !st.Ended.IsZero() {
		fmt.Fprintf(w, "ended        %s\n", st.Ended.Local().Format(time.DateTime))
	}
	fmt.Fprintf(w, "side-car     %s\nbranch       %s\n", plain.Line(all.sidecarPath()), st.Branch)
	if st.Tip != "" {
		fmt.Fprintf(w, "tip          %s\n", st.Tip)
	}
	if st.Commit != "" {
		fmt.Fprintf(w, "commit       %s\n", plain.Line(st.Commit))
	}
	if st.State == sidecar.InProgress {
		fmt.Fprintf(a.stderr, "end it: lopen transaction commit %s, or rollback\n", plain.Quote(st.ID))
	}
}

// A transactionView shows the transactions of sessions. Git and the checkpoints are read once, and
// a git that hangs is waited for once, shortly: then the manifests tell.
type transactionView struct {
	*app
	store *lifecycle.Store
	all   *transactions // nil until it is needed
	chain []*checkpoint.Entry
}

// of is what has become of a session's transaction; nil where id is "" or it is not known here.
func (v *transactionView) of(ctx context.Context, session, id string) *sidecar.Status {
	if id == "" {
		return nil
	}
	if v.all == nil {
		all, err := v.transactions(v.store, 5*time.Second)
		if err != nil {
			return nil
		}
		v.all, v.chain = all, all.chain()
	}
	t, err := v.all.ofSession(id, session)
	if err != nil {
		return nil
	}
	st := v.all.Status(ctx, t, v.chain)
	return &st
}

func (v *transactionView) close() {
	if v.all != nil {
		_ = v.all.Close()
	}
}
