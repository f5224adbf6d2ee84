package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// Export exports sessions, or with All every session that can be read, to what open returns;
// see [carry.Export]. It takes no lock but that of the checkpoints' contents, which it shares
// with whoever makes a checkpoint. A [*DamagedError] says that a session cannot be exported.
func (s *Store) Export(ctx context.Context, o carry.ExportOptions, open func(bundle.Header) (carry.Sink, error)) (*carry.Exported, error) {
	o.Sessions = slices.Clone(o.Sessions)
	if o.All {
		infos, err := s.List()
		if err != nil {
			return nil, err
		}
		for _, i := range infos {
			o.Sessions = append(o.Sessions, i.ID)
		}
	}
	slices.SortFunc(o.Sessions, session.ID.Compare)
	o.Sessions = slices.Compact(o.Sessions)
	if len(o.Sessions) == 0 {
		return nil, fmt.Errorf("export: no session here yet: %w", ErrNotFound)
	}
	o.Now = s.opts.Now()
	if s.opts.Git != nil {
		o.Git = s.opts.Git()
	}
	if o.NoMessages || o.Redact != nil {
		scratch, remove, err := scratchFolder()
		if err != nil {
			return nil, err
		}
		defer remove()
		o.Scratch = scratch
	}
	out, err := carry.Export(ctx, carry.Store{Project: s.project, Root: s.root(), Busy: s.busy, Outside: s.opts.Outside}, o, open)
	if out != nil {
		for i := range out.Skipped {
			out.Skipped[i].Err = notExported(&out.Skipped[i])
		}
	}
	if x, ok := errors.AsType[*carry.Skipped](err); ok {
		err = notExported(x)
	}
	return out, err
}

// scratchFolder returns a new private folder among the system's temporary files, since a project
// that is exported need not be writable.
func scratchFolder() (dir writer.FS, remove func(), err error) {
	name, err := os.MkdirTemp("", "lopen-export-")
	if err == nil {
		dir, err = writer.OpenFS(name)
	}
	if err != nil {
		return nil, nil, writer.NewError("make folder", cmp.Or(name, os.TempDir()), writer.NotCommitted, err)
	}
	return dir, func() { _ = errors.Join(dir.Close(), os.RemoveAll(name)) }, nil
}

// busy reports whether a session is held. When that is not known it counts as held.
func (s *Store) busy(id session.ID) bool {
	owner, err := s.Holder(id)
	return err != nil || owner != nil
}

func notExported(x *carry.Skipped) error {
	return fmt.Errorf("export session %s: %w", x.ID, damagedIn(x.ID, folder.Path(x.ID), x.Err))
}

// backupFile is the note about the newest backup.
const backupFile = "backup.json"

// A BackupNote says which backup is the newest.
type BackupNote struct {
	Folder string    `json:"folder"`
	Number uint64    `json:"number"`
	At     time.Time `json:"at"`
	Key    string    `json:"key,omitempty"` // names the key; "" if it is not encrypted
}

// NewestBackup returns the note about the newest backup. The error wraps ErrNotFound if none was
// ever made.
func (s *Store) NewestBackup() (n BackupNote, err error) {
	err = folder.ReadSmall(s.root(), backupFile, &n)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("no backup was made: %w", ErrNotFound)
	}
	return n, err
}

// NoteBackup notes a backup as the newest, durably.
func (s *Store) NoteBackup(n BackupNote) error { return folder.WriteSmall(s.root(), backupFile, n) }

// staleBackup is the age from which doctor warns of the newest backup.
const staleBackup = 7 * 24 * time.Hour

// checkBackup says how old the newest backup is.
func (s *Store) checkBackup() repair.Check {
	c := repair.Check{Name: "backup", Found: "none was made with lopen backup FOLDER"}
	n, err := s.NewestBackup()
	switch {
	case errors.Is(err, ErrNotFound):
		return c
	case err != nil:
		c = repair.Failed(c.Name, err)
		c.Mend = "the next lopen backup FOLDER writes it anew"
		return c
	}
	age := s.opts.Now().Sub(n.At)
	c.Found = fmt.Sprintf("%s ago, number %d in %s", age.Round(time.Minute), n.Number, n.Folder)
	if days := int(age.Hours() / 24); days > 1 {
		c.Found = fmt.Sprintf("%d days ago, number %d in %s", days, n.Number, n.Folder)
	}
	if age > staleBackup {
		c.Mend = "lopen backup " + n.Folder
	}
	return c
}
