package wire

import (
	"fmt"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// A Replay rebuilds a State from state.json and metrics.json and the records above them, or
// from records alone. It belongs to one goroutine.
type Replay struct {
	state   stateFile
	metrics metricsFile // has the iterations of the State
	changed uint64      // the last record that changed the iterations

	edit *session.Edit // of the State, while records are applied
	// lists are the lists of children that records have changed, by parent ("" for the
	// roots). They are changed in place, and put into the tasks once at the end.
	lists   map[string][]string
	moved   int             // number of IDs that changes of lists have moved
	members []session.Field // the encoded header; nil until a record changes it
	touched bool            // members differ from the State's header

	sums session.Sums // of the files

	// Lenient allows records to be applied although earlier ones are lost: iterations are
	// renumbered, and positions in lists of children are limited to their length.
	Lenient bool
}

// Continue returns a Replay that begins with the State of a record.
func Continue(st *session.State, at session.Mark) *Replay {
	return &Replay{state: stateFile{state: st, at: at}, metrics: metricsFile{id: st.ID(), at: at, iterations: st.Metrics()}, changed: at.Iterations}
}

// Level makes the present iterations those of the State. It is for when the records with the
// missing ones are lost.
func (r *Replay) Level() { r.metrics.at = r.state.at }

// Load loads the contents of state.json and metrics.json, which may be of different records.
// The error wraps ErrCorrupt, ErrFutureVersion or session.ErrEdited. With session.ErrEdited
// both files are loaded all the same, so that the edit can be shown. With ErrFutureVersion
// they are loaded if the part that this version knows can be read.
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

// Findings returns the rules that only files can break: sums in the loaded files that do not
// agree.
func (r *Replay) Findings() []session.Finding { return r.sums.Findings() }

// ID returns the ID in the loaded files; zero if none was loaded.
func (r *Replay) ID() session.ID {
	if r.state.state == nil {
		return session.ID{}
	}
	return r.state.state.ID()
}

// At returns the Mark of the State; Seq is 0 before the first record. The caller applies the
// records above it or, if that is lower, above Metrics.
func (r *Replay) At() session.Mark { return r.state.at }

// Metrics returns the Mark of the iterations.
func (r *Replay) Metrics() session.Mark { return r.metrics.at }

// Apply applies a line of the journal. It skips changes that a loaded file has already,
// because the file is of that record or a later one. A record that names a snapshot changes
// nothing; the caller loads the snapshot. The error wraps ErrCorrupt or ErrFutureVersion.
// After an error the Replay must not be used.
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

// Follow applies a record to a Mark, except for the record's number and its changes of the
// State.
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
		if answer, err := DecodeMessage(r.Message); err == nil { // a damaged message is ignored
			m.OpenCalls = session.Answered(m.OpenCalls, &answer)
		}
	}
}

// begin returns the Edit of the State. Before the first record it edits a blank State.
func (r *Replay) begin() *session.Edit {
	if r.edit == nil {
		if r.state.state == nil {
			r.state.state = session.Blank(session.ID{})
		}
		r.edit = r.state.state.Edit()
	}
	return r.edit
}

// State returns the State after all applied records, with its Mark. The error wraps
// ErrCorrupt, also if the two files are of different records and the records between them
// were not applied.
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

// stated are the sums that a file states. They are compared with the sums that are derived
// when it is read.
type stated struct {
	progress *session.Progress // nil if the file has none
	totals   *session.Totals   // nil if the file has none; those of state.json lack costs and durations
}

// compare finds the sums of two files that do not agree. It checks the totals of state.json
// only if metrics.json has the same iterations or more.
func compare(s *stateFile, m *metricsFile) (sums session.Sums) {
	if p := s.stated.progress; p != nil {
		sums.Progress("state.json", *p, s.state.Progress())
	}
	if all := m.stated.totals; all != nil {
		sums.Totals("metrics.json", *all, "its iterations", m.iterations.Totals())
	}
	if m.at.Seq < s.at.Iterations || m.iterations.Len() < s.iterations {
		return sums
	}
	t := m.iterations.Truncate(s.iterations).Totals()
	t = session.Totals{Iterations: t.Iterations, InputTokens: t.InputTokens, OutputTokens: t.OutputTokens, CachedTokens: t.CachedTokens}
	sums.Totals("state.json", *s.stated.totals, "the iterations", t)
	return sums
}
