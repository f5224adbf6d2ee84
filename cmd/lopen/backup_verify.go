package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/backup"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/writer/mount"
	"github.com/lopen-dev/lopen/writer/plain"
)

// checkedRow is what `backup verify --json` prints of a backup.
type checkedRow struct {
	backup.Snapshot
	Damage []string `json:"damage"`
	More   int      `json:"more,omitempty"` // how much more is damaged
}

func newBackupVerify(a *app) *cobra.Command {
	var keys *keyFlags
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "verify FOLDER [NUMBER]",
		Short: "Read backups to the last byte, and check that they can be restored",
		Long: `Read all backups in a folder, or one, to the last byte, and check the newest of them as a restore
does: every session, every checkpoint with all that it needs. Exit code 3 means damage.
lopen backup FOLDER --reread stores anew what is damaged and still here.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := backupNumber(args[1:])
			if err != nil {
				return err
			}
			return a.openBackup(cmd.Context(), args[0], keys, func(f *backup.Folder) error {
				return a.verifyBackups(cmd.Context(), f, number)
			})
		},
	})
	keys = a.keyFlags(cmd, false)
	return cmd
}

// backupNumber is the number that was typed, 0 if none was.
func backupNumber(args []string) (uint64, error) {
	if len(args) == 0 {
		return 0, nil
	}
	n, err := strconv.ParseUint(args[0], 10, 63)
	if err != nil || n == 0 {
		return 0, usagef("%s is no number of a backup; lopen backup list FOLDER has them", strconv.Quote(args[0]))
	}
	return n, nil
}

func (a *app) verifyBackups(ctx context.Context, f *backup.Folder, number uint64) error {
	if number > 0 {
		s, err := f.Source(number)
		if errors.Is(err, os.ErrNotExist) {
			return notFound(err)
		}
		if err == nil {
			_ = s.Close() // nothing was written
		}
	}
	reports, err := f.Verify(ctx, number)
	if err != nil {
		return err
	}
	if len(reports) == 0 {
		return notFound(fmt.Errorf("verify %s: there is no backup in it: %w", shown(f.Path()), os.ErrNotExist))
	}
	damaged := 0
	rows := []checkedRow{}
	for i, r := range reports {
		if i == len(reports)-1 && len(r.Damage) == 0 {
			if err := verifyRestore(ctx, f, r.Number); err != nil {
				r.Damage = append(r.Damage, err.Error())
			}
		}
		rows = append(rows, checkedRow{r.Snapshot, append([]string{}, r.Damage...), r.More})
		if len(r.Damage) > 0 {
			damaged++
		}
		if !a.out.machine() {
			a.printChecked(&r)
		}
	}
	if a.out.machine() {
		err = a.printJSON(rows)
	}
	if err == nil && damaged > 0 {
		err = &problemsError{fmt.Sprintf("%d of %s damaged: where the contents are still here, lopen backup FOLDER --reread stores them anew", damaged, plain.Some(len(rows), "backup"))}
	}
	return err
}

func (a *app) printChecked(r *backup.Report) {
	if len(r.Damage) == 0 {
		fmt.Fprintf(a.stdout, "%d\tintact\n", r.Number)
		return
	}
	fmt.Fprintf(a.stdout, "%d\tdamaged\n", r.Number)
	for _, d := range slices.Clip(r.Damage) {
		fmt.Fprintf(a.stdout, "  %s\n", plain.Line(d))
	}
	if r.More > 0 {
		fmt.Fprintf(a.stdout, "  and %d more\n", r.More)
	}
}

// verifyRestore checks what a restore checks, in a temporary folder.
func verifyRestore(ctx context.Context, f *backup.Folder, number uint64) error {
	s, err := f.Source(number)
	if err != nil {
		return err
	}
	defer s.Close()
	temp, err := os.MkdirTemp("", "lopen-verify-")
	if err != nil {
		return err
	}
	_, err = lifecycle.VerifyBundle(ctx, carry.Whole{Source: s}, temp)
	return errors.Join(err, mount.RemoveAll(temp))
}
