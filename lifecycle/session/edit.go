package session

import (
	"errors"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/session/trie"
)

// An Edit is a State under construction. It belongs to one goroutine, and must not be used
// after State has returned without an error.
type Edit struct {
	base     *State // nil once spent
	header   *Header
	tasks    *trie.Edit[Task]
	roots    []string
	progress tally
	metrics  Metrics
	err      error // errors of invalid iterations; State returns them
}

// Edit begins a change. It does not change s itself.
func (s *State) Edit() *Edit {
	return &Edit{base: s, tasks: s.tasks.Edit(), roots: s.roots, progress: s.progress, metrics: s.metrics}
}

// Header returns the edit's own copy of the header, which the caller may change until State
// is called. Data, ModelConfig and Extra may be replaced as a whole, but not written to.
func (e *Edit) Header() *Header {
	if e.header == nil {
		h := e.base.h.clone()
		e.header = &h
	}
	return e.header
}

// Task returns the task with an ID as the edit has it now. Its slices must not be changed.
func (e *Edit) Task(id string) (Task, bool) {
	t, ok := e.tasks.Get(id)
	if !ok {
		return Task{}, false
	}
	return *t, true
}

// Put adds a task or replaces the one with its ID. The task's slices belong to
// the State from then on. Parent and child must name each other by the time that
// State is called. A task that equals the one that is there changes nothing.
func (e *Edit) Put(t Task) {
	t.normal()
	if old, ok := e.tasks.Get(t.ID); ok {
		if old.Equal(&t) {
			return
		}
		e.progress.count(old, -1)
	}
	e.progress.count(&t, 1)
	e.tasks.Put(t.ID, t)
}

// Remove removes a task and everything beneath it. A task that this edit has put under
// another parent stays, even if its old parent still lists it. The caller changes the list
// that has the removed task.
func (e *Edit) Remove(id string) {
	gone := []string{id}
	for len(gone) > 0 {
		id, gone = gone[len(gone)-1], gone[:len(gone)-1]
		t, ok := e.tasks.Get(id)
		if !ok {
			continue
		}
		e.progress.count(t, -1)
		children := t.Children
		e.tasks.Delete(id)
		for _, c := range children {
			if child, ok := e.tasks.Get(c); ok && child.Parent == id {
				gone = append(gone, c)
			}
		}
	}
}

// Drop removes only one task. The caller has to remove its children or give them another
// parent before State is called.
func (e *Edit) Drop(id string) {
	if t, ok := e.tasks.Get(id); ok {
		e.progress.count(t, -1)
		e.tasks.Delete(id)
	}
}

// Roots returns the IDs of the outermost tasks as the edit has them now. The slice must not
// be changed.
func (e *Edit) Roots() []string { return slices.Clip(e.roots) }

// SetRoots sets the outermost tasks and their order.
func (e *Edit) SetRoots(ids []string) {
	if !sameIDs(ids, e.roots) {
		e.roots = slices.Clone(ids)
	}
}

// AppendIteration numbers the iteration and appends it to the metrics. After an invalid
// iteration State returns an error.
func (e *Edit) AppendIteration(it Iteration) {
	longer, err := e.metrics.Append(it)
	e.metrics, e.err = longer, errors.Join(e.err, err)
}

// SetMetrics replaces the iterations.
func (e *Edit) SetMetrics(m Metrics) { e.metrics = m }

// State checks what was changed and returns the new State. The cost depends on the change
// and not on the size of the State, because the shared rest was checked before. After an
// [*InvalidError] the caller may correct the edit and call State again. After a success the
// edit must not be used any more.
func (e *Edit) State() (*State, error) {
	if e.base == nil {
		return nil, errors.New("edit state: this edit is spent")
	}
	if e.err != nil {
		return nil, e.err
	}
	if err := e.checkTasks(); err != nil {
		return nil, err
	}
	next := &State{id: e.base.id, h: e.base.h, roots: e.roots, progress: e.progress, metrics: e.metrics}
	if e.header != nil {
		h := e.header.clone() // the caller may still have a pointer to the edit's header
		h.normal()
		if err := h.validate(e.base.h); err != nil {
			return nil, err
		}
		next.h = &h
	}
	next.tasks = e.tasks.Map()
	e.base = nil
	return next, nil
}
