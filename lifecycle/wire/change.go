package wire

import (
	"bytes"
	"reflect"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// A Change is the change between two States, encoded as a record.
type Change struct {
	// Body has the members of the record's JSON object, without braces.
	Body []byte
	// Iterations says that the iterations changed.
	Iterations bool
	// None says that the States do not differ.
	None bool
	// Large says that Body would be longer than the limit and was not made. The caller
	// writes a snapshot of the State and a record that names it.
	Large bool
}

// EncodeChange returns the record of the change from one State to another. Its cost
// depends on the change, because it skips what the States share. A nil from means the
// State before the first record. r has the cause of the record and the operations that
// do not change the State. limit is in bytes; 0 means no limit.
func EncodeChange(from, to *session.State, r record.Record, limit int) Change {
	if from == nil {
		from = session.Blank(to.ID())
	}
	d := &differ{from: from, to: to, limit: limit}
	d.b = make([]byte, 0, 1<<10)
	d.why(r)
	d.key("ops")
	d.b = append(d.b, '[')
	d.notes(r.Ops)
	begun, c := len(d.b), Change{}
	c.Iterations = d.iterationOps()
	d.headerOps()
	d.taskOps()
	if d.large() {
		return Change{Iterations: c.Iterations, Large: true}
	}
	c.None = len(d.b) == begun
	c.Body = append(d.b, ']')[1:] // without the brace
	return c
}

// CountChanges counts the operations between two States by name. It is for the record of a
// change that is too large for a record.
func CountChanges(from, to *session.State) map[string]uint64 {
	if from == nil {
		from = session.Blank(to.ID())
	}
	d := &differ{from: from, to: to, counts: map[string]uint64{}}
	d.iterationOps()
	d.headerOps()
	d.taskOps()
	return d.counts
}

// differ writes the operations between two States.
type differ struct {
	encoder
	from, to *session.State
	limit    int
	many     bool              // more tasks differ than fit into limit
	counts   map[string]uint64 // if not nil, operations are counted by name and not written
}

func (d *differ) large() bool { return d.many || d.limit > 0 && len(d.b) > d.limit }

// op appends an operation, or counts it.
func (d *differ) op(name string, fn func()) {
	if d.counts != nil {
		d.counts[name]++
		return
	}
	d.element(func() {
		d.str("op", name)
		fn()
	})
}

func (d *differ) iterationOps() bool {
	was, now := d.from.Metrics(), d.to.Metrics()
	keep := was.Shared(now)
	if keep == was.Len() && keep == now.Len() {
		return false
	}
	d.op(record.OpIterationsAdded, func() {
		if keep < was.Len() {
			d.int("keep", int64(keep))
		}
		d.iterations(now, keep)
	})
	return true
}

// headerOps compares the encoded members of the headers.
func (d *differ) headerOps() {
	if d.from.SharesHeader(d.to) {
		return
	}
	was, now := d.from.Header(), d.to.Header()
	var c headerChanges
	var a, b encoder
	for _, m := range headerObject.members {
		if m.key == "data" && same(was.Data, now.Data) || m.key == "modelConfig" && same(was.ModelConfig, now.ModelConfig) {
			continue
		}
		d.headerMember(&c, m.key, a.value(&m, &was), b.value(&m, &now))
	}
	for _, f := range now.Extra {
		d.headerMember(&c, f.Key, extraValue(was.Extra, f.Key), f.Value)
	}
	for _, f := range was.Extra {
		if extraValue(now.Extra, f.Key) == nil {
			c.unset = append(c.unset, f.Key)
		}
	}
	if len(c.set)+len(c.unset) == 0 {
		return
	}
	d.op(record.OpModified, func() {
		d.object("set", func() { d.extra(c.set) })
		d.strs("unset", c.unset)
	})
}

// headerChanges collects the changes of members without a named operation.
type headerChanges struct {
	set   []session.Field
	unset []string
}

// headerMember compares a member of the header.
func (d *differ) headerMember(c *headerChanges, key string, was, now []byte) {
	switch {
	case bytes.Equal(was, now):
	case opNames[key] != "":
		d.namedOp(key, was, now)
	case len(now) == 0:
		c.unset = append(c.unset, key)
	default:
		c.set = append(c.set, session.Field{Key: key, Value: now})
	}
}

// namedOp writes the named operation for the change of a member.
func (d *differ) namedOp(key string, was, now []byte) {
	d.op(opNames[key], func() {
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

// value returns the encoded value of a member, or nil if it is left out.
func (e *encoder) value(m *member, h *session.Header) []byte {
	e.b = append(e.b[:0], '{')
	e.member(m, reflect.ValueOf(h).Elem().Field(m.index))
	if len(e.b) == 1 {
		return nil
	}
	return slices.Clone(e.b[len(m.key)+4:]) // without {"key":
}

func extraValue(fields []session.Field, key string) []byte {
	for _, f := range fields {
		if f.Key == key {
			return f.Value
		}
	}
	return nil
}

// same reports whether two slices are the same slice.
func same[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// changed is a task that differs.
type changed struct {
	id       string
	was, now *session.Task
}

// taskOps writes the operations on tasks in the order of their IDs, so that the same change
// gives the same record.
func (d *differ) taskOps() {
	var all []changed
	session.Diff(d.from, d.to, func(id string, was, now *session.Task) bool {
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
	d.children("", d.from.Roots(), d.to.Roots())
	for _, c := range all {
		if c.now != nil {
			var was []string
			if c.was != nil {
				was = c.was.Children
			}
			d.children(c.id, was, c.now.Children)
		}
		if d.large() {
			return
		}
	}
}

// minTask is a lower bound of the size of an operation on a task, in bytes.
const minTask = 24

// taskOp returns the name of the operation for the most significant change of a task, or ""
// if only the list of its children differs.
func taskOp(was, now *session.Task) string {
	switch {
	case was == nil:
		return record.OpTaskCreated
	case now == nil:
		return record.OpTaskRemoved
	case was.State != now.State:
		return record.OpTaskStatusChanged
	case was.Parent != now.Parent:
		return record.OpTaskMoved
	case len(was.DependsOn) < len(now.DependsOn):
		return record.OpDependencyAdded
	case len(was.DependsOn) > len(now.DependsOn):
		return record.OpDependencyRemoved
	}
	alike := *now
	alike.Children = was.Children
	if was.Equal(&alike) {
		return ""
	}
	return record.OpTaskModified
}

func (d *differ) taskOp(c changed) {
	name := taskOp(c.was, c.now)
	switch name {
	case "":
		return
	case record.OpTaskRemoved:
		d.op(name, func() { d.str("id", c.id) })
		return
	}
	d.op(name, func() {
		if name == record.OpTaskStatusChanged {
			d.str("from", string(c.was.State))
		}
		d.str("parent", c.now.Parent)
		d.object("task", func() { d.task(c.now) })
	})
}

// children writes a change of a list as the replacement of one range, so that one more task
// in a list of a million costs one short operation.
func (d *differ) children(of string, was, now []string) {
	if same(was, now) {
		return
	}
	at := 0
	for at < min(len(was), len(now)) && was[at] == now[at] {
		at++
	}
	if at == len(was) && at == len(now) {
		return
	}
	was, now = was[at:], now[at:]
	for len(was) > 0 && len(now) > 0 && was[len(was)-1] == now[len(now)-1] {
		was, now = was[:len(was)-1], now[:len(now)-1]
	}
	d.op(record.OpChildrenChanged, func() {
		d.str("of", of)
		d.num("at", int64(at))
		d.num("removed", int64(len(was)))
		d.strs("inserted", now)
	})
}

// opNames maps members of the header to named operations.
var opNames = map[string]string{
	"status": record.OpStatusChanged, "phase": record.OpPhaseChanged, "step": record.OpStepChanged, "component": record.OpComponentChanged,
	"activeTask": record.OpActiveTaskChanged, "exitReason": record.OpExitReasonChanged, "check": record.OpChecked, "resources": record.OpResourcesChanged,
}
