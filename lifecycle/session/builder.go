package session

import (
	"errors"
	"fmt"

	"github.com/lopen-dev/lopen/lifecycle/session/trie"
)

// A Builder makes a State from tasks that are read one after the other. It is faster than
// an [Edit], because parents and children name each other by construction, so that the
// links need no check. The zero value is ready to use. A Builder belongs to one goroutine
// and makes one State.
type Builder struct {
	tasks    trie.Builder[Task]
	progress tally
}

// Grow makes room for n more tasks.
func (b *Builder) Grow(n int) { b.tasks.Grow(n) }

// Begin adds an empty task, which the caller fills in before End. The tasks beneath it are
// added in between.
func (b *Builder) Begin() (place int, t *Task) { return b.tasks.Add() }

// End checks the task of a place and sets its parent, which must list it among its
// children. The task must not be changed afterwards.
func (b *Builder) End(place int, parent string) error {
	t := b.tasks.At(place)
	if err := t.validate(); err != nil {
		return err
	}
	t.Parent = parent // its ID is checked by its own End
	b.progress.count(t, 1)
	b.tasks.Key(place, t.ID)
	return nil
}

// Adopt makes the task of a place the parent of all later tasks that have no parent yet,
// because the parent's ID was not known when they ended.
func (b *Builder) Adopt(place int) {
	parent := b.tasks.At(place).ID
	for i := place + 1; i < b.tasks.Len(); i++ {
		if t := b.tasks.At(i); t.Parent == "" {
			t.Parent = parent
		}
	}
}

// State returns the State with the tasks that were added, without iterations. It owns the
// header from then on. It returns an error for an invalid header, or if two tasks have the
// same ID.
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
