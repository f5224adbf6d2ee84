package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
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
	Retention       int // how many of each kind are kept; 0 is all. Those of iterations are all kept
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

// Snapshots lists the States of a session that are kept whole, oldest first.
func (s *Store) Snapshots(id session.ID) ([]history.Manifest, error) {
	dir, err := s.sessionDir(id)
	if err != nil {
		return nil, fmt.Errorf("snapshots of session %s: %w", id, err)
	}
	defer dir.Close()
	return history.List(dir)
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
	now, err := join(dir, id)
	if err != nil {
		return nil, session.Mark{}, unreadable("load session", dir.Name(), err)
	}
	if seq == now.at.Seq {
		return now.state, now.at, nil
	}
	if seq == 0 || seq > now.at.Seq {
		return nil, session.Mark{}, fmt.Errorf("%w: its records go from 1 to %d", ErrNotFound, now.at.Seq)
	}
	log, err := journal.Read(dir, now.base.Seq, true)
	if err != nil {
		return nil, session.Mark{}, err
	}
	all, err := history.List(dir)
	if err != nil {
		return nil, session.Mark{}, err
	}
	return nearest(dir, id, log, all, seq)
}

// maxBegins bounds how many snapshots are gone on from, one after the other, where the
// records after one do not lead on: those after an earlier one lead through them.
const maxBegins = 8

// nearest is the State of a record from the nearest snapshot and the records after
// it.
func nearest(dir writer.FS, id session.ID, log *journal.Log, all []history.Manifest, seq uint64) (*session.State, session.Mark, error) {
	names := namedIn(log, all)
	tries := 0
	for _, m := range slices.Backward(all) {
		if m.Seq > seq || !log.Holds(m.Epoch, m.Seq) {
			continue
		}
		if _, same := names.recordOf(log, m); m.Reason == history.Large && !same {
			continue // it was written before its record, which became another one or is not at hand
		}
		if tries++; tries > maxBegins {
			break
		}
		if r, err := fromSnapshot(dir, m); err == nil {
			if st, at, err := replayTo(dir, id, r, log, m.Seq, seq); err == nil {
				return st, at, nil
			}
		}
	}
	return replayTo(dir, id, &session.Replay{}, log, 0, seq)
}

// snapshotNames are the checksums of the snapshots that records name, by the record.
type snapshotNames map[uint64]string

// namedIn reads the records of the snapshots that are of large changes.
func namedIn(log *journal.Log, all []history.Manifest) snapshotNames {
	names, last := snapshotNames{}, uint64(0)
	var refs []journal.Ref
	for _, m := range all {
		if ref, ok := refOf(log, m.Seq); ok && m.Reason == history.Large && m.Seq > last {
			refs, last = append(refs, ref), m.Seq
		}
	}
	// A segment that changes while it is read leaves the rest unnamed, and so not believed.
	_ = log.Lines(refs, func(ref *journal.Ref, line []byte) error {
		if rec, err := session.DecodeRecord(line); err == nil && rec.Snapshot != nil {
			names[ref.Seq] = rec.Snapshot.SHA256
		}
		return nil
	})
	return names
}

func refOf(log *journal.Log, seq uint64) (journal.Ref, bool) {
	refs := log.Above(seq - 1)
	if len(refs) == 0 || refs[0].Seq != seq {
		return journal.Ref{}, false
	}
	return refs[0], true
}

// recordOf says whether the record of a snapshot's number is at hand, and whether the
// snapshot is of it: one of a large change is if the record names its content.
func (n snapshotNames) recordOf(log *journal.Log, m history.Manifest) (known, same bool) {
	ref, ok := refOf(log, m.Seq)
	if !ok {
		return false, false
	}
	return true, ref.Epoch == m.Epoch && (m.Reason != history.Large || n[m.Seq] == m.SHA256)
}

func fromSnapshot(dir writer.FS, m history.Manifest) (*session.Replay, error) {
	state, metrics, err := history.Read(dir, m.ID(), m.SHA256)
	if err != nil {
		return nil, err
	}
	r := &session.Replay{}
	return r, r.Load(state, metrics)
}

// replayTo applies the records above one number up to another, none of which may
// be missing.
func replayTo(dir writer.FS, id session.ID, r *session.Replay, log *journal.Log, from, to uint64) (*session.State, session.Mark, error) {
	refs := log.Above(from)
	refs = refs[:len(refs)-len(log.Above(to))]
	if uint64(len(refs)) != to-from {
		return nil, session.Mark{}, &Error{Op: "read journal", Path: dir.Name(), Class: writer.ClassCorrupt,
			Err: fmt.Errorf("of the records %d to %d only %d are there", from+1, to, len(refs))}
	}
	if err := apply(dir, r, log, refs); err != nil {
		return nil, session.Mark{}, unreadable("read journal", dir.Name(), err)
	}
	st, at, err := r.State(id)
	if err != nil {
		return nil, session.Mark{}, unreadable("read journal", dir.Name(), err)
	}
	return st, at, nil
}
