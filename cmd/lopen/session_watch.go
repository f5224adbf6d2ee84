package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

func newSessionWatch(a *app) *cobra.Command {
	return a.jsonFlags(&cobra.Command{
		Use:   "watch [ID]",
		Short: "Follow a session as it goes on, until it is complete or Ctrl-C",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.readSession(args, func(store *lifecycle.Store, id session.ID) (err error) {
				_, seq, err := store.Read(id)
				if err != nil {
					return err
				}
				ctx, cancel := context.WithCancel(cmd.Context())
				watching := make(chan struct{})
				go func() {
					defer close(watching)
					a.reportInterrupted(ctx, store, id)
				}()
				defer func() { cancel(); <-watching }()
				recordPrinter := &recordPrinter{w: a.stdout}
				err = store.Watch(cmd.Context(), id, seq-1, func(r record.Record) error {
					if a.out.machine() {
						err = a.printJSON(newRecordRow(r))
					} else {
						err = recordPrinter.print(r)
					}
					for _, op := range r.Ops {
						if op.Name == record.OpStatusChanged && op.To == string(session.StatusComplete) {
							err = errors.Join(err, errComplete)
						}
					}
					return err
				})
				if errors.Is(err, errComplete) {
					return nil
				}
				return err
			})
		},
	})
}

// reportInterrupted reports each time that a session is found interrupted, until ctx ends:
// there is no record of that.
func (a *app) reportInterrupted(ctx context.Context, store *lifecycle.Store, id session.ID) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for reported := false; ; {
		owner, err := store.Holder(id)
		held := owner != nil || err != nil
		if !held && !reported {
			st, _, err := store.Read(id)
			if reported = err == nil && st.Status().Seen(held) == session.StatusInterrupted; reported {
				fmt.Fprintf(a.stderr, "session %s is interrupted: nobody runs it; go on with: lopen run %s\n", id, id.Module)
			}
		}
		reported = reported && !held
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// errComplete ends a watch.
var errComplete = errors.New("the session is complete")
