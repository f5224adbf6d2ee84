package session

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/session/trie"
)

// An Edit is a State in the making. It belongs to one goroutine and is spent
// when State has returned without an error.
type Edit struct {
	base    *State
	next    State
	tasks   *trie.Edit[Task]
	header  bool                // next.h is the edit's own copy
	touched map[string]struct{} // tasks that were put or removed
	err     error               // of the first bad argument; State returns it
}

// Edit begins a change of s, which itself stays as it is.
func (s *State) Edit() *Edit {
	return &Edit{base: s, next: *s, tasks: s.tasks.Edit()}
}

// Header is the edit's own copy: change it freely until State is called.
func (e *Edit) Header() *Header {
	if !e.header {
		e.next.h, e.header = e.next.h.clone(), true
	}
	return &e.next.h
}

// Task returns the task with an ID as of now. Its slices are shared: read only.
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
	old, ok := e.tasks.Get(t.ID)
	if ok {
		if old.equal(&t) {
			return
		}
		e.next.progress.count(old, -1)
		e.next.links -= len(old.Children)
	}
	e.next.progress.count(&t, 1)
	e.next.links += len(t.Children)
	e.touch(t.ID)
	e.tasks.Put(t.ID, t)
}

// Remove removes a task and everything beneath it. The list of children that
// names it is the caller's to change.
func (e *Edit) Remove(id string) {
	t, ok := e.tasks.Get(id)
	if !ok {
		return
	}
	e.next.progress.count(t, -1)
	e.next.links -= len(t.Children)
	e.touch(id)
	e.tasks.Delete(id)
	for _, c := range t.Children {
		if child, ok := e.tasks.Get(c); ok && child.Parent == id {
			e.Remove(c)
		}
	}
}

// SetRoots sets the outermost tasks and their order.
func (e *Edit) SetRoots(ids []string) {
	if slices.Equal(ids, e.next.roots) {
		return
	}
	e.next.links += len(ids) - len(e.next.roots)
	e.next.roots = slices.Clone(ids)
	for _, id := range ids {
		e.touch(id)
	}
	if dup := firstDuplicate(ids); dup != "" {
		e.err = &InvalidError{Field: "roots", Value: dup, Want: "no task twice"}
	}
}

// AppendIteration appends to the metrics. The number is given here.
func (e *Edit) AppendIteration(it Iteration) {
	it.StartedAt = utc(it.StartedAt)
	it.Number = len(e.next.its.all) + 1
	if err := it.validate(); err != nil && e.err == nil {
		e.err = err
		return
	}
	e.next.its = e.next.its.append(it)
}

func (e *Edit) touch(id string) {
	if e.touched == nil {
		e.touched = map[string]struct{}{}
	}
	e.touched[id] = struct{}{}
}

// State checks what was changed and returns the new State. The cost follows the
// change and not the State: tasks that were not touched were checked before. After
// an [*InvalidError] the edit may be mended and State called again.
func (e *Edit) State() (*State, error) {
	if e.base == nil {
		return nil, errors.New("edit state: this edit is spent")
	}
	if e.err != nil {
		return nil, e.err
	}
	if e.header {
		e.next.h.normal()
		if err := e.next.h.validate(); err != nil {
			return nil, err
		}
	}
	for id := range e.touched {
		if err := e.check(id); err != nil {
			return nil, err
		}
	}
	// Every child link leads to a task that names its parent, and none is there
	// twice; so if there are as many links as tasks, every task has its one.
	if e.next.links != e.tasks.Len() {
		return nil, &InvalidError{Field: "task tree", Value: fmt.Sprintf("%d tasks, %d links", e.tasks.Len(), e.next.links),
			Want: "every task among its parent's children, or the roots"}
	}
	next := e.next
	next.tasks = e.tasks.Map()
	e.base = nil
	return &next, nil
}

// check checks a touched task against its relatives.
func (e *Edit) check(id string) error {
	t, ok := e.tasks.Get(id)
	old, was := e.base.tasks.Get(id)
	if !ok {
		return nil // who still names it fails the count of links, or its own check
	}
	if err := t.validate(); err != nil {
		return err
	}
	if !was || !slices.Equal(old.Children, t.Children) {
		if dup := firstDuplicate(t.Children); dup != "" {
			return &InvalidError{Field: "children of task " + id, Value: dup, Want: "no child twice"}
		}
	}
	for _, c := range t.Children {
		if child, ok := e.tasks.Get(c); !ok || child.Parent != id {
			return &InvalidError{Field: "children of task " + id, Value: c, Want: "tasks whose parent it is"}
		}
	}
	if was && old.Parent == t.Parent {
		return nil
	}
	if t.Parent == "" && !slices.Contains(e.next.roots, id) {
		return &InvalidError{Field: "parent of task " + id, Want: "a parent, or a place among the roots"}
	}
	return e.checkDepth(t)
}

// checkDepth follows a task's parents to a root.
func (e *Edit) checkDepth(t *Task) error {
	id := t.ID
	for depth := 1; t.Parent != ""; depth++ {
		p, ok := e.tasks.Get(t.Parent)
		if !ok {
			return &InvalidError{Field: "parent of task " + t.ID, Value: t.Parent, Want: "a task that there is"}
		}
		if depth >= MaxTaskDepth {
			return &InvalidError{Field: "task " + id, Value: t.Parent, Want: fmt.Sprintf("at most %d levels and no cycle", MaxTaskDepth)}
		}
		t = p
	}
	return nil
}

func firstDuplicate(ids []string) string {
	if len(ids) < 2 {
		return ""
	}
	seen := make(map[string]struct{}, len(ids))
	for _, id := range ids {
		if _, ok := seen[id]; ok {
			return id
		}
		seen[id] = struct{}{}
	}
	return ""
}
