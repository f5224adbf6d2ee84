package loop

import (
	"container/heap"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
)

// An agenda returns the units of a plan in the order in which they run, as if each were done
// before the next is chosen. The tasks of the unit early come first. The agenda counts open
// children and dependencies instead of searching them, so that a whole plan takes the time of
// a few passes over all tasks.
type agenda struct {
	st    *session.State
	cfg   Config
	in    selected
	tasks []session.Task // in the plan's order
	at    map[string]int // index in tasks by ID
	done  []bool
	left  []int         // for each task, the number of children that are not done
	unmet []int         // for each task, the number of its own dependencies that are not done
	waits map[int][]int // for each task, those that depend on it, once for each time they name it
	early []bool        // for each task, whether it is in the unit that comes first
	ready []int         // leaves that may run; a heap
}

func newAgenda(st *session.State, cfg Config, early string) *agenda {
	a := &agenda{st: st, cfg: cfg, in: cfg.Select.of(st), at: make(map[string]int, st.NumTasks()), waits: map[int][]int{}}
	for t := range st.All() {
		a.at[t.ID] = len(a.tasks)
		a.tasks = append(a.tasks, t)
	}
	n := len(a.tasks)
	a.done, a.early, a.left, a.unmet = make([]bool, n), make([]bool, n), make([]int, n), make([]int, n)
	for i := range a.tasks {
		t := &a.tasks[i]
		a.early[i] = early != "" && within(st, t.ID, early)
		a.done[i] = t.State == session.TaskComplete || t.State == session.TaskSkipped
		if p, ok := a.at[t.Parent]; ok && !a.done[i] {
			a.left[p]++
		}
	}
	for i := range a.tasks {
		for _, id := range a.tasks[i].DependsOn {
			d, ok := a.at[id]
			if ok && a.done[d] {
				continue
			}
			a.unmet[i]++ // stays if the plan has no such task
			if ok {
				a.waits[d] = append(a.waits[d], i)
			}
		}
	}
	for i := range a.tasks {
		if a.free(i) {
			a.ready = append(a.ready, i)
		}
	}
	heap.Init(a)
	return a
}

// open reports whether a task is a leaf that has to be done.
func (a *agenda) open(i int) bool {
	t := &a.tasks[i]
	return len(t.Children) == 0 && t.Kind != session.KindComponent && t.Kind != session.KindModule && !a.done[i] &&
		(t.State == session.TaskPending || t.State == session.TaskInProgress)
}

// free reports whether a task is a leaf that may run.
func (a *agenda) free(i int) bool {
	if !a.open(i) || !a.in.has(a.tasks[i].ID) {
		return false
	}
	for ok := true; ok; i, ok = a.parent(i) {
		if a.unmet[i] > 0 {
			return false
		}
	}
	return true
}

func (a *agenda) parent(i int) (int, bool) {
	p, ok := a.at[a.tasks[i].Parent]
	return p, ok
}

// next returns the next unit with its leaves, and counts the leaves as done. An empty unit means
// that nothing can run.
func (a *agenda) next() (unit string, leaves []string) {
	for len(a.ready) > 0 && a.done[a.ready[0]] {
		heap.Pop(a)
	}
	if len(a.ready) == 0 {
		return "", nil
	}
	first := a.tasks[a.ready[0]].ID
	if unit = tasks.Unit(a.st, first, a.cfg.Unit); !a.in.covers(a.st, unit) {
		unit = a.widest(first)
	}
	for _, id := range tasks.Leaves(a.st, unit) {
		if i := a.at[id]; a.open(i) && a.waitsOnlyFor(i, unit) {
			leaves = append(leaves, id)
		}
	}
	for _, id := range leaves {
		a.finish(a.at[id])
	}
	return unit, leaves
}

// widest returns the outermost task above a selected leaf that is selected as a whole: the unit
// where only a part of it is.
func (a *agenda) widest(id string) string {
	for {
		t := a.tasks[a.at[id]]
		if !a.in.covers(a.st, t.Parent) {
			return id
		}
		id = t.Parent
	}
}

// waitsOnlyFor reports whether a leaf waits only for tasks of its unit.
func (a *agenda) waitsOnlyFor(i int, unit string) bool {
	for ok := true; ok; i, ok = a.parent(i) {
		if a.unmet[i] > 0 && slices.ContainsFunc(a.tasks[i].DependsOn, func(id string) bool {
			d, ok := a.at[id]
			return (!ok || !a.done[d]) && !within(a.st, id, unit)
		}) {
			return false
		}
	}
	return true
}

// finish marks a task as done, and the parents whose last child it was, and adds the tasks that
// waited for them to ready.
func (a *agenda) finish(i int) {
	for {
		a.done[i] = true
		for _, w := range a.waits[i] {
			if a.unmet[w]--; a.unmet[w] == 0 {
				for _, id := range tasks.Leaves(a.st, a.tasks[w].ID) {
					if leaf := a.at[id]; a.free(leaf) {
						heap.Push(a, leaf)
					}
				}
			}
		}
		p, ok := a.parent(i)
		if !ok {
			return
		}
		if a.left[p]--; a.left[p] > 0 {
			return
		}
		i = p
	}
}

// An agenda implements heap.Interface over ready.

func (a *agenda) Len() int { return len(a.ready) }
func (a *agenda) Less(i, j int) bool {
	i, j = a.ready[i], a.ready[j]
	return a.early[i] && !a.early[j] || a.early[i] == a.early[j] && i < j
}
func (a *agenda) Swap(i, j int) { a.ready[i], a.ready[j] = a.ready[j], a.ready[i] }
func (a *agenda) Push(x any)    { a.ready = append(a.ready, x.(int)) }
func (a *agenda) Pop() any {
	last := a.ready[len(a.ready)-1]
	a.ready = a.ready[:len(a.ready)-1]
	return last
}
