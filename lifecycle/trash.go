package lifecycle

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/mount"
	"github.com/lopen-dev/lopen/writer/private"
)

const (
	trashDir = "trash"
	// deletingPrefix begins the name of a folder that is being deleted for good, so that a
	// partly deleted session is never listed.
	deletingPrefix = ".deleting-"
)

// Trash lists the sessions that Prune has moved to the trash and Restore can bring back.
func (s *Store) Trash() ([]Retired, error) {
	folders, err := s.folders(trashDir)
	var all []Retired
	for _, f := range folders {
		t := s.note(f.id)
		all = append(all, Retired{ID: f.id, Why: t.Why, Bytes: s.diskBytes(f.path, true), at: t.At})
	}
	slices.SortFunc(all, func(a, b Retired) int { return a.ID.Compare(b.ID) })
	return all, err
}

// TrashStandsFor reports whether a session in the trash stands for one of an agent's own. One that cannot be read may.
func (s *Store) TrashStandsFor(id session.ID, agentSession string) bool {
	dir, err := writer.OpenDir(s.root(), trashDir+"/"+id.String())
	if err != nil {
		return true
	}
	defer dir.Close()
	ld, err := folder.Load(dir, id)
	if err != nil {
		return true
	}
	h := ld.State.Header()
	return h.StandsFor(agentSession)
}

// note returns the note of a session in the trash. It is zero if the note is damaged or of
// a newer version; then the session never expires.
func (s *Store) note(id session.ID) (t trashed) {
	if err := folder.ReadSmall(s.root(), noteOf(id), &t); err != nil {
		return trashed{}
	}
	return t
}

// withLease calls fn under the lease of a session in sessions/ or in the trash, without
// opening the session.
func (s *Store) withLease(in string, id session.ID, fn func(lease *writer.Lock, name string) error) error {
	lease, err := s.lease(in, id)
	if err != nil {
		return fmt.Errorf("session %s: %w", id, err)
	}
	if owner := s.turnOf(id); owner != nil && in == sessionsDir {
		return errors.Join(fmt.Errorf("session %s: %w", id, &BusyError{Path: filepath.Join(s.root().Name(), in, id.String()), Owner: *owner}), lease.Unlock())
	}
	return errors.Join(fn(lease, in+"/"+id.String()), lease.Unlock())
}

// lease takes the lease of a session in a folder of the store. The error is ErrNotFound if
// the session is not there or was just moved away.
func (s *Store) lease(in string, id session.ID) (*writer.Lock, error) {
	name := in + "/" + id.String()
	if writer.Moved(s.root(), name) {
		return nil, ErrNotFound
	}
	lease, err := writer.TryLock(s.root(), name+"/"+leaseFile, writer.OwnerOf(os.Getpid(), s.opts.Command))
	if errors.Is(err, fs.ErrNotExist) {
		if _, gone := s.root().Lstat(name); errors.Is(gone, fs.ErrNotExist) {
			return nil, ErrNotFound
		}
	}
	return lease, err
}

// move renames a folder and makes both names durable.
func (s *Store) move(from, to string) error {
	root := s.root()
	if err := writer.MoveFolder(root, from, to); err != nil {
		return writer.NewError("move", filepath.Join(root.Name(), from), writer.NotCommitted, err)
	}
	for _, name := range []string{to, from} {
		if err := root.SyncDir(filepath.ToSlash(filepath.Dir(name))); err != nil {
			return writer.NewError("move", filepath.Join(root.Name(), to), writer.NotDurable, err)
		}
	}
	return nil
}

// Restore moves a session from the trash back to sessions/, durably. The error wraps
// ErrNotFound if it is not in the trash.
func (s *Store) Restore(ctx context.Context, id session.ID) error {
	lock, err := s.lockCleared(ctx)
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

// Delete removes a session for good and returns how many bytes this frees on the disk.
// It also removes what interrupted creations left: the hard links of a fork would keep
// the content. The error wraps ErrBusy and names the holder if the session is held. The
// ID is never used again.
func (s *Store) Delete(ctx context.Context, id session.ID) (int64, error) {
	return s.remove(ctx, id, func(*writer.Lock) error { return nil })
}

// DeleteCompleted is Delete for a complete session, which it reads whole under its lease. If
// the session is not complete, it stays and the error wraps ErrNotComplete. A damaged session
// is moved to corrupted/.
func (s *Store) DeleteCompleted(ctx context.Context, id session.ID) (int64, error) {
	return s.remove(ctx, id, func(lease *writer.Lock) error {
		_, err := completedAt(s.readHeld(id, lease))
		return err
	})
}

func (s *Store) remove(ctx context.Context, id session.ID, judge func(lease *writer.Lock) error) (int64, error) {
	if !s.saves() {
		return 0, fmt.Errorf("delete session %s: %w", id, ErrNotFound)
	}
	lock, err := s.lockCleared(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = lock.Unlock() }()
	var bytes int64
	err = s.withLease(sessionsDir, id, func(lease *writer.Lock, name string) error {
		if err := judge(lease); err != nil {
			return err
		}
		bytes = s.diskBytes(name, true)
		return s.removeForGood(ctx, name, id)
	})
	if err != nil {
		return 0, err
	}
	s.refreshLatest()
	bytes += s.freed()
	s.Logger(id).Info().Int64("bytes", bytes).Msg("session deleted")
	return bytes, nil
}

// removeForGood first renames a session's folder, durably, and then removes the folder and
// the session's checkpoints. It refuses a folder in which something is mounted.
func (s *Store) removeForGood(ctx context.Context, name string, id session.ID) error {
	if at, err := mount.Find(s.root(), name); at != "" || err != nil {
		return writer.NewError("delete", filepath.Join(s.Path(), cmp.Or(at, name)), writer.NotCommitted, cmp.Or(err, mount.ErrMounted))
	}
	if err := private.Make(s.root(), trashDir); err != nil {
		return err
	}
	away := deletingPrefix + rand.Text() + "-" + id.String()
	if err := s.move(name, trashDir+"/"+away); err != nil {
		return err
	}
	return s.finishDeleting(ctx, away)
}

// finishDeleting removes the checkpoints that only the deleted session needs, and then its
// folder. It may be repeated.
func (s *Store) finishDeleting(ctx context.Context, away string) error {
	if _, name, ok := strings.Cut(strings.TrimPrefix(away, deletingPrefix), "-"); ok {
		if id, err := session.ParseID(name); err == nil {
			if err := s.forgetCheckpoints(ctx, sessionFolder{id, away, trashDir + "/" + away}); err != nil {
				return err
			}
			files := corruptedDir + "/" + name + filesSuffix
			if err := s.root().RemoveAll(files); err != nil {
				return writer.NewError("delete", filepath.Join(s.Path(), files), writer.NotDurable, err)
			}
		}
	}
	if err := s.root().RemoveAll(trashDir + "/" + away); err != nil {
		return writer.NewError("delete", filepath.Join(s.Path(), trashDir, away), writer.NotDurable, err)
	}
	return nil
}

// clearDeleting finishes interrupted deletions.
func (s *Store) clearDeleting(ctx context.Context) {
	entries, err := s.root().ReadDir(trashDir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), deletingPrefix) {
			if err := s.finishDeleting(ctx, e.Name()); err != nil {
				s.opts.Logger.Warn().Err(err).Msg("a deletion that was cut off is not finished")
			}
		}
	}
}

// Bytes returns what a session takes on the disk, in bytes, as du counts them.
func (s *Store) Bytes(id session.ID) int64 {
	return s.diskBytes(sessionsDir+"/"+id.String(), false)
}

// diskBytes returns the bytes that a file or folder takes on the disk. With alone set it
// leaves out files with another hard link, which a fork shares.
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

// freed is free, and returns how many bytes that freed. To find out costs a stat of each object, twice.
func (s *Store) freed() int64 {
	size := func() int64 {
		moved, _ := checkpoint.MovedBytes(s.root()) // 0 where it is not known
		return s.diskBytes(blobsDir, false) + moved
	}
	before := size()
	s.free()
	return before - size()
}

// free removes the contents that no checkpoint needs. A failure is only logged; the next call tries again.
func (s *Store) free() {
	cps, err := s.Checkpoints(nil)
	if errors.Is(err, ErrNotFound) {
		return
	}
	if err == nil {
		_, err = cps.sweep(&s.opts.Logger)
		_ = cps.Close() // nothing was written through the folders
	}
	if err != nil {
		s.opts.Logger.Warn().Err(err).Msg("contents that nothing needs are not all freed")
	}
}

// forgetCheckpoints removes the entries of all chains that only the deleted session needs,
// pinned or not. These are the entries on its line that are on no other session's line and
// that no rewind of another session needs. The line of a session ends with the entries that
// it made or, if it made none, with the one that its journal names. The caller holds the
// store lock, so that no session is made or moved meanwhile.
func (s *Store) forgetCheckpoints(ctx context.Context, deleted sessionFolder) error {
	cps, err := s.Checkpoints(nil)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer cps.Close()
	var folders []sessionFolder
	for _, place := range []string{sessionsDir, trashDir, corruptedDir} {
		some, err := s.folders(place)
		if err != nil {
			return err
		}
		folders = append(folders, some...)
	}
	others, err := cps.Others()
	if err != nil {
		return err
	}
	for _, chain := range append([]*checkpoint.Store{cps.Store}, others...) {
		if !chain.Imported() {
			err = errors.Join(err, s.forgetIn(ctx, chain, deleted, folders))
		}
	}
	return errors.Join(err, s.dropImported(ctx, others, folders))
}

// forgetIn is forgetCheckpoints for one chain. folders are those of all other sessions.
func (s *Store) forgetIn(ctx context.Context, chain *checkpoint.Store, deleted sessionFolder, folders []sessionFolder) error {
	all, _, err := chain.List()
	if err != nil {
		return err
	}
	c := chainLines{chain: chain, numbers: map[string]uint64{}, made: map[string][]uint64{}}
	for _, e := range all {
		c.numbers[e.ID.String()] = e.Number
		c.made[e.Session] = append(c.made[e.Session], e.Number)
	}
	own, err := c.line(s.root(), deleted)
	if err != nil {
		s.opts.Logger.Warn().Err(err).Msg("what checkpoints a deleted session came from is not known")
	}
	if len(own) == 0 {
		return nil
	}
	there := map[string]bool{}
	for _, f := range folders {
		there[f.id.String()] = true
	}
	needed := rewind.Needed(all, func(id string) bool { return there[id] })
	for _, f := range folders {
		line, err := c.line(s.root(), f)
		if err != nil { // this session may need any of them
			s.Logger(f.id).Warn().Err(err).Msg("checkpoints of a deleted session stay: which of them this one needs is not known")
			return nil
		}
		maps.Copy(needed, line)
	}
	n, err := chain.Forget(ctx, "its session was deleted", func(e *checkpoint.Entry) bool {
		return own[e.Number] && !needed[e.Number]
	})
	if n > 0 {
		s.opts.Logger.Info().Stringer("session", deleted.id).Int("checkpoints", n).Msg("checkpoints of a deleted session removed")
	}
	if left := func(e *checkpoint.Entry) bool { return e.Removed == "" && (!own[e.Number] || needed[e.Number]) }; err == nil && chain.Name() != checkpoint.MainTree && !slices.ContainsFunc(all, left) {
		err = chain.Drop(ctx)
	}
	return err
}

// dropImported removes the imported chains that none of the sessions needs. One that cannot be
// read may need any of them.
func (s *Store) dropImported(ctx context.Context, others []*checkpoint.Store, folders []sessionFolder) error {
	chains := slices.DeleteFunc(others, func(c *checkpoint.Store) bool { return !c.Imported() })
	if len(chains) == 0 {
		return nil
	}
	var marks []session.Mark
	for _, f := range folders {
		at, err := markOf(s.root(), f)
		if err != nil {
			s.Logger(f.id).Warn().Err(err).Msg("imported checkpoints stay: which of them this session needs is not known")
			return nil
		}
		marks = append(marks, at)
	}
	for _, c := range chains {
		all, _, err := c.List()
		if err != nil {
			return err
		}
		needed := slices.ContainsFunc(all, func(e *checkpoint.Entry) bool {
			return slices.ContainsFunc(marks, func(at session.Mark) bool { return ofSession(e, at) })
		})
		if needed {
			continue
		}
		if err := c.Drop(ctx); err != nil {
			return err
		}
		s.opts.Logger.Info().Str("chain", c.Name()).Int("checkpoints", len(all)).Msg("imported checkpoints removed: their sessions were deleted")
	}
	return nil
}

// chainLines finds the lines of sessions in a chain.
type chainLines struct {
	chain   *checkpoint.Store
	numbers map[string]uint64   // numbers of entries by their IDs
	made    map[string][]uint64 // numbers of entries by the session that made them
}

// line returns the numbers of the entries on the lines of a session. It is empty for a
// session that made none and was neither forked nor recovered.
func (c *chainLines) line(root writer.FS, f sessionFolder) (map[uint64]bool, error) {
	ends := c.made[f.id.String()]
	if len(ends) == 0 {
		at, err := markOf(root, f) // with the checkpoint that it was forked or recovered from
		if err != nil {
			return nil, err
		}
		if number, ok := c.numbers[at.Checkpoint]; ok {
			ends = []uint64{number}
		}
	}
	line := map[uint64]bool{}
	for _, end := range slices.Backward(ends) {
		if line[end] {
			continue
		}
		back, err := c.chain.Line(end)
		if err != nil {
			return nil, err
		}
		maps.Copy(line, back)
	}
	return line, nil
}

// markOf returns the Mark of the last record of a session.
func markOf(root writer.FS, f sessionFolder) (session.Mark, error) {
	dir, err := writer.OpenDir(root, f.path)
	if err != nil {
		return session.Mark{}, err
	}
	defer dir.Close()
	ld, err := folder.Load(dir, f.id)
	if err != nil {
		return session.Mark{}, err
	}
	return ld.At, nil
}

// moveToTrash moves a session to the trash if it is not held and still complete. The caller
// holds the store lock.
func (s *Store) moveToTrash(x Retired) error {
	note := trashed{At: s.opts.Now().UTC(), Why: x.Why}
	if x.at.After(note.At) { // this clock is behind: it was not moved before it was completed
		note.At = x.at.UTC()
	}
	if err := private.Make(s.root(), trashDir); err != nil {
		return err
	}
	return s.withLease(sessionsDir, x.ID, func(lease *writer.Lock, name string) error {
		at, err := completedAt(s.readHeld(x.ID, lease))
		if err == nil && !at.Equal(x.at) {
			err = fmt.Errorf("session %s was completed anew meanwhile: %w", x.ID, ErrNotComplete)
		}
		if err != nil {
			return err
		}
		if err := folder.WriteSmall(s.root(), noteOf(x.ID), note); err != nil {
			return err
		}
		return s.move(name, trashDir+"/"+x.ID.String())
	})
}

// emptyTrash deletes a session in the trash for good. The caller holds the store lock.
func (s *Store) emptyTrash(ctx context.Context, x Retired) error {
	if err := s.withLease(trashDir, x.ID, func(_ *writer.Lock, name string) error { return s.removeForGood(ctx, name, x.ID) }); err != nil {
		return err
	}
	_ = s.root().Remove(noteOf(x.ID))
	return nil
}
