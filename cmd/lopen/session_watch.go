package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

func newSessionWatch(a *app) *cobra.Command {
	var inFleet bool
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "watch [ID]",
		Short: "Follow a session as it goes on, until it is complete or Ctrl-C",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if inFleet {
				return a.watchFleet(cmd.Context(), args)
			}
			return a.readSession(args, func(store *lifecycle.Store, id session.ID) (err error) {
				st, seq, err := store.Read(id)
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
				recordPrinter := &recordPrinter{w: a.stdout, of: readTurns(store, id)}
				err = store.Watch(cmd.Context(), id, seq-1, func(r record.Record) error {
					if a.out.machine() {
						err = a.printJSON(newRecordRow(r))
					} else {
						if recordPrinter.of.st != nil {
							recordPrinter.of = readTurns(store, id) // a prompt may be new
						}
						err = recordPrinter.print(r)
					}
					if completes(store, id, &r) || r.Seq == seq && st.Status() == session.StatusComplete {
						err = errors.Join(err, errComplete)
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
	fleetFlag(cmd, &inFleet)
	return cmd
}

// watchFleetEvery is the pause between two questions to the fleet.
const watchFleetEvery = 2 * time.Second

// watchFleet follows a session of the fleet.
func (a *app) watchFleet(ctx context.Context, args []string) error {
	err := a.readFleet(ctx, args, func(f *fleet.Fleet, x *fleet.Found, store *lifecycle.Store, id session.ID) error {
		st, seq, err := store.Read(id)
		if err != nil {
			return err
		}
		lines := &recordPrinter{w: a.stdout, of: readTurns(store, id)}
		tick := time.NewTicker(watchFleetEvery)
		defer tick.Stop()
		for last := seq - 1; ; {
			last, err = f.Records(ctx, x, last, func(r record.Record) error {
				show := lines.print
				if a.out.machine() {
					show = func(r record.Record) error { return a.printJSON(newRecordRow(r)) }
				}
				err := show(r)
				if completes(store, id, &r) || r.Seq == seq && st.Status() == session.StatusComplete {
					err = errors.Join(err, errComplete)
				}
				return err
			})
			if fleet.Foreign(err) && ctx.Err() == nil { // the database comes back
				a.logger.Warn().Err(err).Msg("the fleet cannot be asked; trying again")
				err = nil
			}
			if err != nil {
				return err
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return nil
			}
		}
	})
	if errors.Is(err, errComplete) {
		return nil
	}
	return err
}

// completes reports whether a session is complete with a record. One that has the whole State says only
// that the status changed.
func completes(store *lifecycle.Store, id session.ID, r *record.Record) bool {
	if r.Snapshot != nil && r.Snapshot.Counts[record.OpStatusChanged] > 0 {
		st, err := store.ReadAt(id, r.Seq)
		return err == nil && st.Status() == session.StatusComplete
	}
	return slices.ContainsFunc(r.Ops, func(op record.Op) bool {
		return op.Name == record.OpStatusChanged && op.To == string(session.StatusComplete)
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
				what := "nobody runs it; go on with: lopen run " + id.Module
				if st.Header().Origin != session.OriginRun {
					what = "the agent ended in a turn; its next prompt resumes it"
				}
				fmt.Fprintf(a.stderr, "session %s is interrupted: %s\n", id, what)
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
