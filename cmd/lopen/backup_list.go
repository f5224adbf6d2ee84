package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle/backup"
	"github.com/lopen-dev/lopen/writer/plain"
)

// snapshotRow is what `backup list --json` prints of a backup.
type snapshotRow struct {
	backup.Snapshot
	Error string `json:"error,omitempty"`
}

func newBackupList(a *app) *cobra.Command {
	var keys *keyFlags
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "list FOLDER",
		Short: "List the backups in a folder",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.openBackup(cmd.Context(), args[0], keys, a.listBackups)
		},
	})
	keys = a.keyFlags(cmd, false)
	return cmd
}

func (a *app) listBackups(f *backup.Folder) error {
	all, err := f.List()
	if err != nil {
		return err
	}
	rows, damaged := []snapshotRow{}, 0
	for _, s := range all {
		row := snapshotRow{Snapshot: s}
		if s.Err != nil {
			damaged++
			row.Error = s.Err.Error()
		}
		rows = append(rows, row)
		if a.out.machine() {
			continue
		}
		if s.Err != nil {
			fmt.Fprintf(a.stdout, "%d\t%s\n", s.Number, plain.Line(row.Error))
			continue
		}
		fmt.Fprintf(a.stdout, "%d\t%s\t%s\t%s\t%s added\t%s\n", s.Number, s.At.Local().Format(time.DateTime), plain.Some(s.Sessions, "session"), bytesText(s.Bytes), bytesText(s.Added), shown(s.Project))
	}
	if a.out.machine() {
		err = a.printJSON(rows)
	}
	if err == nil && damaged > 0 {
		err = &problemsError{fmt.Sprintf("%s cannot be read", plain.Some(damaged, "backup"))}
	}
	return err
}
