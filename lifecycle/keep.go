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
)

// kept is what an open session knows of the project's files. Guarded by mu.
//
// tree and seen are what the session last saw: a Checkpoint, and Past of a session that
// has one, see a tree, Look sees a snapshot alone. The other one may be nil.
type kept struct {
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
	k := &s.kept
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
		k.last, err = k.store.entry(name)
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
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	return s.release()
}

// release is Release. The caller holds mu.
func (s *Session) release() error {
	k := &s.kept
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
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	if s.kept.store != nil && s.kept.fewer {
		s.sweep()
	}
	return s.release()
}

// Checkpoint keeps the project's files together with the newest State: both are durable
// when it returns, and the session's journal names the checkpoint. The changes are those
// since the last Checkpoint or Look. A file that has not changed costs one stat.
//
// Checkpoints beyond the store's [Policy] are removed afterwards; see
// [Session.CheckpointsOver].
func (s *Session) Checkpoint(ctx context.Context, why checkpoint.Reason, task string) (*checkpoint.Entry, []files.Change, error) {
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	err := s.recall()
	var e *checkpoint.Entry
	if err == nil {
		e, err = s.checkpoint(ctx, why, task, 0)
	}
	if err = s.orLost(ctx, err); err != nil {
		return nil, nil, fmt.Errorf("checkpoint of session %s: %w", s.id, err)
	}
	changes := s.sees(s.kept.store.Tree(e.Root))
	s.kept.last = e
	err = s.append(checkpointMade(e, changes))
	s.told.Store(err == nil)
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
	meta := s.store.meta(s.id, s.State(), *s.mark.Load(), s.kept.last)
	meta.Reason, meta.Task, meta.Target = why, task, target
	e, err := s.kept.store.Create(ctx, meta)
	if writer.ClassOf(err) == writer.ClassNoSpace && s.thin(ctx) > 0 {
		e, err = s.kept.store.Create(ctx, meta)
	}
	if err != nil {
		return nil, err
	}
	s.log.Info().Uint64("number", e.Number).Stringer("checkpoint", e.ID).Str("task", task).Str("reason", string(why)).Uint64("seq", e.Seq).
		Int("changed", e.Changed).Int64("bytes", e.Bytes).Bool("contested", e.Contested()).Dur("duration_ms", time.Since(begun)).Msg("checkpoint made")
	return e, nil
}

// meta is what is said of a checkpoint of a session, whose newest one is last, but for the
// reason.
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
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	if err := s.openCheckpoints(); err != nil {
		return err
	}
	if err := s.kept.store.Pin(ctx, id, pinned); err != nil {
		return err
	}
	s.log.Info().Stringer("checkpoint", id).Msg("checkpoint " + pinnedText(pinned))
	return nil
}
