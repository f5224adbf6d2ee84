package session

import (
	"slices"
	"time"
)

// Check returns the rules that a State breaks, in the order of the rules. None of them is
// critical, since no State breaks a critical rule. It takes time in proportion to the number
// of iterations and, if any task may break a rule, to the number of tasks.
func Check(st *State) []Finding {
	c := &checker{st: st, found: findings{}}
	c.header()
	if st.progress.odd > 0 {
		c.allTasks()
	}
	c.allIterations()
	return c.found.list()
}

type checker struct {
	st      *State
	found   findings
	running []*Task // leaves in progress
	waiting []*Task // tasks with dependencies
}

func (c *checker) header() {
	h := c.st.h
	c.order("the session", "created", h.CreatedAt, "updated", h.UpdatedAt)
	if h.Lineage == nil { // a derived session may have the completion time of its origin
		c.order("the session", "created", h.CreatedAt, "completed", h.CompletedAt)
	}
	for what, id := range map[string]string{"active task": h.ActiveTask, "component": h.Component} {
		if id == "" {
			continue
		}
		if _, ok := c.st.tasks.Get(id); !ok {
			c.found.add(&ruleActiveThere, "the %s %q is not there", what, id)
		}
	}
}

// order adds a finding if b is before a. It ignores times that are not set.
func (c *checker) order(of, first string, a time.Time, then string, b time.Time) {
	if !a.IsZero() && !b.IsZero() && b.Before(a) {
		c.found.add(&ruleTimes, "%s was %s at %s and %s at %s", of, first, a.Format(time.RFC3339Nano), then, b.Format(time.RFC3339Nano))
	}
}

// odd reports whether the task may break a rule. It is called when a task is put or read, so
// that Check need not look at the tasks of a State without odd ones.
func (t *Task) odd() bool {
	return late(t.StartedAt, t.CompletedAt) || slices.ContainsFunc(t.Log, func(a Attempt) bool { return late(a.StartedAt, a.EndedAt) }) ||
		t.State == TaskInProgress || t.State == TaskComplete && len(t.Children) > 0 || len(t.DependsOn) > 0
}

func (c *checker) allTasks() {
	for id, t := range c.st.tasks.All() {
		if late(t.StartedAt, t.CompletedAt) {
			c.order("task "+quoted(id), "started", t.StartedAt, "completed", t.CompletedAt)
		}
		for i := range t.Log {
			if a := &t.Log[i]; late(a.StartedAt, a.EndedAt) {
				c.order("an attempt at task "+quoted(id), "started", a.StartedAt, "ended", a.EndedAt)
			}
		}
		if len(t.Children) > 0 && t.State == TaskComplete {
			c.children(t)
		}
		if len(t.Children) == 0 && t.State == TaskInProgress {
			c.running = append(c.running, t)
		}
		if len(t.DependsOn) > 0 {
			c.waiting = append(c.waiting, t)
		}
	}
	c.oneActive()
	c.dependencies()
}

// late reports whether b is before a. Unlike order it formats no text, because it is called
// for every task.
func late(a, b time.Time) bool { return b.Before(a) && !b.IsZero() }

func (c *checker) children(t *Task) {
	for _, id := range t.Children {
		child, _ := c.st.tasks.Get(id)
		if child.State != TaskComplete && child.State != TaskSkipped {
			c.found.add(&ruleParent, "task %q is complete and its child %q is %s", t.ID, id, child.State)
		}
	}
}

// oneActive adds a finding for tasks in progress outside of the active task. When a unit is
// worked on as a whole, all of its leaves are in progress.
func (c *checker) oneActive() {
	if len(c.running) < 2 {
		return
	}
	for _, t := range c.running {
		if active := c.st.h.ActiveTask; active == "" || !c.within(t, active) {
			c.found.add(&ruleOneActive, "task %q is in progress as well", t.ID)
		}
	}
}

// within reports whether a task is the one with this ID or beneath it.
func (c *checker) within(t *Task, id string) bool {
	for t.ID != id {
		parent, ok := c.st.tasks.Get(t.Parent)
		if !ok {
			return false
		}
		t = parent
	}
	return true
}

func (c *checker) allIterations() {
	if c.st.Header().Origin != OriginRun {
		return // what a transcript says of usage is of another time than the turns
	}
	var before time.Time
	for it := range c.st.metrics.From(0) {
		if late(before, it.StartedAt) {
			c.found.add(&ruleTimes, "iteration %d started before the one before it", it.Number)
		}
		before = it.StartedAt
	}
}
