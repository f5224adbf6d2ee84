package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/plain"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
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
}

func newSessionPrune(a *app) *cobra.Command {
	var dryRun, inFleet bool
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "prune",
		Short: "Move completed sessions beyond the limits to the trash",
		Long: `Move completed sessions beyond the limits to the trash: session_retention, retention_days,
retention_bytes; lopen config show. What lies there longer than trash_days is deleted for good.
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
	fmt.Fprintf(a.stderr, "%s %s, %s\n", plain.Some(len(rows), "session"), verb, bytesText(total))
	return nil
}
