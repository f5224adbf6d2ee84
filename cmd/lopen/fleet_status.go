package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// leavePatience is how long leave waits for runs to send no more: for one statement of the database, and a second.
const leavePatience = 30 * time.Second

// leave forgets which fleet a project has joined, and waits until no run sends anything to it. The cursors
// go too: what was not shipped need not stay in the logs for that.
func (a *app) leave(ctx context.Context, project string) error {
	path, _, err := a.joiningFile(project)
	if err != nil {
		return err
	}
	where, name := a.sendsTo(project), ""
	if j, err := a.joined(project); err == nil && j != nil {
		name = j.Project
	}
	if err := os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(a.stderr, "this project had joined no fleet")
		return nil
	} else if err != nil {
		return fmt.Errorf("leave the fleet: %w", err)
	}
	store, err := lifecycle.Open(project, a.storeOptions(project))
	var sending []session.ID
	if err == nil {
		defer release(store)
		waiting, cancel := context.WithTimeout(ctx, leavePatience)
		defer cancel()
		sending, err = fleet.Leave(waiting, store)
	}
	switch {
	case errors.Is(err, lifecycle.ErrNoStore):
	case err != nil:
		return err
	case len(sending) > 0:
		return fmt.Errorf("the fleet is left, and %s may still be sent by a run that is cut off from it; %s ends that", sending[0], plain.Quote("lopen", "session", "pause", sending[0].String()))
	}
	fmt.Fprintf(a.stderr, "left the fleet %s: nothing more is sent\nwhat is there of the project %s stays there: its sessions, plans and files\n  to remove it: join again, and lopen session delete --fleet ID for each\n", where, plain.Line(name))
	return nil
}

// wayToFleet checks what keeps the way to the fleet from others, if the project has joined one. It does not connect.
func (a *app) wayToFleet(project string) []repair.Check {
	f, err := a.fleetOf(project)
	if err != nil {
		return []repair.Check{repair.Failed("fleet", err)}
	}
	if f == nil {
		return nil
	}
	defer f.Close()
	c := repair.Check{Name: "fleet"}
	way, ok := f.Encryption()
	if c.Found = fmt.Sprintf("the way to %s: %s", f.Where(), way); !ok {
		c.Problem, c.Mend = true, fleet.MendEncryption
	}
	return []repair.Check{c}
}

// standingRow is what `fleet status --json` prints of a session.
type standingRow struct {
	ID          string     `json:"id"`
	Incarnation string     `json:"incarnation"`
	Holder      string     `json:"holder,omitempty"` // the host that has the lease, or had it last
	Held        bool       `json:"held"`
	LeaseMs     int64      `json:"leaseMs,omitempty"` // left
	Here        uint64     `json:"here"`              // the last record
	There       uint64     `json:"there"`
	LagRecords  uint64     `json:"lagRecords"`
	LagBytes    int64      `json:"lagBytes"`
	LagMs       int64      `json:"lagMs"` // since the first record that is not there was written
	Error       string     `json:"error,omitempty"`
	ErrorAt     *time.Time `json:"errorAt,omitempty"`
	Restored    string     `json:"restored,omitempty"`
	Fork        string     `json:"fork,omitempty"`
}

func newFleetStatus(a *app) *cobra.Command {
	return a.jsonFlags(&cobra.Command{
		Use:   "status",
		Short: "Say of each session who holds it, and how far it is here and in the fleet",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.inFleet(func(project string, f *fleet.Fleet) error {
				store, err := lifecycle.Open(project, a.storeOptions(project))
				if err != nil && !errors.Is(err, lifecycle.ErrNoStore) {
					return err
				}
				if err == nil {
					defer release(store)
				}
				return a.fleetStatus(cmd.Context(), f, store)
			})
		},
	})
}

func (a *app) fleetStatus(ctx context.Context, f *fleet.Fleet, store *lifecycle.Store) error {
	all, err := f.Standings(ctx, store)
	if err != nil && all == nil {
		return err
	}
	rows, now := []standingRow{}, time.Now()
	for _, s := range all {
		r := standingRow{ID: s.ID.String(), Incarnation: s.Incarnation, Holder: s.Host, Held: s.Held, Here: s.Here, There: s.There,
			LagRecords: s.LagRecords, LagBytes: s.LagBytes, Error: s.Error, Restored: s.Restored, Fork: s.Fork}
		if s.Held {
			r.LeaseMs = s.Left.Milliseconds()
		}
		if !s.LagSince.IsZero() {
			r.LagMs = max(now.Sub(s.LagSince).Milliseconds(), 0)
		}
		if !s.ErrorAt.IsZero() {
			r.ErrorAt = &s.ErrorAt
		}
		rows = append(rows, r)
	}
	if a.out.machine() {
		return errors.Join(a.printJSON(rows), fleetError(f, err))
	}
	if err := a.printStandings(rows); err != nil {
		return err
	}
	if way, ok := f.Encryption(); !ok {
		fmt.Fprintf(a.stderr, "warning: the way to %s: %s; %s\n", f.Where(), way, fleet.MendEncryption)
	}
	if len(rows) == 0 && err == nil {
		fmt.Fprintf(a.stderr, "no session yet in %s, project %s\n", f.Where(), plain.Line(f.Project()))
	}
	if err != nil {
		return &loop.Exit{Code: loop.ExitFailed, Reason: fmt.Sprintf("%s cannot be asked, so this is what is known here: %s", f.Where(), fleet.Explain(err))}
	}
	return nil
}

func (a *app) printStandings(rows []standingRow) error {
	w := io.Writer(a.stdout)
	if a.stdout.Terminal() {
		tw := tabwriter.NewWriter(a.stdout, 0, 4, 2, ' ', 0)
		defer tw.Flush()
		w = tw
	}
	for _, r := range rows {
		holder := "nobody"
		if r.Held {
			holder = plain.Line(r.Holder)
		}
		lag := "all is there"
		switch {
		case r.Here == 0:
			lag = "not here"
		case r.LagRecords > 0:
			lag = fmt.Sprintf("%s, %s behind for %s", plain.Some(int(r.LagRecords), "record"), bytesText(r.LagBytes), (time.Duration(r.LagMs) * time.Millisecond).Round(time.Second))
		}
		if r.There > r.Here && r.Here > 0 {
			lag = "continued elsewhere: lopen session pull " + plain.Quote(r.ID)
		}
		if r.Fork != "" {
			lag += "; what was done here: " + r.Fork
		}
		if r.Restored != "" {
			lag += "; " + r.Restored
		}
		if _, err := fmt.Fprintf(w, "%s\t%s\t%d here\t%d there\t%s\t%s\n", r.ID, holder, r.Here, r.There, plain.Line(lag), plain.Line(r.Error)); err != nil {
			return err
		}
	}
	return nil
}

func newFleetDoctor(a *app) *cobra.Command {
	return a.jsonFlags(&cobra.Command{
		Use:   "doctor",
		Short: "Check the database: version, tables, rights, and what a failover would cost",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.inFleet(func(_ string, f *fleet.Fleet) error {
				checks := f.Doctor(cmd.Context())
				bad := 0
				for _, c := range checks {
					if !c.OK {
						bad++
					}
				}
				if a.out.machine() {
					if err := a.printJSON(checks); err != nil {
						return err
					}
				} else {
					for _, c := range checks {
						line := fmt.Sprintf("ok    %s: %s", c.Name, c.Found)
						if !c.OK {
							line = fmt.Sprintf("look  %s: %s; %s", c.Name, c.Found, c.Mend)
						}
						fmt.Fprintln(a.stdout, plain.Line(line))
					}
				}
				if bad > 0 {
					return &problemsError{plain.Some(bad, "thing") + " to look at"}
				}
				return nil
			})
		},
	})
}
