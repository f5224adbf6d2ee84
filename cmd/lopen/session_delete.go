package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache/search"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newSessionDelete(a *app) *cobra.Command {
	var yes, completed, all, inFleet bool
	cmd := &cobra.Command{
		Use:   "delete [ID]",
		Short: "Delete a session for good",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (completed || all) || completed && all {
				return usagef("give one ID, --all-completed or --all")
			}
			if inFleet {
				return a.deleteInFleet(cmd.Context(), args, yes)
			}
			return a.editStore(func(store *lifecycle.Store) error {
				ids, err := a.toDelete(store, args, all)
				if err != nil {
					return err
				}
				remove := store.Delete
				if completed {
					remove = store.DeleteCompleted
				}
				if !yes {
					if err := a.confirm(cmd.Context(), store, ids); err != nil {
						return err
					}
				}
				err = a.deleteAll(cmd.Context(), remove, ids, len(args) == 1)
				// The search index has what was said in them; the next search makes another.
				_, cleared := search.Clear(store.Path())
				return errors.Join(err, cleared)
			})
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&yes, "yes", "y", false, "do not ask")
	f.BoolVar(&completed, "all-completed", false, "delete every completed session that nobody holds")
	f.BoolVar(&all, "all", false, "delete every session that nobody holds")
	fleetFlag(cmd, &inFleet)
	cmd.MarkFlagsMutuallyExclusive("fleet", "all")
	cmd.MarkFlagsMutuallyExclusive("fleet", "all-completed")
	return cmd
}

// deleteInFleet deletes a session from the fleet. What is here of it stays.
func (a *app) deleteInFleet(ctx context.Context, args []string, yes bool) error {
	return a.inFleet(func(_ string, f *fleet.Fleet) error {
		x, err := f.Find(ctx, args[0])
		if err != nil {
			return err
		}
		switch {
		case x.ID.String() != args[0] && !a.interactive():
			return usagef("%q is not a whole ID: give %s", args[0], x.ID)
		case !yes && !a.interactive():
			return usagef("this deletes session %s for good: say --yes", x.ID)
		case !yes:
			agreed, err := a.agreed(ctx, fmt.Sprintf("Delete %s, %d/%d tasks, %s, from the fleet for good?", x.ID, x.Progress.Done, x.Progress.Total, bytesText(x.Bytes)))
			if err != nil || !agreed {
				return cmp.Or(err, errors.New("nothing was deleted"))
			}
		}
		if err := f.Delete(ctx, &x); err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "%s\n", x.ID)
		_, freed, err := f.Sweep(ctx)
		fmt.Fprintf(a.stderr, "%s of records and %s of contents freed\n", bytesText(x.Bytes), bytesText(freed))
		return err
	})
}

// toDelete finds what is meant. What deletes takes a prefix on a terminal only,
// where the full ID is shown before anything happens.
func (a *app) toDelete(store *lifecycle.Store, args []string, all bool) (ids []session.ID, err error) {
	if len(args) == 1 {
		id, err := store.Resolve(args[0])
		if err != nil {
			return nil, err
		}
		if id.String() != args[0] && !a.interactive() {
			return nil, usagef("%q is not a whole ID: give %s", args[0], id)
		}
		return []session.ID{id}, nil
	}
	infos, err := store.List()
	if err != nil {
		return nil, err
	}
	for _, info := range infos {
		if owner, err := store.Holder(info.ID); err != nil || owner != nil {
			continue
		}
		if !all { // what a listing shows may lag behind
			if info.Err != nil || info.Status != session.StatusComplete {
				continue
			}
			if st, _, err := store.Read(info.ID); err != nil || st.Status() != session.StatusComplete {
				continue
			}
		}
		ids = append(ids, info.ID)
	}
	return ids, nil
}

func (a *app) confirm(ctx context.Context, store *lifecycle.Store, ids []session.ID) error {
	if len(ids) == 0 {
		return nil
	}
	if !a.interactive() {
		return usagef("this deletes %s for good: say --yes", plain.Some(len(ids), "session"))
	}
	for _, id := range ids {
		fmt.Fprintf(a.stderr, "%s  %s\n", id, bytesText(store.Bytes(id)))
	}
	yes, err := a.agreed(ctx, fmt.Sprintf("Delete %s for good?", plain.Some(len(ids), "session")))
	if err == nil && !yes {
		err = errors.New("nothing was deleted")
	}
	return err
}

func (a *app) deleteAll(ctx context.Context, remove func(context.Context, session.ID) (int64, error), ids []session.ID, one bool) error {
	var total int64
	var errs []error
	for _, id := range ids {
		var bytes int64
		if err := afterHook(ctx, func() (err error) { bytes, err = remove(ctx, id); return err }); err != nil {
			if one || !errors.Is(err, lifecycle.ErrBusy) && !errors.Is(err, lifecycle.ErrNotFound) && !errors.Is(err, lifecycle.ErrNotComplete) {
				errs = append(errs, err)
			}
			continue
		}
		total += bytes
		fmt.Fprintf(a.stdout, "%s\n", id)
	}
	if total > 0 || len(errs) == 0 {
		fmt.Fprintf(a.stderr, "%s freed\n", bytesText(total))
	}
	return errors.Join(errs...)
}
