package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newSessionPush(a *app) *cobra.Command {
	var all, again bool
	cmd := &cobra.Command{
		Use:   "push [ID...]",
		Short: "Send sessions to the fleet now, and wait until it has them",
		Long: `Send sessions to the fleet now, and wait until it has them: the newest one, those that are named,
or with --all every one that nobody holds. A run sends its own session while it works, so this
is for what was done before the fleet was joined, and while it could not be reached.

One that the fleet had and has no more, because it was deleted there or an older backup was put
back, is sent again only with --again.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return usagef("give IDs or --all")
			}
			return a.inFleet(func(_ string, f *fleet.Fleet) error {
				return a.editStore(func(store *lifecycle.Store) error {
					ids, err := toPush(store, args, all)
					if err != nil {
						return err
					}
					if again {
						for _, id := range ids {
							if _, err := f.Find(cmd.Context(), id.String()); !errors.Is(err, fleet.ErrNotFound) {
								return cmp.Or(err, fmt.Errorf("session %s is in the fleet: without --again its newer records are sent", id))
							}
							if err := f.Forget(store, id); err != nil {
								return err
							}
						}
					}
					return a.pushAll(cmd.Context(), f, store, ids, all)
				})
			})
		},
	}
	cmd.Flags().BoolVar(&again, "again", false, "what the fleet had and has no more, from the beginning")
	cmd.Flags().BoolVar(&all, "all", false, "every session that nobody holds")
	return cmd
}

func toPush(store *lifecycle.Store, args []string, all bool) (ids []session.ID, err error) {
	if all {
		infos, err := store.List()
		for _, i := range infos {
			if i.Err == nil {
				ids = append(ids, i.ID)
			}
		}
		return ids, err
	}
	if len(args) == 0 {
		args = []string{""}
	}
	for _, name := range args {
		id, err := store.Resolve(name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// pushAll sends sessions one after the other. With all those that somebody holds are left out: their
// holder sends them.
func (a *app) pushAll(ctx context.Context, f *fleet.Fleet, store *lifecycle.Store, ids []session.ID, all bool) error {
	var errs []error
	for _, id := range ids {
		n, err := push(ctx, f, store, id)
		switch {
		case all && errors.Is(err, lifecycle.ErrBusy):
		case errors.As(err, new(*fleet.FencedError)):
			errs = append(errs, &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("%v\n  take theirs: lopen session pull %s, which keeps what was done here as a session of its own", err, id)})
		case err != nil:
			errs = append(errs, fmt.Errorf("push session %s: %w", id, fleetError(f, err)))
			if ctx.Err() != nil || fleet.Foreign(err) {
				return errors.Join(errs...)
			}
		default:
			fmt.Fprintf(a.stdout, "%s\t%s\n", id, plain.Some(int(n), "record"))
		}
	}
	return errors.Join(errs...)
}

// push takes a session's lease here and sends what the fleet lacks. It returns the last record.
func push(ctx context.Context, f *fleet.Fleet, store *lifecycle.Store, id session.ID) (seq uint64, err error) {
	s, err := store.Open(id)
	if err != nil {
		return 0, err
	}
	sess, err := f.Ship(store, s)
	if err != nil {
		return 0, errors.Join(err, closeStore(s))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // the first error ends the wait: a person is there who can try again
		for {
			select {
			case <-ctx.Done():
				return
			case <-sess.Moved():
				if err := sess.Err(); err != nil {
					cancel(err)
				}
			}
		}
	}()
	err = sess.Replicated(ctx)
	if err != nil && sess.Err() != nil {
		err = sess.Err()
	}
	seq, _ = sess.Lag()
	return seq, errors.Join(err, closeStore(sess))
}
