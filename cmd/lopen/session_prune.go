package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/writer/plain"
)

func retention(v *settings.Values) lifecycle.Retention {
	const day = 24 * time.Hour
	return lifecycle.Retention{
		Sessions: v.SessionRetention,
		Age:      time.Duration(v.RetentionDays) * day,
		Bytes:    int64(v.RetentionBytes),
		Trash:    time.Duration(v.TrashDays) * day,
		Imported: v.ImportRetention,
	}
}

// retiredRow is what `session prune --json` prints of a session.
type retiredRow struct {
	ID      string `json:"id"`
	Why     string `json:"why"`
	Bytes   int64  `json:"bytes"`
	ForGood bool   `json:"forGood"`
	// Marked is when it was found due: a command at least a day later deletes it.
	Marked time.Time `json:"marked,omitzero"`
}

func newSessionPrune(a *app) *cobra.Command {
	var dryRun, inFleet bool
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "prune",
		Short: "Move completed sessions beyond the limits to the trash",
		Long: `Move completed sessions beyond the limits to the trash: session_retention, retention_days,
retention_bytes; lopen config show. What lies there longer than trash_days is marked, and deleted
for good by a command at least a day later: no session goes on the word of one clock.
Active, paused, pinned and held sessions are never touched. With --fleet the same rule says which
sessions are deleted from the fleet, for good, and contents that no session needs go.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if inFleet {
				return a.inFleet(func(project string, f *fleet.Fleet) error {
					values, err := a.projectSettings(project, nil)
					if err != nil {
						return err
					}
					gone, err := f.Prune(cmd.Context(), retention(values), dryRun)
					if err != nil && len(gone) == 0 {
						return err
					}
					return errors.Join(a.printRetired(gone, dryRun), err)
				})
			}
			return a.editStore(func(store *lifecycle.Store) error {
				values, err := a.storeSettings(store, nil)
				if err != nil {
					return err
				}
				gone, err := store.Prune(cmd.Context(), retention(values), dryRun)
				return errors.Join(a.printRetired(gone, dryRun), err)
			})
		},
	})
	fleetFlag(cmd, &inFleet)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would go, why, and how many bytes")
	return cmd
}

func (a *app) printRetired(gone []lifecycle.Retired, dryRun bool) error {
	rows, total, went, waits := []retiredRow{}, int64(0), 0, false
	for _, x := range gone {
		rows = append(rows, retiredRow{ID: x.ID.String(), Why: x.Why, Bytes: x.Bytes, ForGood: x.ForGood, Marked: x.Marked})
		if waits = waits || !x.Marked.IsZero(); x.Marked.IsZero() {
			total, went = total+x.Bytes, went+1
		}
	}
	if a.out.machine() {
		return a.printJSON(rows)
	}
	for _, x := range rows {
		where := "to the trash"
		if x.ForGood {
			where = "deleted"
		}
		if !x.Marked.IsZero() {
			where = "stays, marked on " + x.Marked.Local().Format(time.DateOnly)
		}
		fmt.Fprintf(a.stdout, "%s\t%s\t%s\t%s\n", x.ID, bytesText(x.Bytes), where, x.Why)
	}
	verb := "went"
	if dryRun {
		verb = "would go"
	}
	if waits {
		fmt.Fprintln(a.stderr, "what is marked is deleted by a command at least a day after its mark; lopen session restore ID brings it back")
	}
	fmt.Fprintf(a.stderr, "%s %s, %s\n", plain.Some(went, "session"), verb, bytesText(total))
	return nil
}
