package lifecycle

import (
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// A Policy says when a session is saved without being asked, what is hidden before it
// is kept, and which States and checkpoints stay. It is part of a store's [Options],
// the same for all sessions of the store, and never changes. States of a
// changed phase and of a completed component are always kept whole beside the journal.
type Policy struct {
	Autosave   time.Duration // after an Update, at the latest; 0 leaves it to the next Save
	Interval   int           // keep a State every so many commits; 0 is none
	Iterations bool          // and one at each commit in which the iterations grew
	// Redact hides credentials before a message, an event or the end of an output is
	// kept; nil has the built-in rules.
	Redact *redact.Redactor
	// Unredacted keeps credentials as they are: Redact does not count.
	Unredacted bool
	// CheckpointBytes bounds what the project's checkpoints take on the disk, which is
	// never more than a tenth of the free space; 0 is no bound.
	CheckpointBytes int64
	// JournalBytes bounds what the log of a session takes on the disk, without messages,
	// events and attempts, which stay: above it the oldest records of the State are dropped,
	// so that at most half is left. 0 is no bound.
	JournalBytes int64
	Retention    int // how many of each kind are kept; 0 is all. Those of iterations are all kept
	// RewindPermitted lets Open finish a rewind that was begun although the system does
	// not allow all of it: what it does not is left as it is, and logged.
	RewindPermitted bool
}

// redactor is what hides credentials; nil hides nothing.
func (p *Policy) redactor() *redact.Redactor {
	switch {
	case p.Unredacted:
		return nil
	case p.Redact == nil:
		return &redact.Redactor{}
	}
	return p.Redact
}

// A snapshot is a State on its way to history/.
type snapshot struct {
	st *session.State
	at session.Mark
	m  history.Manifest
}

func (c *committer) snapshot(st *session.State, at session.Mark, when time.Time, why history.Reason) snapshot {
	p := st.Progress()
	active := []string{}
	if id := st.ActiveTask(); id != "" {
		active = append(active, id)
	}
	return snapshot{st, at, history.Manifest{
		Session: c.id.String(), Epoch: at.Epoch, Seq: at.Seq, At: when, Reason: why,
		Tasks: history.Tasks{Total: p.Total, Completed: p.Done, Active: active}, Dependencies: []string{}, Iterations: st.NumIterations(),
	}}
}

func (s snapshot) write(dir writer.FS) (history.Manifest, error) {
	files := map[string]struct{}{}
	for t := range s.st.All() {
		for i := range t.Log {
			for _, name := range t.Log[i].Artifacts {
				files[name] = struct{}{}
			}
		}
	}
	s.m.FilesModified = len(files)
	return history.Write(dir, s.m, session.EncodeState(s.st, s.at), session.EncodeMetrics(s.st, s.at))
}

// remember notes a State that is to be kept whole. It is written beside the
// commits; the journal has it all the same.
func (c *committer) remember(b actors.Batch, at session.Mark, when time.Time, grew bool) {
	c.since++
	h := c.store.opts.Policy
	var why history.Reason
	switch {
	case c.base != nil && c.base.Phase() != b.State.Phase():
		why = history.Phase
	case b.Triggers[session.TriggerComponentCompleted] > 0:
		why = history.Component
	case h.Iterations && grew:
		why = history.Iteration
	case h.Interval > 0 && c.since >= h.Interval:
		why = history.Interval
	default:
		return
	}
	c.since = 0
	snap := c.snapshot(b.State, at, when, why)
	if c.base != nil {
		snap.m.NewIterations = b.State.NumIterations() - c.base.NumIterations()
	}
	c.pub.remember(snap, h.Retention)
}

// ReadAt returns a session as it was at a record, from the nearest snapshot and the
// records after it, without a lock. ErrNotFound says that the session has no such
// record; ErrCorrupt, that a record on the way to it is damaged or gone.
func (s *Store) ReadAt(id session.ID, seq uint64) (*session.State, error) {
	dir, err := s.sessionDir(id)
	if err != nil {
		return nil, fmt.Errorf("read session %s: %w", id, err)
	}
	defer dir.Close()
	st, _, err := stateAt(dir, id, seq)
	if err != nil {
		return nil, fmt.Errorf("read session %s at %d: %w", id, seq, err)
	}
	return st, nil
}

func stateAt(dir writer.FS, id session.ID, seq uint64) (*session.State, session.Mark, error) {
	p, err := readPair(dir)
	b := &builder{dir: dir, id: id}
	if err == nil {
		err = b.read(p)
	}
	if err != nil {
		return nil, session.Mark{}, unreadable("load session", dir.Name(), err)
	}
	if first, last := b.log.Begin(), b.log.Last(); seq < first || seq > last {
		return nil, session.Mark{}, fmt.Errorf("%w: its records go from %d to %d", ErrNotFound, first, last)
	}
	got, err := b.fromNewest(seq)
	if err == nil {
		err = got.ended
	}
	if err == nil && got.at.Seq != seq {
		err = fmt.Errorf("%w: record %d is missing", session.ErrCorrupt, seq)
	}
	if err != nil {
		return nil, session.Mark{}, unreadable("read journal", dir.Name(), err)
	}
	return got.st, got.at, nil
}
