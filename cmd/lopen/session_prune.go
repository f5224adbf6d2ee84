package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

func retention(v *settings.Values) lifecycle.Retention {
	const day = 24 * time.Hour
	return lifecycle.Retention{
		Sessions: v.Int("session_retention"),
		Age:      time.Duration(v.Int("retention_days")) * day,
		Bytes:    int64(v.Int("retention_bytes")),
		Trash:    time.Duration(v.Int("trash_days")) * day,
	}
}

// pruneQuietly tidies up at the start of a run. What cannot be moved now is
// tried again by the next one.
func (a *app) pruneQuietly(ctx context.Context, store *lifecycle.Store, v *settings.Values) {
	gone, err := store.Prune(ctx, retention(v), false)
	if err != nil {
		fmt.Fprintf(a.stderr, "warning: prune: %v\n", err)
	}
	moved := 0
	for _, x := range gone {
		if !x.ForGood {
			moved++
		}
	}
	if moved > 0 {
		fmt.Fprintf(a.stderr, "%d completed sessions moved to the trash; lopen session restore ID brings one back for %d days\n", moved, v.Int("trash_days"))
	}
}

// changes is a command that changes the store and not a session's state: it is
// refused inside a run.
func (a *app) changes(fn func(store *lifecycle.Store) error) error {
	return a.changing(lifecycle.Policy{}, fn)
}

// changing is changes on a store with a policy.
func (a *app) changing(policy lifecycle.Policy, fn func(store *lifecycle.Store) error) (err error) {
	project, err := a.project()
	if err != nil {
		return err
	}
	opts := a.storeOptions(project)
	opts.Policy = policy
	store, err := lifecycle.Open(project, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore(store)) }()
	if err := a.refuseInside(store); err != nil {
		return err
	}
	return fn(store)
}

// retiredRow is what `session prune --json` prints of a session.
type retiredRow struct {
	ID      string `json:"id"`
	Why     string `json:"why"`
	Bytes   int64  `json:"bytes"`
	ForGood bool   `json:"forGood"`
}

func newSessionPrune(a *app) *cobra.Command {
	var dryRun bool
	cmd := a.reads(&cobra.Command{
		Use:   "prune",
		Short: "Move completed sessions beyond the limits to the trash",
		Long: `Move completed sessions beyond the limits to the trash: session_retention, retention_days,
retention_bytes; lopen config show. What lies there longer than trash_days is deleted for good.
Active, paused, pinned and held sessions are never touched.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.changes(func(store *lifecycle.Store) error {
				values, err := a.storeSettings(store)
				if err != nil {
					return err
				}
				gone, err := store.Prune(cmd.Context(), retention(values), dryRun)
				return errors.Join(a.printRetired(gone, dryRun), err)
			})
		},
	})
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would go, why, and how many bytes")
	return cmd
}

func (a *app) printRetired(gone []lifecycle.Retired, dryRun bool) error {
	rows, total := []retiredRow{}, int64(0)
	for _, x := range gone {
		rows = append(rows, retiredRow{x.ID.String(), x.Why, x.Bytes, x.ForGood})
		total += x.Bytes
	}
	if a.out.machine() {
		return a.printJSON(rows)
	}
	for _, x := range rows {
		where := "to the trash"
		if x.ForGood {
			where = "deleted"
		}
		fmt.Fprintf(a.stdout, "%s\t%s\t%s\t%s\n", x.ID, bytesText(x.Bytes), where, x.Why)
	}
	verb := "went"
	if dryRun {
		verb = "would go"
	}
	fmt.Fprintf(a.stderr, "%s %s, %s\n", sessions(len(rows)), verb, bytesText(total))
	return nil
}

func sessions(n int) string {
	if n == 1 {
		return "1 session"
	}
	return fmt.Sprintf("%d sessions", n)
}

func bytesText(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

func newSessionDelete(a *app) *cobra.Command {
	var yes, completed, all bool
	cmd := &cobra.Command{
		Use:   "delete [ID]",
		Short: "Delete a session for good",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (completed || all) || completed && all {
				return usagef("give one ID, --all-completed or --all")
			}
			return a.changes(func(store *lifecycle.Store) error {
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
				return a.deleteAll(cmd.Context(), remove, ids, len(args) == 1)
			})
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&yes, "yes", "y", false, "do not ask")
	f.BoolVar(&completed, "all-completed", false, "delete every completed session that nobody holds")
	f.BoolVar(&all, "all", false, "delete every session that nobody holds")
	return cmd
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
		return usagef("this deletes %s for good: say --yes", sessions(len(ids)))
	}
	for _, id := range ids {
		fmt.Fprintf(a.stderr, "%s  %s\n", id, bytesText(store.Bytes(id)))
	}
	answer, err := a.ask(ctx, fmt.Sprintf("Delete %s for good? [y/N] ", sessions(len(ids))))
	if err != nil {
		return err
	}
	if answer != "y" && answer != "Y" && answer != "yes" {
		return errors.New("nothing was deleted")
	}
	return nil
}

func (a *app) deleteAll(ctx context.Context, remove func(context.Context, session.ID) (int64, error), ids []session.ID, one bool) error {
	var total int64
	var errs []error
	for _, id := range ids {
		bytes, err := remove(ctx, id)
		if err != nil {
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

func newSessionRestore(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "restore [ID]",
		Short: "Take a pruned session out of the trash; without an ID, list what is there",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changes(func(store *lifecycle.Store) error {
				if len(args) == 0 {
					all, err := store.Trash()
					for _, x := range all {
						fmt.Fprintf(a.stdout, "%s\t%s\t%s\n", x.ID, bytesText(x.Bytes), x.Why)
					}
					return err
				}
				id, err := session.ParseID(args[0])
				if err != nil {
					return usagef("restore takes a whole ID: %w", err)
				}
				return store.Restore(cmd.Context(), id)
			})
		},
	}
}

func newSessionPin(a *app, pinned bool) *cobra.Command {
	cmd := &cobra.Command{Use: "pin [ID]", Short: "Keep a session from being pruned", Args: cobra.MaximumNArgs(1)}
	if !pinned {
		cmd.Use, cmd.Short = "unpin [ID]", "Let prune take a session again"
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.setMeta(cmd.Context(), args, func(m *lifecycle.Meta) error {
			m.Pinned = pinned
			return nil
		})
	}
	return cmd
}

func newSessionRename(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "rename ID NAME",
		Short: "Give a session a name for people; its ID stays",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.setMeta(cmd.Context(), args[:1], func(m *lifecycle.Meta) error {
				m.Name = args[1]
				return nil
			})
			if errors.Is(err, lifecycle.ErrInvalid) {
				return &usageError{err}
			}
			return err
		},
	}
}

func (a *app) setMeta(ctx context.Context, args []string, change func(*lifecycle.Meta) error) error {
	return a.changes(func(store *lifecycle.Store) error {
		id, err := resolveArg(store, args)
		if err != nil {
			return err
		}
		return store.SetMeta(ctx, id, change)
	})
}
