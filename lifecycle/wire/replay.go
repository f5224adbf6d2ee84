package wire

import (
	"fmt"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// A Replay rebuilds a State from two snapshots of it and the records above them,
// or from records alone. It belongs to one goroutine.
type Replay struct {
	state   stateFile
	metrics metricsFile // its iterations are those of the State, too
	changed uint64      // the last record that changed the iterations

	edit *session.Edit // of the State, while records are applied
	// lists are the children of a parent ("" for the outermost tasks) while records change
	// them: each change in place, and the tasks that have them made once.
	lists   map[string][]string
	moved   int             // how many IDs had to move for that
	members []session.Field // the header as it is written; nil while it is the State's own
	touched bool            // members differ from the State's header

	sums session.Sums // of the files

	// Lenient is for records behind others that are lost: iterations are numbered
	// anew, and children go behind those that are there.
	Lenient bool
}

// Continue returns a Replay that begins at the State of a record.
func Continue(st *session.State, at session.Mark) *Replay {
	return &Replay{state: stateFile{state: st, at: at}, metrics: metricsFile{id: st.ID(), at: at, iterations: st.Metrics()}, changed: at.Iterations}
}

// Level takes the iterations that there are for those of the State, where the
// records of the others are lost.
func (r *Replay) Level() { r.metrics.at = r.state.at }

// Load takes the contents of state.json and metrics.json, which may be of
// different records. The error wraps ErrCorrupt, ErrFutureVersion or
// session.ErrEdited. Both files are taken with session.ErrEdited, for showing what somebody edited, and with
// ErrFutureVersion where what this version knows of them can be read.
func (r *Replay) Load(state, metrics []byte) error {
	s, m, err := decodeBoth(state, metrics)
	if s == nil {
		return err
	}
	*r = Replay{state: *s, metrics: *m, changed: s.at.Iterations, sums: compare(s, m)}
	if m.at.Seq >= s.at.Iterations && m.at.Seq < s.at.Seq {
		r.metrics.at = s.at // nothing was added in between
	}
	return err
}

// Findings are the rules that the loaded files break and that no State can break:
// sums that do not add up.
func (r *Replay) Findings() []session.Finding { return r.sums.Findings() }

// ID is that of the loaded files; zero when none was loaded.
func (r *Replay) ID() session.ID {
	if r.state.state == nil {
		return session.ID{}
	}
	return r.state.state.ID()
}

// At is the record that the State is of, 0 before the first one. Records above it, or
// above that of Metrics where that is smaller, are to be applied.
func (r *Replay) At() session.Mark { return r.state.at }

// Metrics is the record that the iterations are of.
func (r *Replay) Metrics() session.Mark { return r.metrics.at }

// Apply applies a line of the journal. What a file shows already, because it is of that
// record or a later one, stays as it is. A record that names a snapshot changes nothing
// and is returned: the caller loads the snapshot. The error wraps ErrCorrupt or
// ErrFutureVersion; the Replay is of no use then.
func (r *Replay) Apply(line []byte) (record.Record, error) {
	var rec record.Record
	err := decodeRecord(line, &rec, func(op *operation) error {
		if op.Name == record.OpIterationsAdded {
			r.changed = max(r.changed, rec.Seq)
			if rec.Seq > r.metrics.at.Seq {
				return r.addIterations(op)
			}
			return nil
		}
		if rec.Seq > r.state.at.Seq {
			return r.do(op)
		}
		return nil
	})
	if err != nil {
		return rec, err
	}
	if rec.Seq > r.state.at.Seq {
		r.state.at.Epoch, r.state.at.Seq = rec.Epoch, rec.Seq
		Follow(&r.state.at, &rec)
	}
	if rec.Seq > r.metrics.at.Seq {
		r.metrics.at.Epoch, r.metrics.at.Seq = rec.Epoch, rec.Seq
	}
	return rec, nil
}

// Follow brings a mark up to date with all of a record but its number and what it changes
// of the State.
func Follow(m *session.Mark, r *record.Record) {
	switch r.Event {
	case record.EventRewindBegin:
		m.Rewinding = r.Rewind
	case record.EventRewindEnd:
		if m.Rewinding = nil; r.Rewind != nil {
			if r.Rewind.Task == "" {
				m.Undo = r.Rewind.Before
			}
			if r.Rewind.After != "" {
				m.Checkpoint = r.Rewind.After
			}
		}
	}
	if r.Incarnation != "" {
		m.Incarnation = r.Incarnation
	}
	if r.Checkpoint != "" {
		m.Checkpoint = r.Checkpoint
	}
	if r.Inherits != nil {
		m.Inherits, m.OpenCalls = r.Inherits, r.OpenCalls
	}
	m.Messages, m.Transcript = max(m.Messages, r.Messages), max(m.Transcript, r.Transcript)
	if r.Message != nil {
		if answer, err := DecodeMessage(r.Message); err == nil { // a damaged one costs itself alone
			m.OpenCalls = session.Answered(m.OpenCalls, &answer)
		}
	}
}

// begin makes an Edit of what is there; of nothing, at first.
func (r *Replay) begin() *session.Edit {
	if r.edit == nil {
		if r.state.state == nil {
			r.state.state = session.Blank(session.ID{})
		}
		r.edit = r.state.state.Edit()
	}
	return r.edit
}

// State returns what the snapshots and records come to, with the mark of the last
// one. Snapshots of different records, where those between are missing, wrap
// ErrCorrupt.
func (r *Replay) State(id session.ID) (*session.State, session.Mark, error) {
	if r.state.state == nil {
		return nil, session.Mark{}, fmt.Errorf("%w: the journal has no record, and names no snapshot", envelope.ErrCorrupt)
	}
	if r.state.at.Seq != r.metrics.at.Seq {
		return nil, session.Mark{}, fmt.Errorf("%w: the state is of record %d and the metrics are of record %d", envelope.ErrCorrupt, r.state.at.Seq, r.metrics.at.Seq)
	}
	e := r.begin()
	r.edit = nil
	r.setLists(e)
	if r.touched {
		h, err := readMembers(r.members)
		if err != nil {
			return nil, session.Mark{}, fmt.Errorf("%w: %w", envelope.ErrCorrupt, err)
		}
		*e.Header() = *h
	}
	e.SetMetrics(r.metrics.iterations)
	st, err := e.State()
	if err == nil {
		st, err = st.As(id)
	}
	if err != nil {
		return nil, session.Mark{}, fmt.Errorf("%w: %w", envelope.ErrCorrupt, err)
	}
	at := r.state.at
	at.Iterations = r.changed
	return st, at, nil
}
