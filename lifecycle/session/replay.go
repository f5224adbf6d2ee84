package session

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/session/strictjson"
)

// A Replay rebuilds a State from two snapshots of it and the records above them,
// or from records alone. It belongs to one goroutine.
type Replay struct {
	state   stateFile
	metrics metricsFile
	changed uint64 // the last record that changed the iterations

	edit    *Edit   // of the State, while records are applied
	members []Field // the header as it is written; nil while it is the State's own
	touched bool    // members differ from the State's header

	found findings // of the files

	// Lenient is for records behind others that are lost: iterations are numbered
	// anew, and children go behind those that are there.
	Lenient bool
}

// Continue goes on from a State that is of a record.
func Continue(st *State, at Mark) *Replay {
	return &Replay{state: stateFile{state: st, at: at}, metrics: metricsFile{id: st.id, at: at, iterations: slices.Collect(st.Iterations())}, changed: at.Iterations}
}

// Level takes the iterations that there are for those of the State, where the
// records that tell of the others are lost.
func (r *Replay) Level() { r.metrics.at = r.state.at }

// Load takes the contents of state.json and metrics.json, which may be of
// different records. The error is that of [Decode]; where that returns a State both
// are taken nevertheless.
func (r *Replay) Load(state, metrics []byte) error {
	s, m, err := decodeBoth(state, metrics)
	if s == nil {
		return err
	}
	*r = Replay{state: *s, metrics: *m, changed: s.at.Iterations, found: compare(s, m)}
	if m.at.Seq >= s.at.Iterations && m.at.Seq < s.at.Seq {
		r.metrics.at = s.at // nothing was added in between
	}
	return err
}

// Findings are the rules that the loaded files break and that the State in them
// cannot: sums that do not add up.
func (r *Replay) Findings() []Finding { return r.found.list() }

// Version is the schema version of the older one of the loaded files; 0 when none
// was loaded.
func (r *Replay) Version() int64 { return r.state.version }

// ID is that of the loaded files; zero when none was loaded.
func (r *Replay) ID() ID {
	if r.state.state == nil {
		return ID{}
	}
	return r.state.state.id
}

// At is the record that the State is of, 0 before the first one; Metrics is the
// one of the iterations. Records above the smaller one are due.
func (r *Replay) At() Mark { return r.state.at }

// Metrics is the record that the iterations are of.
func (r *Replay) Metrics() Mark { return r.metrics.at }

// Apply does what a line of the journal says. Of one at or below a snapshot's
// record it does nothing to what that snapshot holds. A record that names a
// snapshot changes nothing and is returned: the caller loads it. The error wraps
// ErrCorrupt or ErrFutureVersion; the Replay is of no use then.
func (r *Replay) Apply(line []byte) (Record, error) {
	var rec Record
	err := decodeRecord(line, &rec, func(op *operation) error {
		if op.Name == OpIterationsAdded {
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
		r.state.at.goOn(&rec)
	}
	if rec.Seq > r.metrics.at.Seq {
		r.metrics.at.goOn(&rec)
	}
	return rec, nil
}

// goOn makes a Mark that of a later record.
func (m *Mark) goOn(r *Record) {
	m.Epoch, m.Seq = r.Epoch, r.Seq
	m.Follow(r)
}

// Follow takes over what a record says besides the State.
func (m *Mark) Follow(r *Record) {
	switch r.Event {
	case EventRewindBegin:
		m.Rewinding = r.Rewind
	case EventRewindEnd:
		if m.Rewinding = nil; r.Rewind != nil {
			m.Undo = r.Rewind.Before
			if r.Rewind.Files {
				m.Checkpoint = r.Rewind.To
			}
		}
	}
	if r.Incarnation != "" {
		m.Incarnation = r.Incarnation
	}
	if r.Checkpoint != "" {
		m.Checkpoint = r.Checkpoint
	}
	if r.Messages != (Tail{}) {
		m.Messages, m.OpenCalls = r.Messages, r.OpenCalls
	}
	if r.Transcript != (Tail{}) {
		m.Transcript = r.Transcript
	}
}

func (r *Replay) addIterations(op *operation) error {
	l := &r.metrics.iterations
	if op.keep >= 0 {
		if op.keep > len(*l) && !r.Lenient {
			return fmt.Errorf("iterations from %d on where there are %d", op.keep, len(*l))
		}
		*l = slices.Clip((*l)[:min(op.keep, len(*l))])
	}
	for _, it := range op.added {
		if r.Lenient {
			it.Number = len(*l) + 1
		}
		if it.Number != len(*l)+1 {
			return fmt.Errorf("iteration %d after %d", it.Number, len(*l))
		}
		*l = append(*l, it)
	}
	return nil
}

// begin makes an Edit of what is there; of nothing, at first.
func (r *Replay) begin() *Edit {
	if r.edit == nil {
		if r.state.state == nil {
			r.state.state = &State{h: &Header{}}
		}
		r.edit = r.state.state.Edit()
	}
	return r.edit
}

func (r *Replay) do(op *operation) error {
	if Tells(op.Name) {
		return nil
	}
	e := r.begin()
	switch op.Name {
	case OpTaskCreated, OpTaskStatusChanged, OpTaskModified, OpTaskMoved, OpDependencyAdded, OpDependencyRemoved:
		if old, ok := e.tasks.Get(op.task.ID); ok {
			op.task.Children = old.Children
		}
		e.Put(op.task)
	case OpTaskRemoved:
		e.drop(op.Task)
	case OpChildrenChanged:
		return e.splice(op, r.Lenient)
	default:
		if len(op.set)+len(op.unset) == 0 {
			return fmt.Errorf("the operation %q is none of those that this version knows", op.Name)
		}
		r.header(op)
	}
	return nil
}

// header changes the members of the header, which are read when all is done.
func (r *Replay) header(op *operation) {
	if r.members == nil {
		r.members = writtenMembers(r.state.state.h)
	}
	r.touched = true
	for _, f := range op.set {
		if i := slices.IndexFunc(r.members, func(m Field) bool { return m.Key == f.Key }); i >= 0 {
			r.members[i].Value = f.Value
		} else {
			r.members = append(r.members, f)
		}
	}
	r.members = slices.DeleteFunc(r.members, func(m Field) bool { return slices.Contains(op.unset, m.Key) })
}

// writtenMembers are the members of a header as state.json has them.
func writtenMembers(h *Header) []Field {
	fields := []Field{}
	var e encoder
	for _, all := range [][]member{summaryMembers, headerMembers} {
		for _, m := range all {
			if v := e.value(m, h); v != nil {
				fields = append(fields, Field{m.key, v})
			}
		}
	}
	return append(fields, h.Extra...)
}

// drop removes a task alone: what was beneath it has an operation of its own.
func (e *Edit) drop(id string) {
	if t, ok := e.tasks.Get(id); ok {
		e.progress.count(t, -1)
		e.tasks.Delete(id)
	}
}

func (e *Edit) splice(op *operation, lenient bool) error {
	was := e.roots
	t, ok := e.Task(op.Task)
	if op.Task != "" {
		if !ok {
			return fmt.Errorf("children of the task %q, which is not there", op.Task)
		}
		was = t.Children
	}
	if lenient {
		op.at = min(op.at, len(was))
		op.removed = min(op.removed, len(was)-max(op.at, 0))
	}
	if op.at < 0 || op.removed < 0 || op.removed > len(was) || op.at > len(was)-op.removed {
		return fmt.Errorf("%d of the %d children of %q from %d on", op.removed, len(was), op.Task, op.at)
	}
	now := slices.Concat(was[:op.at], op.inserted, was[op.at+op.removed:])
	if op.Task == "" {
		e.SetRoots(now)
		return nil
	}
	t.Children = now
	e.Put(t)
	return nil
}

// State returns what the snapshots and records come to, with the mark of the last
// one. Snapshots of different records, where those between are missing, wrap
// ErrCorrupt.
func (r *Replay) State(id ID) (*State, Mark, error) {
	if r.state.state == nil {
		return nil, Mark{}, fmt.Errorf("%w: there is neither a snapshot nor a record", ErrCorrupt)
	}
	if r.state.at.Seq != r.metrics.at.Seq {
		return nil, Mark{}, fmt.Errorf("%w: the state is of record %d and the metrics are of record %d", ErrCorrupt, r.state.at.Seq, r.metrics.at.Seq)
	}
	s := *r.begin().base
	s.id = id
	e := r.edit
	r.edit = nil
	e.base = &s
	if r.touched {
		h, err := readMembers(r.members)
		if err != nil {
			return nil, Mark{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		e.header = h
	}
	e.iterations = newIterations(r.metrics.iterations)
	st, err := e.State()
	if err != nil {
		return nil, Mark{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	at := r.state.at
	at.Iterations = r.changed
	return st, at, nil
}

// readMembers reads a header from its members.
func readMembers(members []Field) (*Header, error) {
	e := encoder{b: []byte{'{'}}
	for _, f := range members {
		e.field(f.Key, f.Value)
	}
	d := newDecoder(strictjson.NewReader(append(e.b, '}')))
	h := &Header{}
	d.Object(func(key string) {
		if !d.header(h, key) {
			h.Extra = append(h.Extra, Field{key, bytes.Clone(d.raw())})
		}
	})
	d.End()
	if err := d.Reader.Err(); err != nil {
		return nil, err
	}
	if h.CreatedAt.IsZero() {
		return nil, errors.New("the session was never created")
	}
	return h, nil
}
