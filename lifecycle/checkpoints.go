package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

const (
	checkpointsDir = "checkpoints"
	blobsDir       = "blobs"
)

// Checkpoints are those of one session, for looking at. Close it after use.
type Checkpoints struct {
	*checkpoint.Store
	dirs []writer.FS
}

// Close lets go of the folders.
func (c *Checkpoints) Close() error {
	var errs []error
	for _, d := range c.dirs {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}

// Checkpoints opens those of a session, without a lock. ErrNotFound says that it
// has none.
func (s *Store) Checkpoints(id session.ID) (*Checkpoints, error) {
	c := &Checkpoints{}
	for _, name := range []string{sessionsDir + "/" + id.String() + "/" + checkpointsDir, blobsDir} {
		dir, err := openDir(s.root(), name)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("session %s has no checkpoints: %w", id, ErrNotFound)
		}
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.dirs = append(c.dirs, dir)
	}
	c.Store = checkpoint.New(c.dirs[0], blob.New(c.dirs[1]), s.project)
	return c, nil
}

// at says whether the open folders are still those of their names.
func (c *Checkpoints) at(root writer.FS, names ...string) bool {
	for i, name := range names {
		held, err := c.dirs[i].Stat(".")
		there, err2 := root.Lstat(name)
		if err != nil || err2 != nil || !writer.SameFile(held, there) {
			return false
		}
	}
	return true
}

// kept is what an open session knows of the project's files. Guarded by mu.
type kept struct {
	mu    sync.Mutex
	store *Checkpoints         // nil before it is needed
	last  *checkpoint.Manifest // what the loop last knew; nil when there is none
	seen  *files.Snapshot      // what Look and Checkpoint last saw
	saved *files.Snapshot      // what the next holder will take for seen
	fewer bool                 // checkpoints were removed: some contents may be needed no more
}

// open makes the folders and loads what the loop last knew. The caller holds mu.
func (s *Session) openCheckpoints() error {
	k := &s.kept
	if k.store != nil && k.store.at(s.store.root(), s.path(checkpointsDir), blobsDir) {
		return nil
	}
	if k.store != nil { // of folders that were removed; what was seen of the files stays true
		_ = k.store.Close()
		k.store, k.last, k.saved = nil, nil, nil
	}
	dir := s.path(checkpointsDir)
	for _, name := range []string{dir, blobsDir} {
		if err := writer.MkdirDurable(s.store.root(), name); err != nil {
			return err
		}
	}
	var err error
	if k.store, err = s.store.Checkpoints(s.id); err != nil {
		return err
	}
	if name := s.mark.Load().Checkpoint; name != "" {
		k.last, err = s.loadCheckpoint(name)
		if errors.Is(err, checkpoint.ErrNotFound) || errors.Is(err, ErrCorrupt) {
			// It was removed, or nothing vouches for it: everything counts as seen for
			// the first time.
			s.log.Warn().Err(err).Msg("the last checkpoint cannot be read")
			err = nil
		}
		if k.last != nil && k.seen == nil {
			k.seen = k.last.Files
		}
	}
	return err
}

func (s *Session) loadCheckpoint(name string) (*checkpoint.Manifest, error) {
	id, err := checkpoint.ParseID(name)
	if err != nil {
		return nil, err
	}
	return s.kept.store.Load(id)
}

// Release drops what the session holds of large parts: the manifests of checkpoints
// and what it last saw of the project's files. What is needed again is read again.
// It is for a holder that waits for long, and may be called from any goroutine.
func (s *Session) Release() error {
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	return s.release()
}

// release is Release. The caller holds mu.
func (s *Session) release() error {
	k := &s.kept
	k.last, k.seen, k.saved = nil, nil, nil
	if k.store == nil {
		return nil
	}
	n := k.store.Accesses()
	s.log.Debug().Int("read", n.Read).Int("held", n.Held).Msg("manifests released")
	err := k.store.Close()
	k.store = nil
	return err
}

// closeCheckpoints lets go of the folders, and frees what removed checkpoints had.
func (s *Session) closeCheckpoints(ctx context.Context) error {
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	if s.kept.store == nil {
		return nil
	}
	err := s.release()
	if !s.kept.fewer {
		return err
	}
	s.kept.fewer = false
	lock, lerr := s.store.lock(ctx)
	if lerr != nil {
		return err // somebody else tidies up
	}
	defer func() { _ = lock.Unlock() }()
	s.store.free()
	return err
}

// Checkpoint keeps the project's files, or those below the named paths, together
// with the newest State: both are durable when it returns, and the session's
// journal names the checkpoint. The changes are those since the last Checkpoint or
// Look. A file that has not changed costs one stat.
//
// Checkpoints beyond the store's [Policy] are removed afterwards, oldest first.
func (s *Session) Checkpoint(ctx context.Context, why checkpoint.Reason, task string, paths ...string) (*checkpoint.Manifest, []files.Change, error) {
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	err := s.recall()
	var m *checkpoint.Manifest
	if err == nil {
		m, err = s.checkpoint(ctx, why, task, paths)
	}
	err = s.orLost(ctx, err)
	if err != nil {
		return nil, nil, fmt.Errorf("checkpoint of session %s: %w", s.id, err)
	}
	var changes []files.Change
	if s.kept.seen != nil {
		changes = checkpoint.Diff(s.kept.seen, m.Files)
	}
	s.kept.last, s.kept.seen, s.kept.saved = m, m.Files, nil
	err = s.append(checkpointMade(m, changes))
	s.told.Store(err == nil)
	if err == nil {
		err = s.Sync(ctx)
	}
	if err == nil {
		s.kept.saved = m.Files
		err = s.retire(ctx)
	}
	return m, changes, err
}

// orLost is err, or the pause that is behind it: what is missing may be all of the
// session's folder, of which the writer knows.
func (s *Session) orLost(ctx context.Context, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		if lost := s.Sync(ctx); lost != nil {
			return lost
		}
	}
	return err
}

// checkpoint makes one. The caller holds mu.
func (s *Session) checkpoint(ctx context.Context, why checkpoint.Reason, task string, paths []string) (*checkpoint.Manifest, error) {
	if err := s.openCheckpoints(); err != nil {
		return nil, err
	}
	if err := s.Sync(ctx); err != nil { // the State that belongs to it
		return nil, err
	}
	begun, at, st := time.Now(), s.mark.Load(), s.State()
	p := st.Progress()
	meta := checkpoint.Meta{
		Seq: at.Seq, At: s.store.opts.Now(), Reason: why, Task: task, Messages: int(at.Messages.Count),
		Tasks: checkpoint.Tasks{Total: p.Total, Completed: p.Done, Active: []string{}},
	}
	if id := st.ActiveTask(); id != "" {
		meta.Tasks.Active = append(meta.Tasks.Active, id)
	}
	m, err := s.kept.store.Create(ctx, meta, s.kept.last, paths)
	if err != nil {
		return nil, err
	}
	s.log.Info().Stringer("checkpoint", m.ID).Str("task", task).Str("reason", string(why)).Uint64("seq", m.Seq).
		Int("changed", m.FilesModified).Int64("bytes", m.Bytes).Dur("duration_ms", time.Since(begun)).Msg("checkpoint made")
	return m, nil
}

// Look says which of the project's files changed since the last Look or Checkpoint
// of the session, also by an earlier process. Nothing is kept of their contents.
func (s *Session) Look(ctx context.Context) ([]files.Change, error) {
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	changes, err := s.look(ctx)
	return changes, s.orLost(ctx, err)
}

// look is Look. The caller holds mu.
func (s *Session) look(ctx context.Context) ([]files.Change, error) {
	if err := s.recall(); err != nil {
		return nil, err
	}
	k := &s.kept
	now, err := files.Take(ctx, s.store.project, k.seen, files.Options{})
	if err != nil {
		return nil, fmt.Errorf("look at the files of session %s: %w", s.id, err)
	}
	var changes []files.Change
	if k.seen != nil {
		if k.seen == k.saved && k.seen.Settled() && k.seen.Equal(now) {
			return nil, nil
		}
		changes = checkpoint.Diff(k.seen, now)
	}
	k.seen, k.saved = now, now
	s.told.Store(false)
	if err := files.Save(s.store.project, s.seenPath(), now); err != nil {
		k.saved = nil
		s.log.Warn().Err(err).Msg("the next holder will not know which files changed")
	}
	return changes, nil
}

// recall loads what was last seen of the project's files, unless it is known. The
// caller holds mu.
func (s *Session) recall() error {
	k := &s.kept
	if k.seen != nil {
		return nil
	}
	if s.mark.Load().Checkpoint != "" {
		if err := s.openCheckpoints(); err != nil {
			return err
		}
	}
	if old, err := files.Load(s.store.project, s.seenPath()); err == nil && (k.seen == nil || old.At.After(k.seen.At)) {
		k.seen = old
	}
	k.saved = k.seen
	return nil
}

func (s *Session) seenPath() string { return Dir + "/" + s.path(seenFile) }

// seenFile is what Look last saw, beside the state. It is derived from the files.
const seenFile = "files.json"

// retire removes the checkpoints that the policy does not keep.
func (s *Session) retire(ctx context.Context) error {
	limits := checkpoint.Limits{Count: s.store.opts.Policy.Checkpoints, Bytes: s.store.opts.Policy.CheckpointBytes}
	all, err := s.kept.store.List()
	if err != nil {
		return err
	}
	if undo := s.mark.Load().Undo; undo != "" {
		if limits.Undo, err = checkpoint.ParseID(undo); err != nil {
			return err
		}
	}
	if s.kept.last != nil {
		limits.Last = s.kept.last.ID
	}
	gone, err := checkpoint.Retire(all, s.kept.store.Load, limits)
	if err != nil {
		return err
	}
	for _, r := range gone {
		if err := s.kept.store.Remove(r.ID); err != nil {
			return err
		}
		s.kept.fewer = true
		s.log.Info().Stringer("checkpoint", r.ID).Str("reason", r.Why).Msg("checkpoint removed")
	}
	return ctx.Err()
}

// sweep removes the contents that no checkpoint needs any more, in sessions, trash
// and corrupted. While somebody makes a checkpoint it steps aside with ErrBusy; when
// a manifest cannot be read nothing is removed. The caller holds the store lock, so
// that no session is moved meanwhile.
func (s *Store) sweep() (blob.Swept, error) {
	dir, err := openDir(s.root(), blobsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return blob.Swept{}, nil
	}
	if err != nil {
		return blob.Swept{}, err
	}
	defer dir.Close()
	swept, err := blob.New(dir).Sweep(func() (map[blob.Hash]struct{}, error) {
		needed := map[blob.Hash]struct{}{}
		for _, name := range []string{sessionsDir, trashDir, corruptedDir} {
			if err := checkpoint.Roots(s.root(), name, needed); err != nil {
				return nil, err
			}
		}
		return needed, nil
	}, false)
	if err != nil {
		return swept, fmt.Errorf("free what no checkpoint needs: %w", err)
	}
	return swept, nil
}

// PinCheckpoint keeps a checkpoint from being removed for the policy's sake, or no
// more, durably.
func (s *Session) PinCheckpoint(id checkpoint.ID, pinned bool) error {
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	if err := s.openCheckpoints(); err != nil {
		return err
	}
	if err := s.kept.store.Pin(id, pinned); err != nil {
		return err
	}
	s.log.Info().Stringer("checkpoint", id).Msg("checkpoint " + pinnedText(pinned))
	return nil
}
