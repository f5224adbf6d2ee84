package lifecycle

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

const (
	trashDir = "trash"
	// deletingPrefix begins the name of what is being deleted for good, so that
	// half of a session is never offered.
	deletingPrefix = ".deleting-"
)

// Retention says which completed sessions prune moves to the trash. 0 is no limit.
type Retention struct {
	Sessions int           // so many completed sessions stay
	Age      time.Duration // those completed longer ago go
	Bytes    int64         // of all completed sessions on the disk: the oldest ones go
	Trash    time.Duration // what lies in the trash longer is deleted for good; 0 keeps it
}

// A Retired is a session that prune moves, or has moved, to the trash, or that is
// deleted for good.
type Retired struct {
	ID      session.ID
	Why     string
	Bytes   int64 // on the disk, as du counts them
	ForGood bool
}

// Prune moves completed sessions beyond the limits to the trash, the oldest
// completed first, and deletes for good what lay there too long. Sessions that are
// active, paused, pinned or held are never touched, nor those that cannot be read.
// With dryRun it only says what would go. A session that cannot be moved is
// skipped; the errors come back joined.
func (s *Store) Prune(ctx context.Context, r Retention, dryRun bool) ([]Retired, error) {
	lock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Unlock() }()
	goes, err := s.beyond(r)
	if err != nil {
		return nil, err
	}
	gone, err := s.expired(r)
	if err != nil {
		return nil, err
	}
	if dryRun {
		return append(goes, gone...), nil
	}
	var done []Retired
	var errs []error
	for _, x := range goes {
		switch err := s.moveToTrash(x); {
		case err == nil:
			done = append(done, x)
		case !errors.Is(err, ErrBusy):
			errs = append(errs, err)
		}
	}
	for _, x := range gone {
		if err := s.removeForGood(trashDir + "/" + x.ID.String()); err != nil {
			errs = append(errs, err)
			continue
		}
		_ = s.root().Remove(trashDir + "/" + x.ID.String() + ".json")
		done = append(done, x)
	}
	s.clearDeleting()
	if len(gone) > 0 {
		s.free()
	}
	for _, x := range done {
		s.Logger(x.ID).Info().Str("reason", x.Why).Int64("bytes", x.Bytes).Bool("for_good", x.ForGood).Msg("session pruned")
	}
	return done, errors.Join(errs...)
}

// beyond are the completed sessions that the limits do not keep.
func (s *Store) beyond(r Retention) ([]Retired, error) {
	infos, err := s.List()
	if err != nil {
		return nil, err
	}
	infos = slices.DeleteFunc(infos, func(i Info) bool { return i.Err != nil || i.Status != session.StatusComplete })
	slices.SortFunc(infos, func(a, b Info) int { // the newest completed first
		return cmp.Or(b.CompletedAt.Compare(a.CompletedAt), b.ID.Compare(a.ID))
	})
	now := s.opts.Now()
	var all []Retired
	var kept int
	var bytes int64
	for _, i := range infos {
		if m, err := s.Meta(i.ID); err != nil || m.Pinned {
			continue
		}
		if owner, err := s.Holder(i.ID); err != nil || owner != nil {
			continue
		}
		size := s.diskBytes(sessionsDir+"/"+i.ID.String(), true)
		kept++
		bytes += size
		var why string
		switch {
		case r.Sessions > 0 && kept > r.Sessions:
			why = fmt.Sprintf("more than %d completed sessions", r.Sessions)
		case r.Age > 0 && now.Sub(i.CompletedAt) > r.Age:
			why = fmt.Sprintf("completed more than %d days ago", int(r.Age.Hours()/24))
		case r.Bytes > 0 && bytes > r.Bytes:
			why = fmt.Sprintf("completed sessions take more than %d bytes", r.Bytes)
		default:
			continue
		}
		all = append(all, Retired{ID: i.ID, Why: why, Bytes: size})
	}
	slices.Reverse(all)
	return all, nil
}

// trashed is the content of trash/{id}.json, which is written before the folder is
// moved.
type trashed struct {
	SchemaVersion int       `json:"schemaVersion"`
	At            time.Time `json:"at"`
	Why           string    `json:"why"`
}

// Trash lists what prune has moved away and restore can bring back.
func (s *Store) Trash() ([]Retired, error) { return s.inTrash(func(trashed) bool { return true }) }

func (s *Store) expired(r Retention) ([]Retired, error) {
	if r.Trash <= 0 {
		return nil, nil
	}
	now := s.opts.Now()
	all, err := s.inTrash(func(t trashed) bool { return !t.At.IsZero() && now.Sub(t.At) > r.Trash })
	for i := range all {
		all[i].ForGood = true
		all[i].Why = fmt.Sprintf("in the trash for more than %d days", int(r.Trash.Hours()/24))
	}
	return all, err
}

func (s *Store) inTrash(pick func(trashed) bool) ([]Retired, error) {
	entries, err := s.root().ReadDir(trashDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, writer.NewError("list trash", filepath.Join(s.Path(), trashDir), writer.NotCommitted, err)
	}
	var all []Retired
	for _, e := range entries {
		id, err := session.ParseID(e.Name())
		if err != nil || !e.IsDir() {
			continue
		}
		var t trashed // of a damaged note nothing is known, and nothing expires
		if data, err := writer.ReadFile(s.root(), trashDir+"/"+e.Name()+".json", 64<<10); err == nil {
			_ = json.Unmarshal(data, &t)
		}
		if pick(t) {
			all = append(all, Retired{ID: id, Why: t.Why, Bytes: s.diskBytes(trashDir+"/"+e.Name(), true)})
		}
	}
	slices.SortFunc(all, func(a, b Retired) int { return a.ID.Compare(b.ID) })
	return all, nil
}

// moveToTrash moves a session that nobody holds. The caller holds the store lock.
func (s *Store) moveToTrash(x Retired) error {
	note, err := json.Marshal(trashed{1, s.opts.Now().UTC(), x.Why})
	if err != nil {
		return err
	}
	return s.withLease(x.ID, func() error {
		if err := writer.MkdirDurable(s.root(), trashDir); err != nil {
			return err
		}
		if err := writer.ReplaceFile(s.root(), trashDir+"/"+x.ID.String()+".json", append(note, '\n'), filePerm); err != nil {
			return err
		}
		return s.move(sessionsDir+"/"+x.ID.String(), trashDir+"/"+x.ID.String())
	})
}

// withLease calls fn while this process holds a session's lease, without opening
// the session.
func (s *Store) withLease(id session.ID, fn func() error) error {
	if _, err := s.root().Lstat(sessionsDir + "/" + id.String()); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("session %s: %w", id, ErrNotFound)
	}
	lease, err := writer.TryLock(s.root(), sessionsDir+"/"+id.String()+"/"+leaseFile, writer.Self(s.opts.Command))
	if err != nil {
		return fmt.Errorf("session %s: %w", id, err)
	}
	return errors.Join(fn(), lease.Unlock())
}

// move renames a folder and makes both names durable.
func (s *Store) move(from, to string) error {
	root := s.root()
	if err := root.Rename(from, to); err != nil {
		return writer.NewError("move", filepath.Join(root.Name(), from), writer.NotCommitted, err)
	}
	for _, name := range []string{to, from} {
		if err := root.SyncDir(filepath.ToSlash(filepath.Dir(name))); err != nil {
			return writer.NewError("move", filepath.Join(root.Name(), to), writer.NotDurable, err)
		}
	}
	return nil
}

// Restore takes a session out of the trash. ErrNotFound says that it is not there.
func (s *Store) Restore(ctx context.Context, id session.ID) error {
	lock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }()
	from, to := trashDir+"/"+id.String(), sessionsDir+"/"+id.String()
	if _, err := s.root().Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("session %s is not in the trash: %w", id, ErrNotFound)
	}
	if _, err := s.root().Lstat(to); err == nil {
		return &Error{Op: "restore session", Path: filepath.Join(s.Path(), to), Class: writer.ClassInvalid, Err: errors.New("a session of this ID is there")}
	}
	if err := s.move(from, to); err != nil {
		return err
	}
	if err := s.root().Remove(from + ".json"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.opts.Logger.Warn().Err(err).Msg("the note in the trash could not be removed")
	}
	s.Logger(id).Info().Msg("session restored")
	return nil
}

// Delete removes a session for good and returns how many bytes on the disk that
// frees. ErrBusy names who holds it. The ID is never given again.
func (s *Store) Delete(ctx context.Context, id session.ID) (int64, error) {
	lock, err := s.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = lock.Unlock() }()
	name := sessionsDir + "/" + id.String()
	var bytes int64
	err = s.withLease(id, func() error {
		bytes = s.diskBytes(name, true)
		return s.removeForGood(name)
	})
	if err != nil {
		return 0, err
	}
	bytes += s.free()
	s.Logger(id).Info().Int64("bytes", bytes).Msg("session deleted")
	return bytes, nil
}

// removeForGood renames a folder away, durably, before any of it is removed.
func (s *Store) removeForGood(name string) error {
	if err := writer.MkdirDurable(s.root(), trashDir); err != nil {
		return err
	}
	away := trashDir + "/" + deletingPrefix + rand.Text()
	if err := s.move(name, away); err != nil {
		return err
	}
	if err := s.root().RemoveAll(away); err != nil {
		return writer.NewError("delete", filepath.Join(s.Path(), away), writer.NotDurable, err)
	}
	return nil
}

// clearDeleting removes what a deletion that was cut off left behind.
func (s *Store) clearDeleting() {
	entries, err := s.root().ReadDir(trashDir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), deletingPrefix) {
			_ = s.root().RemoveAll(trashDir + "/" + e.Name())
		}
	}
}

// Bytes is what a session takes on the disk, as du counts it.
func (s *Store) Bytes(id session.ID) int64 {
	return s.diskBytes(sessionsDir+"/"+id.String(), false)
}

// diskBytes is what a file or folder takes on the disk; with alone set, without the
// files that a fork shares.
func (s *Store) diskBytes(name string, alone bool) (n int64) {
	info, err := s.root().Lstat(name)
	if err != nil {
		return 0
	}
	if !alone || !writer.Shared(info) {
		n = writer.DiskBytes(info)
	}
	if !info.IsDir() {
		return n
	}
	entries, err := s.root().ReadDir(name)
	if err != nil {
		return n
	}
	for _, e := range entries {
		n += s.diskBytes(name+"/"+e.Name(), alone)
	}
	return n
}

// free removes the contents that no checkpoint needs any more and returns how much
// room that made, in bytes. What cannot be freed now is left to the next time.
func (s *Store) free() int64 {
	before := s.diskBytes(blobsDir, false)
	if before == 0 {
		return 0
	}
	if _, err := s.sweep(); err != nil {
		s.opts.Logger.Warn().Err(err).Msg("what deleted sessions had is not all freed")
	}
	return before - s.diskBytes(blobsDir, false)
}
