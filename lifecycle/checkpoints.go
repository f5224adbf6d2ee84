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
	"github.com/lopen-dev/lopen/lifecycle/commit"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

const (
	checkpointsDir = "checkpoints"
	blobsDir       = "blobs"
)

// Checkpoints are those of the project, whichever session made them. Close it after
// use.
type Checkpoints struct {
	*checkpoint.Store
	blobs *blob.Store
	dirs  []writer.FS // in the order of checkpointDirs
}

var checkpointDirs = []string{checkpointsDir, blobsDir}

// Checkpoints opens those of the project, without a lock. ErrNotFound says that there
// are none.
func (s *Store) Checkpoints() (*Checkpoints, error) {
	c := &Checkpoints{}
	for _, name := range checkpointDirs {
		dir, err := writer.OpenDir(s.root(), name)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("the project has no checkpoints: %w", ErrNotFound)
		}
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.dirs = append(c.dirs, dir)
	}
	c.blobs = blob.New(c.dirs[1])
	c.Store = checkpoint.New(c.dirs[0], checkpoint.MainTree, c.blobs, s.project, checkpoint.Options{Alive: s.alive, Outside: s.opts.Outside})
	return c, nil
}

// makeCheckpoints is Checkpoints, and makes the folders first where there are none.
func (s *Store) makeCheckpoints() (*Checkpoints, error) {
	for _, name := range checkpointDirs {
		if err := writer.MkdirDurable(s.root(), name); err != nil {
			return nil, err
		}
	}
	return s.Checkpoints()
}

// alive says whether somebody holds a session, or a command of it still works that
// outlived its loop. Where that is not known the answer is yes.
func (s *Store) alive(name string) bool {
	id, err := session.ParseID(name)
	if err != nil {
		return false
	}
	owner, err := s.Holder(id)
	if err != nil || owner != nil {
		return true
	}
	orphan, err := s.Abandoned(id)
	return err != nil || orphan != nil && orphan.Alive
}

// Close closes the folders.
func (c *Checkpoints) Close() error {
	var errs []error
	for _, d := range c.dirs {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}

// at says whether the open folders are still those of their names.
func (c *Checkpoints) at(root writer.FS) bool {
	for i, name := range checkpointDirs {
		held, err := c.dirs[i].Stat(".")
		there, err2 := root.Lstat(name)
		if err != nil || err2 != nil || !writer.SameFile(held, there) {
			return false
		}
	}
	return true
}

// CheckpointLine are the numbers of the checkpoints on a session's line: its own, and
// those of the session that it comes from up to there.
func (s *Store) CheckpointLine(cps *Checkpoints, id session.ID) (map[uint64]bool, error) {
	ld, err := s.readWhole(id)
	if err != nil {
		return nil, err
	}
	if err := ld.Dir.Close(); err != nil || ld.At.Checkpoint == "" {
		return nil, err
	}
	last, err := cps.Lookup(ld.At.Checkpoint)
	if errors.Is(err, checkpoint.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return cps.Line(last.Number)
}

// CheckpointUsage is what the checkpoints of a project take, in bytes: the lengths of
// the files added, as du --apparent-size adds them.
type CheckpointUsage struct {
	Checkpoints int
	Blobs       int64 // the files in .lopen/blobs
	Chain       int64 // the files in .lopen/checkpoints
	// Unneeded are contents that no checkpoint needs: a pack keeps them until more than
	// half of it is unneeded. -1 where it is not known.
	Unneeded int64
}

// CheckpointUsage looks at what the checkpoints of the project take. It takes no lock:
// what another process stores at this moment may be among Unneeded.
func (s *Store) CheckpointUsage() (u CheckpointUsage, err error) {
	cps, err := s.Checkpoints()
	if errors.Is(err, ErrNotFound) {
		return u, nil
	}
	if err != nil {
		return u, err
	}
	defer cps.Close()
	all, _, err := cps.List()
	if err != nil {
		return u, err
	}
	needed := map[blob.Hash]struct{}{}
	for _, e := range all {
		if e.Removed != "" {
			continue
		}
		u.Checkpoints++
		if u.Unneeded == 0 && cps.Objects(e, checkpoint.Unseen(needed)) != nil {
			u.Unneeded = -1
		}
	}
	for h, err := range cps.blobs.All() {
		if u.Unneeded < 0 {
			break
		}
		n := int64(0)
		if _, live := needed[h]; err == nil && !live {
			n, err = cps.blobs.Size(h)
		}
		if u.Unneeded += n; err != nil {
			u.Unneeded = -1
		}
	}
	u.Blobs, err = cps.blobs.Usage()
	u.Chain = fileBytes(cps.dirs[0])
	return u, err
}

// fileBytes are the lengths of the files in a folder.
func fileBytes(dir writer.FS) (n int64) {
	entries, err := dir.ReadDir(".")
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
	}
	return n
}

// sweep removes the contents that no checkpoint needs any more. While somebody makes a
// checkpoint it returns ErrBusy; when a tree cannot be read nothing is removed.
func (c *Checkpoints) sweep() (blob.Swept, error) {
	swept, err := c.blobs.Sweep(func() (map[blob.Hash]struct{}, error) {
		needed := map[blob.Hash]struct{}{}
		return needed, checkpoint.Roots(c.dirs[0], c.blobs, needed)
	})
	if err != nil {
		return swept, fmt.Errorf("free what no checkpoint needs: %w", err)
	}
	return swept, nil
}

// projectFiles is what an open session knows of the project's files. Guarded by mu.
//
// tree and seen are what the session last saw: a Checkpoint, and Past of a session that
// has one, see a tree, Look sees a snapshot alone. The other one may be nil.
type projectFiles struct {
	mu      sync.Mutex
	store   *Checkpoints      // nil before it is needed
	was     *Checkpoints      // the one before, which is closed
	last    *checkpoint.Entry // the newest of the session; nil when there is none
	tree    *checkpoint.Tree
	seen    *files.Snapshot
	saved   *files.Snapshot // what the next holder will take for seen
	fewer   bool            // checkpoints were removed: some contents may be needed no more
	over    int64           // see CheckpointsOver
	unswept bool            // a sweep has failed: to remove more would free nothing
}

// openCheckpoints makes the folders where they are missing and finds the session's
// newest checkpoint. The caller holds mu.
func (s *Session) openCheckpoints() error {
	k := &s.files
	if k.store != nil && k.store.at(s.store.root()) {
		return nil
	}
	if k.store != nil { // of folders that were removed: another chain begins
		_ = k.store.Close()
		k.store, k.was, k.last, k.tree = nil, k.store, nil, nil
	}
	var err error
	if k.store, err = s.store.makeCheckpoints(); err != nil {
		return err
	}
	if k.was != nil {
		k.store.Continue(k.was.Store)
		k.was = nil
	}
	if name := s.mark.Load().Checkpoint; name != "" {
		k.last, err = k.store.Lookup(name)
		if errors.Is(err, checkpoint.ErrNotFound) {
			s.log.Warn().Err(err).Msg("the last checkpoint is gone: everything counts as seen for the first time")
			err = nil
		}
	}
	return err
}

// Release drops what the session holds of large parts: what it last saw of the
// project's files. What is needed again is read again. It is for a holder that waits
// for long between two tasks, and may be called from any goroutine.
func (s *Session) Release() error {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	return s.release()
}

// release is Release. The caller holds mu.
func (s *Session) release() error {
	k := &s.files
	k.last, k.tree, k.seen, k.saved = nil, nil, nil, nil
	if k.store == nil {
		return nil
	}
	if k.store.Seen() != nil {
		if err := k.store.Remember(); err != nil {
			s.log.Warn().Err(err).Msg("the next checkpoint reads every file again")
		}
	}
	err := k.store.Close()
	k.store, k.was = nil, k.store
	return err
}

// closeCheckpoints closes the folders, and frees what removed checkpoints had.
func (s *Session) closeCheckpoints() error {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	if s.files.store != nil && s.files.fewer {
		s.sweep()
	}
	return s.release()
}

// Checkpoint stores the project's files together with the newest State: both are durable
// when it returns, and the session's journal names the checkpoint. The changes are those
// since the last Checkpoint or Look. A file that has not changed costs one stat.
//
// Checkpoints beyond the store's [Policy] are removed afterwards; see
// [Session.CheckpointsOver].
func (s *Session) Checkpoint(ctx context.Context, why checkpoint.Reason, task string) (*checkpoint.Entry, []files.Change, error) {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	err := s.recall()
	var e *checkpoint.Entry
	if err == nil {
		e, err = s.checkpoint(ctx, why, task, 0)
	}
	if err = s.orLost(ctx, err); err != nil {
		return nil, nil, fmt.Errorf("checkpoint of session %s: %w", s.id, err)
	}
	changes := s.sees(s.files.store.Tree(e.Root))
	s.files.last = e
	err = s.append(commit.CheckpointMade(e, changes))
	s.recorded.Store(err == nil)
	if err == nil {
		err = s.Sync(ctx)
	}
	if err == nil && e.Changed > 0 { // one that changed nothing takes nothing
		s.thin(ctx)
	}
	return e, changes, err
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

// checkpoint makes one. On a full disk it first removes what the limit does not keep.
// The caller holds mu.
func (s *Session) checkpoint(ctx context.Context, why checkpoint.Reason, task string, target uint64) (*checkpoint.Entry, error) {
	if err := s.openCheckpoints(); err != nil {
		return nil, err
	}
	if err := s.Sync(ctx); err != nil { // the State that belongs to it
		return nil, err
	}
	begun := time.Now()
	meta := s.store.meta(s.id, s.State(), *s.mark.Load(), s.files.last)
	meta.Reason, meta.Task, meta.Target = why, task, target
	e, err := s.files.store.Create(ctx, meta)
	if writer.ClassOf(err) == writer.ClassNoSpace && s.thin(ctx) > 0 {
		e, err = s.files.store.Create(ctx, meta)
	}
	if err != nil {
		return nil, err
	}
	s.log.Info().Uint64("number", e.Number).Stringer("checkpoint", e.ID).Str("task", task).Str("reason", string(why)).Uint64("seq", e.Seq).
		Int("changed", e.Changed).Int64("bytes", e.Bytes).Bool("contested", e.Contested()).Dur("duration_ms", time.Since(begun)).Msg("checkpoint made")
	return e, nil
}

// meta describes a checkpoint of a session, without the reason; last is the session's newest
// checkpoint.
func (s *Store) meta(id session.ID, st *session.State, at session.Mark, last *checkpoint.Entry) checkpoint.Meta {
	p := st.Progress()
	m := checkpoint.Meta{
		Session: id.String(), Incarnation: at.Incarnation, Seq: at.Seq, At: s.opts.Now().UTC(),
		Tasks: checkpoint.Tasks{Total: p.Total, Completed: p.Done}, Messages: int(at.Messages),
	}
	if last != nil {
		m.Parent = last.Number
	}
	if s.opts.Git != nil {
		m.Git = s.opts.Git()
	}
	return m
}

// PinCheckpoint durably keeps a checkpoint from being removed for the policy's sake, or
// no more. It need not be of this session.
func (s *Session) PinCheckpoint(ctx context.Context, id checkpoint.ID, pinned bool) error {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	if err := s.openCheckpoints(); err != nil {
		return err
	}
	if err := s.files.store.Pin(ctx, id, pinned); err != nil {
		return err
	}
	s.log.Info().Stringer("checkpoint", id).Msg("checkpoint " + pinnedText[pinned])
	return nil
}
