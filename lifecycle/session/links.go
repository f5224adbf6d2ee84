package session

import (
	"maps"
	"slices"
	"strconv"

	"github.com/lopen-dev/lopen/lifecycle/session/trie"
)

// links checks the tree of tasks after an edit. The tree before the edit was valid, so only
// the differences are checked. For each parent (the roots count as the children of "") the
// tasks that name it must be the tasks that it lists. If no child came or went and the list
// has not changed, this still holds. Otherwise every task in the list must name the parent,
// none may be there twice, and their number must be the old number plus those that came
// less those that went.
type links struct {
	e       *Edit
	changes map[string]*change // by parent: the parents whose lists have to be checked
	moved   []*Task            // tasks that are new or have another parent than before
	carried []*Task            // those of moved that are not new
	depths  map[string]int     // depths of the parents that depth has visited
}

// change counts the children that one parent gained and lost.
type change struct{ came, went int }

// checkTasks checks the changed tasks and their links.
func (e *Edit) checkTasks() error {
	l := &links{e: e}
	if err := l.collect(); err != nil {
		return err
	}
	for _, parent := range slices.Sorted(maps.Keys(l.changes)) { // so that the same edit gives the same error
		if err := l.checkChildren(parent, l.changes[parent]); err != nil {
			return err
		}
	}
	for _, t := range l.moved {
		if _, err := l.depth(t); err != nil {
			return err
		}
	}
	for _, t := range l.carried {
		if depth, _ := l.depth(t); !l.fits(t, depth) {
			return tooDeep(t.ID)
		}
	}
	return nil
}

// collect validates each changed task and collects the changes of the tree.
func (l *links) collect() (err error) {
	if !sameIDs(l.e.base.roots, l.e.roots) {
		l.at("")
	}
	trie.Diff(l.e.base.tasks, l.e.tasks.Now(), func(id string, was, now *Task) bool {
		if now != nil {
			if err = now.validate(); err != nil {
				return false
			}
		}
		if was == nil || now == nil || was.Parent != now.Parent {
			if was != nil {
				l.at(was.Parent).went++
			}
			if now != nil {
				l.at(now.Parent).came++
				l.moved = append(l.moved, now)
			}
			if was != nil && now != nil {
				l.carried = append(l.carried, now)
			}
		}
		if !sameIDs(childrenOf(was), childrenOf(now)) {
			l.at(id)
		}
		return true
	})
	return err
}

func childrenOf(t *Task) []string {
	if t == nil {
		return nil
	}
	return t.Children
}

// at returns the change of a parent, and adds an empty one if there is none.
func (l *links) at(parent string) *change {
	c := l.changes[parent]
	if c == nil {
		if l.changes == nil {
			l.changes = map[string]*change{}
		}
		c = &change{}
		l.changes[parent] = c
	}
	return c
}

func (l *links) checkChildren(parent string, c *change) error {
	was, now, field := l.e.base.roots, l.e.roots, "roots"
	if parent != "" {
		old, _ := l.e.base.tasks.Get(parent)
		t, ok := l.e.tasks.Get(parent)
		if !ok && c.came > 0 {
			return &broken{&ruleOrphan, &InvalidError{Field: "parent of a task", Value: parent, Want: "a task that there is"}}
		}
		was, now, field = childrenOf(old), childrenOf(t), "children of task "+strconv.Quote(parent)
	}
	if len(now) != len(was)+c.came-c.went {
		return &broken{&ruleChildren, &InvalidError{Field: field, Value: strconv.Itoa(len(now)) + " listed",
			Want: strconv.Itoa(len(was)+c.came-c.went) + ": every task that names it, and no other"}}
	}
	if len(now) == 0 {
		return nil
	}
	seen := make(map[string]struct{}, len(now))
	for _, id := range now {
		t, ok := l.e.tasks.Get(id)
		if !ok || t.Parent != parent {
			return &broken{&ruleChildren, &InvalidError{Field: field, Value: id, Want: "tasks that there are and that name it as their parent"}}
		}
		seen[id] = struct{}{}
	}
	if len(seen) < len(now) {
		return &broken{&ruleDuplicate, &InvalidError{Field: field, Value: strconv.Itoa(len(now)-len(seen)) + " twice", Want: "no task twice"}}
	}
	return nil
}

// depth returns the depth of a task by following its parents to a root. In a cycle it
// exceeds MaxTaskDepth and returns an error.
func (l *links) depth(t *Task) (int, error) {
	depth := 1
	for at := t; at.Parent != ""; depth++ {
		if d, ok := l.depths[at.Parent]; ok {
			depth += d
			break
		}
		p, ok := l.e.tasks.Get(at.Parent)
		if !ok || depth == MaxTaskDepth {
			return 0, tooDeep(t.ID)
		}
		at = p
	}
	if depth > MaxTaskDepth {
		return 0, tooDeep(t.ID)
	}
	if t.Parent != "" {
		if l.depths == nil {
			l.depths = map[string]int{}
		}
		l.depths[t.Parent] = depth - 1
	}
	return depth, nil
}

// fits reports whether a task at this depth and all tasks beneath it, which moved with it,
// are within MaxTaskDepth.
func (l *links) fits(t *Task, depth int) bool {
	if depth > MaxTaskDepth {
		return false
	}
	for _, id := range t.Children {
		if c, ok := l.e.tasks.Get(id); ok && !l.fits(c, depth+1) {
			return false
		}
	}
	return true
}

func tooDeep(id string) error {
	return &broken{&ruleDepth, &InvalidError{Field: "parents of task", Value: id, Want: "at most " + strconv.Itoa(MaxTaskDepth) + " levels and no cycle"}}
}
