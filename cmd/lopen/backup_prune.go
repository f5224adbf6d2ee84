package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle/backup"
	"github.com/lopen-dev/lopen/writer/plain"
)

// goneRow is what `backup prune --json` prints of a backup.
type goneRow struct {
	Number uint64 `json:"number"`
	Why    string `json:"why"`
}

func newBackupPrune(a *app) *cobra.Command {
	var keys *keyFlags
	var dryRun bool
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "prune FOLDER",
		Short: "Remove backups beyond the limits, and what no backup needs",
		Long: `Remove backups beyond the limits, the oldest first: backup_retention, backup_days, backup_bytes;
lopen config show. Then remove what no backup needs. The newest always stays.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, values, err := a.here()
			if err != nil {
				return err
			}
			return a.openBackup(cmd.Context(), args[0], keys, func(f *backup.Folder) error {
				gone, freed, err := f.Prune(cmd.Context(), backupRetention(values), dryRun)
				return errors.Join(a.printGone(gone, freed, dryRun), err)
			})
		},
	})
	keys = a.keyFlags(cmd, false)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would go, and why")
	return cmd
}

func (a *app) printGone(gone []backup.Gone, freed int64, dryRun bool) error {
	rows := []goneRow{}
	for _, g := range gone {
		rows = append(rows, goneRow{g.Number, g.Why})
	}
	if a.out.machine() {
		return a.printJSON(rows)
	}
	for _, r := range rows {
		fmt.Fprintf(a.stdout, "%d\t%s\n", r.Number, r.Why)
	}
	if dryRun {
		fmt.Fprintf(a.stderr, "%s would go\n", plain.Some(len(rows), "backup"))
	} else {
		fmt.Fprintf(a.stderr, "%s went, %s freed\n", plain.Some(len(rows), "backup"), bytesText(freed))
	}
	return nil
}
