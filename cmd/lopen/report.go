package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/report"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

func newReport(a *app) *cobra.Command {
	var since string
	var inFleet bool
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "report [ID]",
		Short: "What failed and why, what waited, what is done, what to type",
		Long: `Tell of a night: what failed, with the last lines of its check; what waited, and how
long; which permissions were refused; what is done, and what that used; what to type next.
Without ID it is about the newest session, with --since about all that were active since.
It is Markdown. --json prints an array with an object for each session; its fields are

  session module status ended why from to kills active   which runs, and how they ended
  progress {done total failed skipped}, blocked          tasks, as they are now
  failures  [{task name state message lines kept left commands ...}]
  waits     [{problem agent task said from to open seconds}], waited [{problem waits seconds}]
  takenBack [{task at message}], denied [{text times tasks}]
  done      [{task name state attempts files at ...}], unchanged [IDs]
  totals    {then ...}, lost, next [{what commands}]

where ... is starts seconds inputTokens outputTokens cachedTokens costUSD noCost: exactly the
sums of what "session log --json" has of each start of the command.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.reportOn(cmd.Context(), inFleet, args, since)
		},
	})
	fleetFlag(cmd, &inFleet)
	cmd.Flags().StringVar(&since, "since", "", "only what happened since `WHEN`: 12h, 2d, 2026-02-13, or 2026-02-13T22:00")
	return cmd
}

func (a *app) reportOn(ctx context.Context, inFleet bool, args []string, since string) error {
	from, err := sinceTime(since, time.Now())
	if err != nil {
		return err
	}
	reports := []*report.Report{}
	add := func(store *lifecycle.Store, id session.ID) error {
		r, err := a.report(store, id, from)
		reports = append(reports, r)
		return err
	}
	if len(args) > 0 || since == "" {
		err = a.readSessionIn(ctx, inFleet, args, add)
	} else {
		err = a.eachSince(ctx, inFleet, from, add)
	}
	if err != nil {
		return err
	}
	if a.out.machine() {
		return a.printJSON(reports)
	}
	if len(reports) == 0 {
		fmt.Fprintf(a.stderr, "nothing happened since %s\n", from.Local().Format(time.DateTime))
	}
	for i, r := range reports {
		if i > 0 {
			fmt.Fprintln(a.stdout)
		}
		if err := r.Markdown(a.stdout, time.Local); err != nil {
			return err
		}
	}
	return nil
}

// eachSince calls fn with the sessions that were changed since a time, the oldest first.
func (a *app) eachSince(ctx context.Context, inFleet bool, from time.Time, fn func(*lifecycle.Store, session.ID) error) error {
	if inFleet {
		return a.inFleet(func(_ string, f *fleet.Fleet) error {
			all, err := f.List(ctx, "")
			for _, x := range slices.Backward(all) {
				if err == nil && x.Err == nil && !x.UpdatedAt.Before(from) {
					err = a.fetched(ctx, f, &x, func(store *lifecycle.Store) error { return fn(store, x.ID) })
				}
			}
			return err
		})
	}
	return a.readStore(func(store *lifecycle.Store) error {
		ids, err := activeSince(store, from)
		for _, id := range ids {
			if err == nil {
				err = fn(store, id)
			}
		}
		return err
	})
}

// activeSince are the sessions that were changed since a time, the oldest first.
func activeSince(store *lifecycle.Store, from time.Time) (ids []session.ID, err error) {
	infos, err := store.List()
	if err != nil {
		return nil, err
	}
	for i := len(infos) - 1; i >= 0; i-- {
		if infos[i].Err == nil && !infos[i].UpdatedAt.Before(from) {
			ids = append(ids, infos[i].ID)
		}
	}
	return ids, nil
}

// report makes the report of a session from its log and its State.
func (a *app) report(store *lifecycle.Store, id session.ID, since time.Time) (*report.Report, error) {
	owner, holderErr := store.Holder(id) // before the State: a run that ends in between has paused it
	st, _, err := a.readState(store, id)
	if err != nil {
		return nil, err
	}
	r := report.Reader{Since: since}
	if err := store.Log(id, 0, func(rec record.Record) error { r.Add(rec); return nil }); err != nil {
		return nil, err
	}
	return r.Report(st, owner != nil || holderErr != nil, time.Now()), nil
}

// reportEnd prints the report of a run that ended while nobody watched it.
func (a *app) reportEnd(store *lifecycle.Store, id session.ID) {
	r, err := a.report(store, id, time.Time{})
	if err == nil {
		fmt.Fprintln(a.stderr)
		err = r.Markdown(a.stderr, time.Local)
		fmt.Fprintln(a.stderr)
	}
	if err != nil {
		fmt.Fprintf(a.stderr, "warning: no report: %v\n", err)
	}
}

// sinceTime is the time that --since names; the zero time for "".
func sinceTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04", time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.AddDate(0, 0, -int(n)), nil
		}
	}
	if err != nil || d < 0 {
		return time.Time{}, usagef("--since %q: give a time that is past, like 12h or 2d, or a moment, like 2026-02-13T22:00", text)
	}
	return now.Add(-d), nil
}
