package session

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A Replay rebuilds a State from two snapshots of it and the records above them,
// or from records alone. It belongs to one goroutine.
type Replay struct {
	state   stateFile
	metrics metricsFile
	// iterations are those of the metrics, in a form whose versions share memory: a journal
	// may replace the last one as often as it has records.
	iterations iterations
	changed    uint64 // the last record that changed the iterations

	edit *Edit // of the State, while records are applied
	// lists are the children of a parent ("" for the outermost tasks) while records change
	// them: each change in place, and the tasks that have them made once.
	lists   map[string][]string
	moved   int     // how many IDs had to move for that
	members []Field // the header as it is written; nil while it is the State's own
	touched bool    // members differ from the State's header

	found findings // of the files

	// Lenient is for records behind others that are lost: iterations are numbered
	// anew, and children go behind those that are there.
	Lenient bool
}

// Continue goes on from a State that is of a record.
func Continue(st *State, at Mark) *Replay {
	return &Replay{state: stateFile{state: st, at: at}, metrics: metricsFile{id: st.id, at: at}, iterations: st.iterations, changed: at.Iterations}
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
	*r = Replay{state: *s, metrics: *m, iterations: newIterations(m.iterations), changed: s.at.Iterations, found: compare(s, m)}
	r.metrics.iterations = nil
	if m.at.Seq >= s.at.Iterations && m.at.Seq < s.at.Seq {
		r.metrics.at = s.at // nothing was added in between
	}
	return err
}

// Findings are the rules that the loaded files break and that the State in them
// cannot: sums that do not add up.
func (r *Replay) Findings() []Finding { return r.found.list() }

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
		r.metrics.at.Epoch, r.metrics.at.Seq = rec.Epoch, rec.Seq
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
		if said, err := DecodeMessage(r.Message); err == nil { // or it costs itself alone
			m.OpenCalls = Answered(m.OpenCalls, &said)
		}
	}
}

func (r *Replay) addIterations(op *operation) error {
	if op.keep >= 0 {
		if n := r.iterations.len(); op.keep > n && !r.Lenient {
			return fmt.Errorf("iterations from %d on where there are %d", op.keep, n)
		}
		r.iterations = r.iterations.truncate(op.keep)
	}
	for _, it := range op.added {
		next := r.iterations.len() + 1
		if it.Number != next && !r.Lenient {
			return fmt.Errorf("iteration %d after %d", it.Number, next-1)
		}
		r.iterations = r.iterations.append(it) // which numbers it
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
			op.task.Children = old.Children // or what is in lists, in the end
		}
		e.Put(op.task)
	case OpTaskRemoved:
		e.drop(op.Task)
		delete(r.lists, op.Task)
	case OpChildrenChanged:
		return r.splice(op)
	default:
		if len(op.set)+len(op.unset) == 0 {
			return fmt.Errorf("the operation %q is none of those that this version knows", op.Name)
		}
		return r.header(op)
	}
	return nil
}

// maxMembers bounds the members of a header while records change it: those that are known
// and as many others as a State has.
const maxMembers = 2 * maxExtra

// header changes the members of the header, which are read when all is done.
func (r *Replay) header(op *operation) error {
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
		if len(r.members) > maxMembers {
			return fmt.Errorf("the operation %q sets more than %d members", op.Name, maxMembers)
		}
	}
	r.members = slices.DeleteFunc(r.members, func(m Field) bool { return slices.Contains(op.unset, m.Key) })
	return nil
}

// writtenMembers are the members of a header as state.json has them.
func writtenMembers(h *Header) []Field {
	fields := []Field{}
	var e encoder
	for _, m := range headerObject.members {
		if v := e.value(&m, h); v != nil {
			fields = append(fields, Field{m.key, v})
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

// maxMoved bounds how many IDs records move within lists of children: in a list of a
// million, a few thousand insertions at its begin.
const maxMoved = 1 << 31

func (r *Replay) splice(op *operation) error {
	list, ok := r.lists[op.Task]
	if !ok {
		list = r.edit.roots
		if op.Task != "" {
			t, there := r.edit.tasks.Get(op.Task)
			if !there {
				return fmt.Errorf("children of the task %q, which is not there", op.Task)
			}
			list = t.Children
		}
		r.moved += len(list)
		list = slices.Clone(list)
	}
	at, removed := op.at, op.removed
	if r.Lenient {
		at = min(at, len(list))
		removed = min(removed, len(list)-max(at, 0))
	}
	if at < 0 || removed < 0 || removed > len(list) || at > len(list)-removed {
		return fmt.Errorf("%d of the %d children of %q from %d on", removed, len(list), op.Task, at)
	}
	if removed != len(op.inserted) {
		r.moved += len(list) - at
	}
	if r.moved > maxMoved {
		return fmt.Errorf("the records move more than %d children", maxMoved)
	}
	if r.lists == nil {
		r.lists = map[string][]string{}
	}
	r.lists[op.Task] = slices.Replace(list, at, at+removed, op.inserted...)
	return nil
}

// keepLists gives the tasks the children that records left them.
func (r *Replay) keepLists(e *Edit) {
	for id, list := range r.lists {
		if id == "" {
			e.SetRoots(list)
		} else if t, ok := e.Task(id); ok {
			t.Children = slices.Clone(list)
			e.Put(t)
		}
	}
	r.lists = nil
}

// State returns what the snapshots and records come to, with the mark of the last
// one. Snapshots of different records, where those between are missing, wrap
// ErrCorrupt.
func (r *Replay) State(id ID) (*State, Mark, error) {
	if r.state.state == nil {
		return nil, Mark{}, fmt.Errorf("%w: the journal has no record, and names no snapshot", ErrCorrupt)
	}
	if r.state.at.Seq != r.metrics.at.Seq {
		return nil, Mark{}, fmt.Errorf("%w: the state is of record %d and the metrics are of record %d", ErrCorrupt, r.state.at.Seq, r.metrics.at.Seq)
	}
	s := *r.begin().base
	s.id = id
	e := r.edit
	r.edit = nil
	r.keepLists(e)
	e.base = &s
	if r.touched {
		h, err := readMembers(r.members)
		if err != nil {
			return nil, Mark{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		e.header = h
	}
	e.iterations = r.iterations
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
		if !d.known(headerObject, key, h) {
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
