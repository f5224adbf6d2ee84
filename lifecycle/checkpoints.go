package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/commit"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/private"
)

const (
	checkpointsDir = "checkpoints"
	blobsDir       = "blobs"
	movedDir       = "moved"
)

// Checkpoints are the checkpoints of a work tree of the project, of all sessions in it. Close it
// after use.
type Checkpoints struct {
	*checkpoint.Store
	blobs *blob.Store
	root  writer.FS   // the .lopen folder
	dirs  []writer.FS // in the order of checkpointDirs, and then the linked work tree
	// Gone is why the linked work tree cannot be opened, a [*WorktreeError]. Its checkpoints can
	// be read all the same.
	Gone error
}

var checkpointDirs = []string{checkpointsDir, blobsDir}

// openTree opens the folder of a linked work tree.
func (s *Store) openTree(w *session.Worktree) (dir writer.FS, err error) {
	folder := w.Folder(s.project.Name())
	if err = errors.ErrUnsupported; s.opts.Worktree != nil {
		err = s.opts.Worktree(folder)
	}
	if err == nil {
		dir, err = writer.OpenFS(folder)
	}
	if err != nil {
		return nil, &WorktreeError{folder, *w, err}
	}
	return dir, nil
}

// Checkpoints opens the checkpoints of a work tree, without a lock; nil means the project's
// folder. The error wraps ErrNotFound if the project has none.
func (s *Store) Checkpoints(w *session.Worktree) (*Checkpoints, error) {
	c := &Checkpoints{root: s.root()}
	for _, name := range checkpointDirs {
		dir, err := s.root(), error(nil)
		if s.saves() {
			dir, err = writer.OpenDir(s.root(), name)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("the project has no checkpoints: %w", ErrNotFound)
		}
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.dirs = append(c.dirs, dir)
	}
	c.blobs = blob.New(c.dirs[1]).Compressing(s.opts.Policy.Compression)
	tree, opts := s.project, checkpoint.Options{Alive: s.alive, Lopen: s.root(), Memory: s.opts.Memory}
	if w != nil {
		if tree, c.Gone = s.openTree(w); c.Gone == nil {
			c.dirs = append(c.dirs, tree)
		}
	}
	opts.Outside, opts.Repository = func(ctx context.Context) []files.IgnoreFile { return s.outside(ctx, w) }, s.repository(w)
	c.Store = checkpoint.New(c.dirs[0], w.Chain(checkpoint.MainTree), c.blobs, tree, opts)
	return c, nil
}

// outside returns the ignore files from outside of a work tree.
func (s *Store) outside(ctx context.Context, w *session.Worktree) []files.IgnoreFile {
	if s.opts.Outside == nil {
		return nil
	}
	return s.opts.Outside(ctx, w.Folder(s.project.Name()))
}

// repository returns the function that returns the state of a repository within a work tree.
func (s *Store) repository(w *session.Worktree) func(ctx context.Context, path string) string {
	if s.opts.Repository == nil {
		return nil
	}
	folder := w.Folder(s.project.Name())
	return func(ctx context.Context, path string) string { return s.opts.Repository(ctx, folder, path) }
}

// makeCheckpoints is Checkpoints that makes the folders if they are missing, and needs the work
// tree.
func (s *Store) makeCheckpoints(w *session.Worktree) (*Checkpoints, error) {
	for _, name := range append(slices.Clone(checkpointDirs), movedDir) {
		if !s.saves() {
			break
		}
		if err := private.Make(s.root(), name); err != nil {
			return nil, err
		}
	}
	c, err := s.Checkpoints(w)
	if err == nil && c.Gone != nil {
		return nil, errors.Join(c.Gone, c.Close())
	}
	return c, err
}

// alive reports whether a session is held, or a command that outlived its loop still runs.
// When that is not known it returns true.
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

// release remembers what the tracker saw, and closes the folders.
func (c *Checkpoints) release(log *zerolog.Logger) error {
	if err := c.Remember(); err != nil {
		log.Warn().Err(err).Msg("the next checkpoint reads every file again")
	}
	return c.Close()
}

// Close closes the folders.
func (c *Checkpoints) Close() error {
	var errs []error
	for _, d := range c.dirs {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}

// at reports whether the open folders still have their names in root.
func (c *Checkpoints) at(root writer.FS) bool {
	for i, name := range checkpointDirs { // a work tree that was removed is noticed by who looks at it
		held, err := c.dirs[i].Stat(".")
		there, err2 := root.Lstat(name)
		if err != nil || err2 != nil || !writer.SameFile(held, there) {
			return false
		}
	}
	return true
}

// CheckpointUsage is what the checkpoints of a project take, in bytes: the sum of the
// lengths of the files, as du --apparent-size gives it.
type CheckpointUsage struct {
	Checkpoints int
	Blobs       int64 // the files in .lopen/blobs
	Chain       int64 // the files in .lopen/checkpoints
	// Unneeded is the size of contents that no checkpoint needs and that are still in a
	// pack, which is rewritten once more than half of it is not needed. -1 means that it is
	// not known.
	Unneeded int64
	Moved    int64 // what rewinds moved away, in .lopen/moved
}

// CheckpointUsage measures the checkpoints of the project. It takes no lock, so Unneeded may
// include what another process is storing.
func (s *Store) CheckpointUsage() (u CheckpointUsage, err error) {
	cps, err := s.Checkpoints(nil)
	if errors.Is(err, ErrNotFound) {
		return u, nil
	}
	if err != nil {
		return u, err
	}
	defer cps.Close()
	chains, err := cps.Others()
	if err != nil {
		return u, err
	}
	needed := map[blob.Hash]struct{}{}
	for _, chain := range append(chains, cps.Store) {
		all, _, err := chain.List()
		if err != nil {
			return u, err
		}
		for _, e := range all {
			if e.Removed != "" {
				continue
			}
			u.Checkpoints++
			if u.Unneeded == 0 && chain.Objects(e, checkpoint.Unseen(needed)) != nil {
				u.Unneeded = -1
			}
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
	var merr error
	u.Blobs, err = cps.blobs.Usage()
	u.Moved, merr = checkpoint.MovedBytes(cps.root)
	err = errors.Join(err, merr)
	u.Chain = fileBytes(cps.dirs[0])
	return u, err
}

// fileBytes returns the sum of the lengths of the files in a folder.
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

// sweep removes the contents, and what rewinds moved away, that no checkpoint needs. It returns ErrBusy while a checkpoint
// is being made. When a tree cannot be read, nothing is removed. What was moved away and cannot be removed keeps no
// content: it is logged, and the next sweep tries again.
func (c *Checkpoints) sweep(log *zerolog.Logger) (blob.Swept, error) {
	swept, err := c.blobs.Sweep(func() (map[blob.Hash]struct{}, error) {
		needed := map[blob.Hash]struct{}{}
		if err := checkpoint.Roots(c.dirs[0], c.blobs, needed); err != nil {
			return nil, err
		}
		if _, err := checkpoint.SweepMoved(c.root, needed); err != nil {
			log.Warn().Err(err).Msg("what a rewind moved away and no checkpoint needs cannot be removed; the next prune tries again")
		}
		return needed, nil
	})
	if err != nil {
		return swept, fmt.Errorf("free what no checkpoint needs: %w", err)
	}
	return swept, nil
}

// projectFiles is what an open session knows of the project's files. Guarded by mu.
//
// tree and seen are what the session last saw: a tree after Checkpoint, and after Past of a
// session with a checkpoint; a snapshot after Look. Either may be nil.
type projectFiles struct {
	mu      sync.Mutex
	folder  writer.FS         // the linked work tree; nil without one, and until it is needed
	store   *Checkpoints      // nil until it is needed
	was     *Checkpoints      // the one before store, which is closed
	last    *checkpoint.Entry // the session's newest checkpoint, or nil
	tree    *checkpoint.Tree
	seen    *files.Snapshot
	saved   *files.Snapshot // the snapshot that the next holder will load
	fewer   bool            // checkpoints were removed and not swept yet
	over    int64           // see CheckpointsOver
	unswept bool            // a sweep has failed, so removing more checkpoints would free nothing
	lost    bool            // see LostCheckpoint
}

// LostCheckpoint reports whether the last checkpoint of an earlier holder was gone when this one first needed the
// checkpoints.
func (s *Session) LostCheckpoint() bool {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	return s.files.lost
}

// openCheckpoints makes the folders where they are missing and finds the session's
// newest checkpoint. The caller holds mu.
func (s *Session) openCheckpoints() error {
	k := &s.files
	if k.store != nil && (!s.store.saves() || k.store.at(s.store.root())) {
		return nil
	}
	if k.store != nil { // its folders were removed: a new chain begins
		_ = k.store.Close()
		k.store, k.was, k.last, k.tree = nil, k.store, nil, nil
	}
	var err error
	if k.store, err = s.store.makeCheckpoints(s.State().Header().Worktree); err != nil {
		return err
	}
	if k.was != nil {
		k.store.Continue(k.was.Store)
		k.was = nil
	}
	if name := s.mark.Load().Checkpoint; name != "" {
		k.last, err = k.store.Lookup(name)
		if errors.Is(err, checkpoint.ErrNotFound) {
			if found, ierr := k.store.FindOther(name); ierr == nil && found != nil {
				s.log.Info().Str("checkpoint", name).Msg("the last checkpoint is of another work tree: everything counts as seen for the first time")
			} else {
				k.lost = true
				s.log.Warn().Err(err).Msg("the last checkpoint is gone: everything counts as seen for the first time")
			}
			err = nil
		}
		if s.continues && k.last != nil {
			k.store.ContinueTasks(k.last)
		}
	}
	return err
}

// Release frees the memory and the descriptors for what the session last saw of the
// project's files. They are read again when they are needed. It is for a holder that
// waits for long between two tasks.
func (s *Session) Release() error {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	return s.release()
}

// release is Release. The caller holds mu.
func (s *Session) release() error {
	k := &s.files
	k.last, k.tree, k.seen, k.saved = nil, nil, nil, nil
	if k.folder != nil {
		_ = k.folder.Close()
		k.folder = nil
	}
	if k.store == nil {
		return nil
	}
	err := k.store.release(&s.log)
	k.store, k.was = nil, k.store
	return err
}

// closeCheckpoints sweeps the contents of removed checkpoints and closes the folders. When ctx ends first, it is
// done once the call that is stuck has returned.
func (s *Session) closeCheckpoints(ctx context.Context) error {
	done := make(chan error, 1)
	go func() {
		s.files.mu.Lock()
		defer s.files.mu.Unlock()
		if s.files.store != nil && s.files.fewer {
			s.sweep()
		}
		done <- s.release()
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return nil // what would be remembered is derived
	}
}

// Checkpoint stores the project's files together with the newest State. When it returns
// nil, both are durable and the session's journal names the checkpoint. The changes are
// those since the last Checkpoint or Look. A file that has not changed costs one stat.
//
// Afterwards Checkpoint removes old checkpoints beyond the limit of the store's [Policy];
// see [Session.CheckpointsOver].
func (s *Session) Checkpoint(ctx context.Context, why checkpoint.Reason, task string) (*checkpoint.Entry, []files.Change, error) {
	return s.keep(ctx, checkpoint.Meta{Reason: why, Task: task})
}

// CheckpointOf is Checkpoint of the caller's own list of files and folders, relative to the work
// tree; what is not there is recorded as absent. Other paths are as in the entry before, and a
// rewind to it touches the list alone. The changes are those in the list since the entry before.
// For the next Checkpoint or Look nothing was seen. The error has class invalid for a path that is
// ignored or cannot be recorded.
func (s *Session) CheckpointOf(ctx context.Context, paths []string) (*checkpoint.Entry, []files.Change, error) {
	only, err := checkpoint.CleanOnly(paths)
	if err != nil {
		return nil, nil, err
	}
	return s.keep(ctx, checkpoint.Meta{Reason: checkpoint.Manual, Only: only})
}

// keep is Checkpoint of what is in meta.
func (s *Session) keep(ctx context.Context, meta checkpoint.Meta) (*checkpoint.Entry, []files.Change, error) {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	if !s.store.saves() {
		changes, err := s.look(ctx)
		meta.Session, meta.At = s.id.String(), s.store.opts.Now().UTC()
		return &checkpoint.Entry{Meta: meta}, changes, err
	}
	err := s.recall()
	var e *checkpoint.Entry
	if err == nil {
		e, err = s.checkpoint(ctx, meta)
	}
	if err = s.orLost(ctx, err); err != nil {
		return nil, nil, fmt.Errorf("checkpoint of session %s: %w", s.id, err)
	}
	changes, err := s.changesAt(e)
	if err != nil {
		return e, nil, err
	}
	s.files.last = e
	err = s.append(commit.CheckpointMade(e, changes))
	if e.Only == nil {
		s.recorded.Store(err == nil)
	}
	if err == nil {
		err = s.Sync(ctx)
	}
	if err == nil && e.Changed > 0 { // a checkpoint without changes takes no space
		s.thin(ctx)
	}
	return e, changes, err
}

// checkpoint makes a checkpoint. On a full disk it removes old checkpoints and tries once
// more. The caller holds mu.
func (s *Session) checkpoint(ctx context.Context, of checkpoint.Meta) (*checkpoint.Entry, error) {
	if err := s.openCheckpoints(); err != nil {
		return nil, err
	}
	if err := s.Sync(ctx); err != nil { // so that the State of the checkpoint is durable first
		return nil, err
	}
	begun := time.Now()
	meta := s.store.meta(ctx, s.id, s.State(), s.mark.Load().Mark, s.files.last)
	meta.Reason, meta.Task, meta.Target, meta.Only = of.Reason, of.Task, of.Target, of.Only
	if t, ok := s.State().Task(cmp.Or(of.Task, s.State().ActiveTask())); ok {
		meta.Tasks.Dependencies = t.FirstDependencies()
	}
	e, err := s.files.store.Create(ctx, meta)
	if writer.ClassOf(err) == writer.ClassNoSpace && s.thin(ctx) > 0 {
		e, err = s.files.store.Create(ctx, meta)
	}
	if err != nil {
		return nil, err
	}
	s.log.Info().Uint64("number", e.Number).Stringer("checkpoint", e.ID).Str("task", e.Task).Str("reason", string(e.Reason)).Uint64("seq", e.Seq).
		Int("changed", e.Changed).Int64("bytes", e.Bytes).Bool("contested", e.Contested()).Dur("duration_ms", time.Since(begun)).Msg("checkpoint made")
	return e, nil
}

// meta describes a new checkpoint of a session, except for the reason. last is the session's
// newest checkpoint, or nil.
func (s *Store) meta(ctx context.Context, id session.ID, st *session.State, at session.Mark, last *checkpoint.Entry) checkpoint.Meta {
	p := st.Progress()
	m := checkpoint.Meta{
		Session: id.String(), Incarnation: at.Incarnation, Seq: at.Seq, At: s.opts.Now().UTC(),
		Tasks: checkpoint.Tasks{Total: p.Total, Completed: p.Done}, Messages: int(at.Messages),
	}
	if last != nil {
		m.Parent = last.Number
	}
	m.Git = s.git(ctx, st.Header().Worktree)
	return m
}

// git returns the state of the repository of a work tree, as it is stored.
func (s *Store) git(ctx context.Context, w *session.Worktree) checkpoint.Git {
	if s.opts.Git == nil {
		return checkpoint.Git{}
	}
	g := s.opts.Git(ctx, w.Folder(s.project.Name()))
	shown, _ := s.opts.Policy.redactor().String(g.Branch)
	g.Hide(shown)
	return g
}

// PinCheckpoint pins or unpins a checkpoint, durably. The policy does not remove a pinned
// checkpoint. Any session may pin any checkpoint.
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
