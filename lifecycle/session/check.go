package session

import (
	"slices"
	"time"
)

// Check finds the rules that a State breaks, in the order of the rules: those that are not
// critical, as no State breaks a critical one. The time follows the number of iterations
// and, where any task may break a rule, that of tasks.
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
	waiting []*Task // those with dependencies
}

func (c *checker) header() {
	h := c.st.h
	c.order("the session", "created", h.CreatedAt, "updated", h.UpdatedAt)
	if h.Lineage == nil { // or the one that it comes from was completed
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

// order notes times that run backwards. A time that is not set is skipped.
func (c *checker) order(of, first string, a time.Time, then string, b time.Time) {
	if !a.IsZero() && !b.IsZero() && b.Before(a) {
		c.found.add(&ruleTimes, "%s was %s at %s and %s at %s", of, first, a.Format(time.RFC3339Nano), then, b.Format(time.RFC3339Nano))
	}
}

// odd says whether a rule may concern the task. It is asked when a task is put or read, so
// that Check of a State without odd tasks looks at none.
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

// late says whether the second of two times comes first, without the texts that a
// finding needs: this is asked of every task.
func late(a, b time.Time) bool { return b.Before(a) && !b.IsZero() }

func (c *checker) children(t *Task) {
	for _, id := range t.Children {
		child, _ := c.st.tasks.Get(id)
		if child.State != TaskComplete && child.State != TaskSkipped {
			c.found.add(&ruleParent, "task %q is complete and its child %q is %s", t.ID, id, child.State)
		}
	}
}

// oneActive notes tasks in progress other than the active one. Where a unit is worked on
// as a whole, all of its leaves are in progress.
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

// within says whether a task is one or beneath it.
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
	var before time.Time
	for it := range c.st.metrics.From(0) {
		if late(before, it.StartedAt) {
			c.found.add(&ruleTimes, "iteration %d started before the one before it", it.Number)
		}
		before = it.StartedAt
	}
}
