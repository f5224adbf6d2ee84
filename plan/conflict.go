package plan

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// A ConflictError names the tasks that a change is about and that the file has no
// more, or has otherwise, as somebody edited it meanwhile. What the change does
// to other tasks is done.
type ConflictError struct {
	Op      string
	Missing []string // IDs, sorted
	Changed []string // IDs, sorted
}

func (e *ConflictError) Error() string {
	var parts []string
	if len(e.Missing) > 0 {
		parts = append(parts, "no longer in the plan: "+strings.Join(e.Missing, ", "))
	}
	if len(e.Changed) > 0 {
		parts = append(parts, "changed by somebody else meanwhile: "+strings.Join(e.Changed, ", "))
	}
	return e.Op + ": " + strings.Join(parts, "; ")
}

func (e *ConflictError) orNil() error {
	if len(e.Missing)+len(e.Changed) == 0 {
		return nil
	}
	slices.Sort(e.Missing)
	slices.Sort(e.Changed)
	return e
}

// item returns the position of an item that is to be edited, when it is the one
// that base has under the ID.
func (p *Plan) item(op string, base *Plan, id string) (int, error) {
	i, err := p.known(op, base, id)
	if err == nil && p.tasks[i].Box < 0 {
		err = fmt.Errorf("%s: %s is a heading: edit the plan", op, id)
	}
	return i, err
}

// known returns the position of a task that base has too.
func (p *Plan) known(op string, base *Plan, id string) (int, error) {
	i, still := p.index[id]
	if _, was := base.index[id]; !was {
		return 0, fmt.Errorf("%s: %w: %q", op, ErrUnknownTask, id)
	}
	if !still {
		return 0, &ConflictError{Op: op, Missing: []string{id}}
	}
	if !comparison(base, p)(id) {
		return 0, &ConflictError{Op: op, Changed: []string{id}}
	}
	return i, nil
}

// comparison returns what says whether an ID names the same task in both plans.
// A text that only one sibling has names it. Of several equal ones, in it
// or above it, the numbers are given anew when one comes or goes: there
// must be as many as before. Tasks that base does not know are taken as they are.
func comparison(base, now *Plan) func(id string) bool {
	if base == now || bytes.Equal(base.src, now.src) {
		return func(string) bool { return true }
	}
	was, is := base.twins(), now.twins()
	return func(id string) bool {
		i, known := base.index[id]
		if !known {
			return true
		}
		for {
			t := &base.tasks[i]
			key := twin{t.Parent, slug(t.Name)}
			if was[key] != is[key] {
				return false
			}
			if t.Parent == "" {
				return true
			}
			i = base.index[t.Parent]
		}
	}
}

// A twin is what equal siblings have in common.
type twin struct{ parent, slug string }

// twins counts equal siblings.
func (p *Plan) twins() map[twin]int {
	n := make(map[twin]int, len(p.tasks))
	for i := range p.tasks {
		n[twin{p.tasks[i].Parent, slug(p.tasks[i].Name)}]++
	}
	return n
}
