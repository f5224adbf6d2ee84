package wire

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// addIterations truncates the iterations if the operation says so, and appends those of the
// operation.
func (r *Replay) addIterations(op *operation) error {
	if op.keep >= 0 {
		if n := r.metrics.iterations.Len(); op.keep > n && !r.Lenient {
			return fmt.Errorf("iterations from %d on where there are %d", op.keep, n)
		}
		r.metrics.iterations = r.metrics.iterations.Truncate(op.keep)
	}
	for _, it := range op.added {
		next := r.metrics.iterations.Len() + 1
		if it.Number != next && !r.Lenient {
			return fmt.Errorf("iteration %d after %d", it.Number, next-1)
		}
		longer, err := r.metrics.iterations.Append(it) // numbers it
		if err != nil {
			return err
		}
		r.metrics.iterations = longer
	}
	return nil
}

// do applies an operation to the tasks or the header.
func (r *Replay) do(op *operation) error {
	if !record.ChangesState(op.Name) {
		return nil
	}
	e := r.begin()
	switch op.Name {
	case record.OpTaskCreated, record.OpTaskStatusChanged, record.OpTaskModified, record.OpTaskMoved, record.OpDependencyAdded, record.OpDependencyRemoved:
		if old, ok := e.Task(op.task.ID); ok {
			op.task.Children = old.Children // setLists replaces them if records change the list
		}
		e.Put(op.task)
	case record.OpTaskRemoved:
		e.Drop(op.Task)
		delete(r.lists, op.Task)
	case record.OpChildrenChanged:
		return r.splice(op)
	default:
		if len(op.set)+len(op.unset) == 0 {
			return fmt.Errorf("the operation %q is none of those that this version knows", op.Name)
		}
		return r.header(op)
	}
	return nil
}

// maxMembers bounds the members of a header while records change it. It leaves room for
// several hundred unknown ones.
const maxMembers = 512

// header changes the members of the header. State decodes them once at the end.
func (r *Replay) header(op *operation) error {
	if r.members == nil {
		r.members = writtenMembers(r.state.state.Header())
	}
	r.touched = true
	for _, f := range op.set {
		if i := slices.IndexFunc(r.members, func(m session.Field) bool { return m.Key == f.Key }); i >= 0 {
			r.members[i].Value = f.Value
		} else {
			r.members = append(r.members, f)
		}
		if len(r.members) > maxMembers {
			return fmt.Errorf("the operation %q sets more than %d members", op.Name, maxMembers)
		}
	}
	r.members = slices.DeleteFunc(r.members, func(m session.Field) bool { return slices.Contains(op.unset, m.Key) })
	return nil
}

// writtenMembers returns the members of a header as state.json has them.
func writtenMembers(h session.Header) []session.Field {
	fields := []session.Field{}
	var e encoder
	for _, m := range headerObject.members {
		if v := e.value(&m, &h); v != nil {
			fields = append(fields, session.Field{Key: m.key, Value: v})
		}
	}
	return append(fields, h.Extra...)
}

// maxMoved bounds the number of IDs that records move within lists of children. It allows a
// few thousand insertions at the begin of a list of a million.
const maxMoved = 1 << 31

// splice applies a change of a list of children. It copies the list only the first time.
func (r *Replay) splice(op *operation) error {
	list, ok := r.lists[op.Task]
	if !ok {
		list = r.edit.Roots()
		if op.Task != "" {
			t, there := r.edit.Task(op.Task)
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

// setLists puts the changed lists of children into the tasks.
func (r *Replay) setLists(e *session.Edit) {
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

// readMembers decodes a header from its members.
func readMembers(members []session.Field) (*session.Header, error) {
	e := encoder{b: []byte{'{'}}
	e.extra(members)
	d := newDecoder(strictjson.NewReader(append(e.b, '}')))
	h := &session.Header{}
	d.Object(func(key string) {
		if !d.known(headerObject, key, h) {
			h.Extra = append(h.Extra, session.Field{Key: key, Value: bytes.Clone(d.raw())})
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
