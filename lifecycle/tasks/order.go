package tasks

import (
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A Waiting task is one that cannot run yet.
type Waiting struct {
	Task string   // the leaf's ID
	For  []string // IDs that it, or an item above it, waits for and that are not done
}

// Order lists the leaves that are not done: those that may run now, in the
// plan's order, and those that wait for others. A task that failed or was
// skipped is in neither list. A dependency is satisfied when the item that it
// names, whatever its kind, is complete or was skipped by a person; one that the
// plan does not have is never satisfied and listed.
func Order(st *session.State) (ready []string, waiting []Waiting) {
	for t := range st.All() {
		if len(t.Children) > 0 || t.Kind == session.KindComponent || t.Kind == session.KindModule {
			continue
		}
		if t.State != session.TaskPending && t.State != session.TaskInProgress {
			continue
		}
		if open := unmet(st, t); len(open) > 0 {
			waiting = append(waiting, Waiting{Task: t.ID, For: open})
		} else {
			ready = append(ready, t.ID)
		}
	}
	return ready, waiting
}

// unmet returns the dependencies of a task and of the items above it that are
// not satisfied.
func unmet(st *session.State, t session.Task) []string {
	var open []string
	for {
		for _, id := range t.DependsOn {
			d, ok := st.Task(id)
			done := ok && (d.State == session.TaskComplete || d.State == session.TaskSkipped)
			if !done && !slices.Contains(open, id) {
				open = append(open, id)
			}
		}
		if t.Parent == "" {
			return open
		}
		parent, ok := st.Task(t.Parent)
		if !ok {
			return open
		}
		t = parent
	}
}

// Leaves returns the IDs of the leaves at or beneath a task, in order.
func Leaves(st *session.State, id string) []string {
	t, ok := st.Task(id)
	if !ok {
		return nil
	}
	if len(t.Children) == 0 {
		return []string{id}
	}
	var all []string
	for _, c := range t.Children {
		all = append(all, Leaves(st, c)...)
	}
	return all
}

// Unit returns the item that runs when a leaf's turn comes: itself for "leaf",
// the item directly under the component for "task", the component for
// "component" (or the top-level item where there is none).
func Unit(st *session.State, leaf, unit string) string {
	if unit == "leaf" || unit == "" {
		return leaf
	}
	id := leaf
	for {
		t, ok := st.Task(id)
		if !ok || t.Parent == "" {
			return id
		}
		parent, ok := st.Task(t.Parent)
		if !ok || (unit == "task" && parent.Kind == session.KindComponent) {
			return id
		}
		id = t.Parent
	}
}

// Component returns the component that a task belongs to, "" when it is under
// no heading.
func Component(st *session.State, id string) string {
	for {
		t, ok := st.Task(id)
		if !ok {
			return ""
		}
		if t.Kind == session.KindComponent {
			return id
		}
		if t.Parent == "" {
			return ""
		}
		id = t.Parent
	}
}
