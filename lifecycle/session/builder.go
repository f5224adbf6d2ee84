package session

import (
	"errors"
	"fmt"

	"github.com/lopen-dev/lopen/lifecycle/session/trie"
)

// A Builder makes a State of tasks that are read one after the other. It is faster than
// an [Edit], which finds the place of each task and compares lists: parents and children
// that name each other by construction need only be looked at once. The zero value is
// ready; it belongs to one goroutine and makes one State.
type Builder struct {
	tasks    trie.Builder[Task]
	progress tally
}

// Grow makes room for so many tasks.
func (b *Builder) Grow(n int) { b.tasks.Grow(n) }

// Begin adds a task to be filled in. What is beneath it is added before it ends.
func (b *Builder) Begin() (place int, t *Task) { return b.tasks.Add() }

// End checks the task that began at a place and gives it its parent, which has it
// among its children. The task must not be changed any more.
func (b *Builder) End(place int, parent string) error {
	t := b.tasks.At(place)
	if err := t.validate(); err != nil {
		return err
	}
	t.Parent = parent // whose own ID is checked when it ends
	b.progress.count(t, 1)
	b.tasks.Key(place, t.ID)
	return nil
}

// Adopt gives the tasks that began after the one at a place, and that have no parent
// yet, that one: their parent's ID was not known when they ended.
func (b *Builder) Adopt(place int) {
	parent := b.tasks.At(place).ID
	for i := place + 1; i < b.tasks.Len(); i++ {
		if t := b.tasks.At(i); t.Parent == "" {
			t.Parent = parent
		}
	}
}

// State returns the State of the tasks that were added, with a header, which is its own
// from then on, and without iterations. The error is that of the header, or of a task
// that stands twice.
func (b *Builder) State(id ID, h *Header, roots []string) (*State, error) {
	if id.IsZero() {
		return nil, errors.New("id is missing")
	}
	h.normal()
	if err := h.Validate(); err != nil {
		return nil, err
	}
	tasks, twice, ok := b.tasks.Map()
	if !ok {
		return nil, &broken{&ruleDuplicate, fmt.Errorf("the task %q stands twice", twice)}
	}
	return &State{id: id, h: h, tasks: tasks, roots: roots, progress: b.progress}, nil
}
