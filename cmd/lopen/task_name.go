package main

import (
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/nearest"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/turns"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer/plain"
)

// taskHelp explains TASK, the same for every command and flag that takes one.
const taskHelp = "TASK is an ID, a unique part of it or of the text, or :LINE of the plan."

// maxTypo is how long a name may be, in bytes, for the nearest ones to be looked for.
const maxTypo = 200

// findTask finds the task of a plan that a person means.
func findTask(p *plan.Plan, query string) (plan.Task, error) {
	id, err := findKnownTask(p, query, nil)
	if err != nil {
		return plan.Task{}, err
	}
	t, _ := p.Task(id)
	return t, nil
}

// findKnownTask is findTask for a session, whose tasks need not be in the plan any more: known
// are the IDs that it has. p may be nil. The error exits with 12, or with 64 where more than
// one task may be meant.
func findKnownTask(p *plan.Plan, query string, known iter.Seq[string]) (string, error) {
	names := taskNames(p, known)
	id, err := plan.FindName(query, names)
	if errors.Is(err, plan.ErrUnknownTask) && len(query) <= maxTypo && strings.Trim(query, " :0123456789") != "" {
		near := nearest.ID(query, func(yield func(string) bool) {
			for n := range names {
				if !yield(n.ID) {
					return
				}
			}
		})
		if len(near) > 0 {
			err = fmt.Errorf("%w; nearest: %s", err, strings.Join(near, ", "))
		}
	}
	return id, err
}

// taskTitle names a task of a session for a person: a prompt of an agent's own session by its number
// and its first line, another task by its ID and its text.
func taskTitle(st *session.State, id string) string {
	name := plain.Line(id)
	if n, ok := turns.Prompt(id); ok && st.Header().Origin == session.OriginHook {
		name = fmt.Sprintf("prompt %d", n)
	}
	if t, ok := st.Task(id); ok && t.Name != "" && t.Name != id {
		name += " " + inQuotes(t.Name)
	}
	return name
}

// maxQuoted bounds a name within a sentence, in runes.
const maxQuoted = 60

// inQuotes is a name within a sentence.
func inQuotes(name string) string { return `"` + plain.Fit(plain.Line(name), maxQuoted) + `"` }

// lastPlan is the plan of a session's module, nil where it cannot be read: what is on record of a
// session is found without it.
func lastPlan(store *lifecycle.Store, module string) *plan.Plan {
	p, err := store.Plan(module)
	if err != nil {
		return nil
	}
	return p
}

// taskNames yields each task of a plan, and then the other IDs that are known. Those that
// lopen cannot have made are left out.
func taskNames(p *plan.Plan, known iter.Seq[string]) iter.Seq[plan.Name] {
	return func(yield func(plan.Name) bool) {
		seen := map[string]bool{}
		if p != nil {
			for n := range p.Names() {
				if seen[n.ID] = true; !yield(n) {
					return
				}
			}
		}
		if known == nil {
			return
		}
		for id := range known {
			if seen[id] || id == "" || plain.Line(id) != id {
				continue
			}
			if seen[id] = true; !yield(plan.Name{ID: id}) {
				return
			}
		}
	}
}
