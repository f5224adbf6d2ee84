package session

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle/session/trie"
)

// A Change is what EncodeChange found between two States.
type Change struct {
	// Body holds the members of the record's JSON object, without braces.
	Body []byte
	// Iterations says that the iterations changed.
	Iterations bool
	// None says that nothing of the State differs.
	None bool
	// Large says that Body would be longer than the limit and was not made: the
	// caller writes a snapshot of the State and a record that names it.
	Large bool
}

// EncodeChange returns the record of what is different in to. It costs what the
// change costs: only what the States do not share is walked. A from of nil stands
// for nothing at all, as at the creation of a session. Of r it takes all
// but the numbers and what it finds out itself: of the operations those that tell.
// limit is in bytes; 0 is none.
func EncodeChange(from, to *State, r Record, limit int) Change {
	if from == nil {
		from = &State{id: to.id, h: &Header{}}
	}
	d := &differ{from: from, to: to, limit: limit}
	d.b = make([]byte, 0, 1<<10)
	d.why(r)
	d.key("ops")
	d.b = append(d.b, '[')
	d.telling(r.Ops)
	told, c := len(d.b), Change{}
	c.Iterations = d.iterationOps()
	d.headerOps()
	d.taskOps()
	if d.large() {
		return Change{Iterations: c.Iterations, Large: true}
	}
	c.None = len(d.b) == told
	c.Body = append(d.b, ']')[1:] // without the brace
	return c
}

// EncodeSnapshotRecord returns the body of a record that stands for a snapshot.
func EncodeSnapshotRecord(r Record, ref SnapshotRef) []byte {
	e := encodeTold(r)
	e.object("snapshot", func() {
		e.str("sha256", ref.SHA256)
		e.object("counts", func() {
			for _, name := range slices.Sorted(maps.Keys(ref.Counts)) {
				e.uint(name, ref.Counts[name])
			}
		})
	})
	return e.b[1:]
}

// ReduceRecord returns the body of what remains of a line of a journal when the State that it
// changed is dropped: why it was written, the attempts, and the operations that tell. It is nil
// where nothing remains.
func ReduceRecord(line []byte) ([]byte, error) {
	r, err := DecodeRecord(line)
	if err != nil {
		return nil, err
	}
	r.Ops = slices.DeleteFunc(r.Ops, func(op Op) bool { return !Tells(op.Name) })
	if len(r.Ops)+len(r.Attempts) == 0 && r.Event == "" && r.Inherits == nil && r.Checkpoint == "" && r.Rewind == nil {
		return nil, nil
	}
	return encodeTold(r).b[1:], nil
}

// encodeTold begins an object with all of a record but what it changes.
func encodeTold(r Record) *encoder {
	e := &encoder{b: make([]byte, 0, 256)}
	e.why(r)
	if len(r.Ops) > 0 {
		e.array("ops", func() { e.telling(r.Ops) })
	}
	return e
}

// EncodeAppended returns the body of a record that is a message or an event of the
// transcript, with how many of both there are, up to the object itself, which is its end.
func EncodeAppended(r Record) []byte {
	e := &encoder{b: make([]byte, 1, 128)}
	e.b[0] = '{'
	e.time("at", r.At)
	e.uint("messages", r.Messages)
	e.uint("transcript", r.Transcript)
	if r.Message != nil {
		e.key("message")
	} else {
		e.key("transcriptEvent")
	}
	return e.b[1:]
}

// CountChanges counts the operations between two States by name, for the record
// of a change that is too large to be written out.
func CountChanges(from, to *State) map[string]uint64 {
	if from == nil {
		from = &State{id: to.id, h: &Header{}}
	}
	counts := map[string]uint64{}
	Diff(from, to, func(_ string, was, now *Task) bool {
		if name := taskOp(was, now); name != "" {
			counts[name]++
		}
		return true
	})
	return counts
}

// why begins an object with what a record says of its cause. The brace is not
// part of the body.
func (e *encoder) why(r Record) {
	e.b = append(e.b, '{')
	e.num("schemaVersion", SchemaVersion)
	e.members(recordObject.part("", "messages"), &r)
	e.object("triggers", func() {
		for t, n := range r.Triggers {
			e.uint(Trigger(t).String(), n)
		}
	})
	e.uint("saves", r.Saves())
	e.num("commitUs", r.Commit.Microseconds())
	e.members(recordObject.part("messages", ""), &r)
}

// telling appends the operations that tell.
func (e *encoder) telling(ops []Op) {
	for _, op := range ops {
		e.element(func() {
			e.str("op", op.Name)
			e.str("id", op.Task)
			e.str("to", op.To)
			e.num("count", int64(op.Count))
			e.strs("paths", op.Paths)
		})
	}
}

// differ writes the operations between two States.
type differ struct {
	encoder
	from, to *State
	limit    int
	many     bool // more tasks differ than fit
}

func (d *differ) large() bool { return d.many || d.limit > 0 && len(d.b) > d.limit }

// op appends an operation.
func (d *differ) op(name string, fn func()) {
	d.element(func() {
		d.str("op", name)
		fn()
	})
}

func (d *differ) iterationOps() bool {
	was, now := d.from.iterations, d.to.iterations
	if was.full == now.full && len(was.tail) == len(now.tail) && (len(was.tail) == 0 || &was.tail[0] == &now.tail[0]) {
		return false
	}
	keep := shared(was, now)
	if keep == was.len() && keep == now.len() {
		return false
	}
	d.op(OpIterationsAdded, func() {
		if keep < was.len() {
			d.key("keep")
			d.b = strconv.AppendInt(d.b, int64(keep), 10)
		}
		d.iterations(now, keep)
	})
	return true
}

// headerOps compares the headers as they are written.
func (d *differ) headerOps() {
	was, now := d.from.h, d.to.h
	if was == now {
		return
	}
	var set []headerChange
	var unset []string
	compare := func(key string, a, b []byte) {
		switch {
		case bytes.Equal(a, b):
		case len(b) == 0 && headerOps[key] == "":
			unset = append(unset, key)
		case headerOps[key] != "":
			d.namedOp(key, a, b)
		default:
			set = append(set, headerChange{key, b})
		}
	}
	var a, b encoder
	for _, m := range headerObject.members {
		if m.key == "data" && sameBytes(was.Data, now.Data) || m.key == "modelConfig" && sameBytes(was.ModelConfig, now.ModelConfig) {
			continue
		}
		compare(m.key, a.value(&m, was), b.value(&m, now))
	}
	for _, f := range now.Extra {
		compare(f.Key, extraValue(was.Extra, f.Key), f.Value)
	}
	for _, f := range was.Extra {
		if extraValue(now.Extra, f.Key) == nil {
			unset = append(unset, f.Key)
		}
	}
	if len(set)+len(unset) == 0 {
		return
	}
	d.op(OpModified, func() {
		d.object("set", func() {
			for _, c := range set {
				d.field(c.key, c.value)
			}
		})
		d.strs("unset", unset)
	})
}

type headerChange struct {
	key   string
	value []byte
}

// namedOp writes the change of one member that has a name of its own.
func (d *differ) namedOp(key string, was, now []byte) {
	d.op(headerOps[key], func() {
		if len(was) > 0 && was[0] == '"' {
			d.field("from", was)
		}
		if len(now) == 0 {
			d.strs("unset", []string{key})
			return
		}
		d.object("set", func() { d.field(key, now) })
	})
}

// value is a member's value as it is written, good until the next call; nothing
// when it is left out.
func (e *encoder) value(m *member, h *Header) []byte {
	e.b = append(e.b[:0], '{')
	e.member(m, reflect.ValueOf(h).Elem().Field(m.index))
	if len(e.b) == 1 {
		return nil
	}
	return slices.Clone(e.b[len(m.key)+4:]) // behind {"key":
}

func extraValue(fields []Field, key string) []byte {
	for _, f := range fields {
		if f.Key == key {
			return f.Value
		}
	}
	return nil
}

func sameBytes(a, b []byte) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// changed is a task that differs.
type changed struct {
	id       string
	was, now *Task
}

// taskOps writes what differs, in the order of the IDs, so that the same change
// gives the same record.
func (d *differ) taskOps() {
	var all []changed
	trie.Diff(d.from.tasks, d.to.tasks, func(id string, was, now *Task) bool {
		all = append(all, changed{id, was, now})
		d.many = d.limit > 0 && len(all)*minTask > d.limit
		return !d.many
	})
	if d.many {
		return
	}
	slices.SortFunc(all, func(a, b changed) int { return strings.Compare(a.id, b.id) })
	for _, c := range all {
		d.taskOp(c)
		if d.large() {
			return
		}
	}
	d.children("", d.from.roots, d.to.roots)
	for _, c := range all {
		if c.now != nil {
			d.children(c.id, childrenOf(c.was), c.now.Children)
		}
		if d.large() {
			return
		}
	}
}

// minTask is less than what the shortest operation on a task takes, in bytes.
const minTask = 24

// taskOp names what happened to a task by the change that says most; "" when
// only the list of its children differs.
func taskOp(was, now *Task) string {
	switch {
	case was == nil:
		return OpTaskCreated
	case now == nil:
		return OpTaskRemoved
	case was.State != now.State:
		return OpTaskStatusChanged
	case was.Parent != now.Parent:
		return OpTaskMoved
	case len(was.DependsOn) < len(now.DependsOn):
		return OpDependencyAdded
	case len(was.DependsOn) > len(now.DependsOn):
		return OpDependencyRemoved
	}
	alike := *now
	alike.Children = was.Children
	if was.equal(&alike) {
		return ""
	}
	return OpTaskModified
}

func (d *differ) taskOp(c changed) {
	name := taskOp(c.was, c.now)
	switch name {
	case "":
		return
	case OpTaskRemoved:
		d.op(name, func() { d.str("id", c.id) })
		return
	}
	d.op(name, func() {
		if name == OpTaskStatusChanged {
			d.str("from", string(c.was.State))
		}
		d.str("parent", c.now.Parent)
		d.key("task")
		d.b = append(d.b, '{')
		d.task(c.now)
		d.b = append(d.b, '}')
	})
}

// children writes a change of a list as what was put in the place of what, so
// that one task more in a list of a million costs one line.
func (d *differ) children(of string, was, now []string) {
	if sameIDs(was, now) {
		return
	}
	at := 0
	for at < min(len(was), len(now)) && was[at] == now[at] {
		at++
	}
	was, now = was[at:], now[at:]
	for len(was) > 0 && len(now) > 0 && was[len(was)-1] == now[len(now)-1] {
		was, now = was[:len(was)-1], now[:len(now)-1]
	}
	d.op(OpChildrenChanged, func() {
		d.str("of", of)
		d.num("at", int64(at))
		d.num("removed", int64(len(was)))
		d.strs("inserted", now)
	})
}
