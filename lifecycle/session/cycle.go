package session

import (
	"slices"
	"strconv"
	"strings"
)

// dependencies finds dependencies on missing tasks and tasks that wait for each other. A
// task waits for more than it names: it begins when all dependencies of itself and of every
// item above it are done, and an item is done when its children are. So a task that depends
// on its own parent waits for itself.
func (c *checker) dependencies() {
	slices.SortFunc(c.waiting, func(a, b *Task) int { return strings.Compare(a.ID, b.ID) }) // so that a cycle begins at the same task each time
	w := &waits{checker: c, seen: map[moment]bool{}}
	for _, t := range c.waiting {
		for _, id := range t.DependsOn {
			if _, ok := c.st.tasks.Get(id); !ok {
				c.found.add(&ruleDependency, "task %q depends on %q, which is not there", t.ID, id)
			}
		}
		w.follow(moment{t, false})
	}
}

// A moment is the begin of a task or, with done, its end.
type moment struct {
	t    *Task
	done bool
}

// waits is a depth-first search for a moment that waits for itself. It has an explicit
// stack, because a chain may have a million links.
type waits struct {
	*checker
	seen map[moment]bool // true while it is on the path
	path []stop
}

// A stop is a moment on the path, with the index of the next moment to visit among those
// that it waits for.
type stop struct {
	moment
	next int
}

func (w *waits) follow(m moment) {
	if _, ok := w.seen[m]; ok {
		return
	}
	w.push(m)
	for len(w.path) > 0 {
		top := &w.path[len(w.path)-1]
		next, more := w.needs(top.moment, top.next)
		top.next++
		switch on, seen := w.seen[next]; {
		case !more:
			w.seen[top.moment] = false
			w.path = w.path[:len(w.path)-1]
		case next.t == nil: // the task is missing
		case !seen:
			w.push(next)
		case on:
			w.cycle(next)
		}
	}
}

func (w *waits) push(m moment) {
	w.seen[m] = true
	w.path = append(w.path, stop{moment: m})
}

// needs returns the i-th of the moments that m waits for.
func (w *waits) needs(m moment, i int) (next moment, more bool) {
	t := m.t
	get := func(id string, done bool) (moment, bool) {
		found, _ := w.st.tasks.Get(id)
		return moment{found, done}, true
	}
	switch {
	case m.done && i == 0:
		return moment{t, false}, true
	case m.done && i <= len(t.Children):
		return get(t.Children[i-1], true)
	case m.done:
	case i < len(t.DependsOn):
		return get(t.DependsOn[i], true)
	case i == len(t.DependsOn) && t.Parent != "":
		return get(t.Parent, false)
	}
	return moment{}, false
}

// maxLinks bounds the number of dependencies that are named of a cycle.
const maxLinks = 8

// cycle adds a finding with the dependencies on the path from a moment back to itself. After
// maxWhere cycles it only counts them, because each may be as long as the plan.
func (w *waits) cycle(from moment) {
	if have := w.found[&ruleCycle]; have != nil && have.Count >= maxWhere {
		have.Count++
		return
	}
	i := slices.IndexFunc(w.path, func(s stop) bool { return s.moment == from })
	var links []string
	around := append(slices.Clone(w.path[i:]), stop{moment: from})
	for i, s := range around[1:] {
		if before := around[i]; !before.done && s.done {
			links = append(links, quoted(before.t.ID)+" on "+quoted(s.t.ID))
		}
	}
	if more := len(links) - maxLinks; more > 0 {
		links = append(links[:maxLinks], strconv.Itoa(more)+" more")
	}
	w.found.add(&ruleCycle, "%s depend in a circle", strings.Join(links, ", "))
}

func quoted(id string) string { return strconv.Quote(id) }
