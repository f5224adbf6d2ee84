package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/backup"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/writer/crypt"
	"github.com/lopen-dev/lopen/writer/plain"
)

// backupRow is what `backup --json` prints.
type backupRow struct {
	Folder    string `json:"folder"`
	Encrypted bool   `json:"encrypted"`
	backup.Snapshot
	Skipped  []skippedRow `json:"skipped"`
	Warnings []string     `json:"warnings"`
	Pruned   []uint64     `json:"pruned"`
}

// backupFlags are the flags of backup.
type backupFlags struct {
	keys         *keyFlags
	force, again bool
}

func newBackup(a *app) *cobra.Command {
	var bf backupFlags
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "backup FOLDER",
		Short: "Keep all sessions in another place, again and again",
		Long: `Keep all sessions in another place, with all that they need: log, messages, output, history,
checkpoints with their contents, plan, specification and research; and the trash. FOLDER is made
if it is not there. A second backup adds only what is new. Sessions that run are not disturbed, and
a backup that is interrupted at any moment harms nothing: the next one continues.

What is damaged is backed up as it is, where that can be, and named. The exit code is 3 then.

Backups beyond backup_retention, backup_days and backup_bytes are removed afterwards, the oldest
first; lopen config show. The newest stays, and all do after one of something damaged.

With --encrypt a new FOLDER is encrypted as age does. Each later command needs the key, which has
to be a private one or a passphrase, since a backup reads what is there already.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.editStore(func(store *lifecycle.Store) error { return a.backUp(cmd.Context(), store, args[0], &bf) })
		},
	})
	bf.keys = a.keyFlags(cmd, true)
	cmd.Flags().BoolVar(&bf.force, "force", false, "also where FOLDER is no longer the backup that it was, or is another project's")
	cmd.Flags().BoolVar(&bf.again, "reread", false, "read what FOLDER has already, and store it anew where it is damaged")
	cmd.AddCommand(newBackupList(a), newBackupVerify(a), newBackupRestore(a), newBackupPrune(a))
	return cmd
}

// backupOptions returns the options to open a backup with.
func (a *app) backupOptions(ctx context.Context, keys *keyFlags) backup.Options {
	return backup.Options{Encrypt: keys.encrypt, Key: sync.OnceValues(func() (*crypt.Key, error) { return keys.decryption(ctx) })}
}

// openBackup opens the backup that was typed, for a command that reads or prunes.
func (a *app) openBackup(ctx context.Context, typed string, keys *keyFlags, fn func(*backup.Folder) error) error {
	path, err := a.path(typed)
	if err != nil {
		return err
	}
	f, err := a.openFolder(path, a.backupOptions(ctx, keys), keys)
	if err != nil {
		return usageIf(notFound(err), backup.ErrNone)
	}
	return errors.Join(fn(f), f.Close())
}

// openFolder opens a backup's folder.
func (a *app) openFolder(path string, o backup.Options, keys *keyFlags) (*backup.Folder, error) {
	f, err := backup.Open(path, o)
	if err == nil && f.KeyID() == "" {
		if err = keys.unneeded(path); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, err
}

// backUp makes a backup of the store.
func (a *app) backUp(ctx context.Context, store *lifecycle.Store, typed string, bf *backupFlags) error {
	values, err := a.storeSettings(store, nil)
	if err != nil {
		return err
	}
	path, err := a.path(typed)
	if err != nil {
		return err
	}
	f, err := a.backupTo(ctx, store, path, bf)
	if err != nil {
		return err
	}
	defer f.Close() // what was written was synced
	to := &backupTo{ctx: ctx, folder: f, again: bf.again}
	defer to.discard()
	out, err := store.Export(ctx, carry.ExportOptions{
		All: true, Backup: true, Lopen: versionText(), Specification: func(module string) string { return specPath(values, module) },
	}, to.open)
	if err != nil {
		return err
	}
	row := backupRow{
		Folder: f.Path(), Encrypted: f.KeyID() != "", Snapshot: to.made(), Skipped: []skippedRow{},
		Warnings: append([]string{}, out.Warnings...), Pruned: []uint64{},
	}
	err = store.NoteBackup(context.WithoutCancel(ctx), lifecycle.BackupNote{Folder: f.Path(), Number: row.Number, At: row.At, Key: f.KeyID()})
	// An older one may have whole what is damaged or left out.
	if r := backupRetention(values); err == nil && !out.Incomplete && r != (backup.Retention{}) {
		var gone []backup.Gone
		gone, _, err = f.Prune(ctx, r, false)
		for _, g := range gone {
			row.Pruned = append(row.Pruned, g.Number)
		}
	}
	return errors.Join(err, a.printBackup(&row, out))
}

// backupTo opens the backup's folder, or makes it. A folder that does not have what it had, or
// another project's backups, is refused without --force.
func (a *app) backupTo(ctx context.Context, store *lifecycle.Store, path string, bf *backupFlags) (*backup.Folder, error) {
	o := a.backupOptions(ctx, bf.keys)
	o.Project = filepath.Dir(store.Path())
	notes, err := store.Backups()
	if err != nil && !errors.Is(err, lifecycle.ErrNotFound) {
		fmt.Fprintf(a.stderr, "warning: which backups there were is not known: %s\n", plain.Line(err.Error()))
	}
	at := slices.IndexFunc(notes, func(n lifecycle.BackupNote) bool { return n.Folder == path })
	known := err == nil && at >= 0 && !bf.force
	f, err := a.openFolder(path, o, bf.keys)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, backup.ErrNone) {
		if known {
			return nil, fmt.Errorf("%s has no backup, and had that of %s: is its disk mounted? --force begins anew", shown(path), notes[at].At.Local().Format(time.DateTime))
		}
		if !bf.keys.encrypt {
			if _, err := bf.keys.encryption(ctx); err != nil { // flags of a key without it
				return nil, err
			}
		}
		f, err = backup.Create(path, o)
	}
	if err != nil {
		return nil, err
	}
	if known && f.KeyID() != notes[at].Key {
		err = fmt.Errorf("the key of the backup in %s is not the one that it had on %s: somebody replaced it; --force takes it as it is", shown(path), notes[at].At.Local().Format(time.DateTime))
	} else if !bf.force {
		err = ofProject(f, o.Project)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ofProject refuses a folder with backups of another project.
func ofProject(f *backup.Folder, project string) error {
	all, err := f.List()
	for _, s := range all {
		if s.Err == nil && s.Project != project {
			return fmt.Errorf("%s has backups of %s: name another folder, or --force if the project was moved", shown(f.Path()), shown(s.Project))
		}
	}
	return err
}

// backupTo is where the export of a backup goes.
type backupTo struct {
	ctx    context.Context //nolint:containedctx // it is that of the one command
	folder *backup.Folder
	again  bool
	w      *backup.Writer // nil before the export begins
}

func (t *backupTo) open(h bundle.Header) (carry.Sink, error) {
	t.discard()
	w, err := t.folder.Begin(t.ctx, &h, t.again)
	if err != nil {
		return nil, err
	}
	t.w = w
	return w, nil
}

func (t *backupTo) discard() {
	if t.w != nil {
		t.w.Discard()
	}
}

func (t *backupTo) made() backup.Snapshot { return t.w.Made() }

// backupRetention is which backups stay.
func backupRetention(v *settings.Values) backup.Retention {
	return backup.Retention{Backups: v.BackupRetention, Age: time.Duration(v.BackupDays) * 24 * time.Hour, Bytes: int64(v.BackupBytes)}
}

func (a *app) printBackup(row *backupRow, out *carry.Exported) error {
	for _, s := range out.Skipped {
		row.Skipped = append(row.Skipped, skippedRow{s.ID.String(), s.Err.Error()})
		fmt.Fprintf(a.stderr, "%s\n%s", plain.Line(s.Err.Error()), hint(s.Err))
	}
	for _, w := range row.Warnings {
		fmt.Fprintf(a.stderr, "warning: %s\n", plain.Line(w))
	}
	var err error
	if a.out.machine() {
		err = a.printJSON(row)
	} else {
		fmt.Fprintf(a.stderr, "backup %d: %s, %s; %s added to %s\n", row.Number, plain.Some(row.Sessions, "session"), bytesText(row.Bytes), bytesText(row.Added), shown(row.Folder))
		if n := len(row.Pruned); n > 0 {
			fmt.Fprintf(a.stderr, "%s removed\n", plain.Some(n, "older backup"))
		}
	}
	if err == nil && out.Incomplete {
		err = &problemsError{"something is damaged here, and backed up as it is or left out: no older backup is removed"}
	}
	return err
}
