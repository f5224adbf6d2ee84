package loop

import (
	"iter"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer/plain"
)

// A Selection is the part of a plan that a run works on: from the begin of one task to the end
// of another, with what is beneath them, in the plan's order. One task alone is both. The zero
// Selection is the whole plan.
type Selection struct {
	From    string // an ID; "" is the first task
	Through string // an ID; "" is the last task
}

// Flags returns what stands for the selection behind `lopen run MODULE`.
func (s Selection) Flags() string {
	switch {
	case s == Selection{}:
		return ""
	case s.From == s.Through:
		return " --task " + plain.Quote(s.From)
	case s.Through == "":
		return " --from " + plain.Quote(s.From)
	case s.From == "":
		return " --through " + plain.Quote(s.Through)
	}
	return " --from " + plain.Quote(s.From) + " --through " + plain.Quote(s.Through)
}

// String names the selection in a sentence.
func (s Selection) String() string {
	switch {
	case s.From == s.Through:
		return s.From
	case s.Through == "":
		return "all from " + s.From + " on"
	case s.From == "":
		return "all through " + s.Through
	}
	return "all from " + s.From + " through " + s.Through
}

// Leaves returns the tasks of a plan that are selected and have none beneath them.
func (s Selection) Leaves(p *plan.Plan) (leaves []plan.Task) {
	in := s.pick(func(yield func(string, string) bool) {
		for t := range p.All() {
			if !yield(t.ID, t.Parent) {
				return
			}
		}
	})
	for t := range p.All() {
		if len(t.Children) == 0 && t.Kind != plan.KindComponent && in.has(t.ID) {
			leaves = append(leaves, t)
		}
	}
	return leaves
}

// selected has the IDs of the tasks that are selected. nil is all of them.
type selected map[string]bool

func (in selected) has(id string) bool { return in == nil || in[id] }

// covers reports whether a task is selected with all that is beneath it.
func (in selected) covers(st *session.State, id string) bool {
	if !in.has(id) {
		return false
	}
	for {
		t, ok := st.Task(id)
		if !ok || len(t.Children) == 0 {
			return ok && in.has(id)
		}
		id = t.Children[len(t.Children)-1]
	}
}

func (s Selection) of(st *session.State) selected {
	return s.pick(func(yield func(string, string) bool) {
		for t := range st.All() {
			if !yield(t.ID, t.Parent) {
				return
			}
		}
	})
}

// pick takes the tasks with their parents, in the plan's order. Nothing is selected where an end
// of the selection is not among them.
func (s Selection) pick(all iter.Seq2[string, string]) selected {
	if s == (Selection{}) {
		return nil
	}
	in, last := selected{}, map[string]bool{} // last has what is at or beneath Through
	begun := s.From == ""
	for id, parent := range all {
		if id == s.Through || last[parent] {
			last[id] = true
		} else if len(last) > 0 {
			return in
		}
		if begun = begun || id == s.From; begun {
			in[id] = true
		}
	}
	if s.Through != "" && len(last) == 0 {
		return selected{}
	}
	return in
}

// counts returns how the selected leaves stand, and which of them wait for others.
func (in selected) counts(st *session.State) (p session.Progress, waiting []tasks.Waiting) {
	for t := range st.All() {
		if len(t.Children) > 0 || t.Kind == session.KindComponent || t.Kind == session.KindModule || !in.has(t.ID) {
			continue
		}
		p.Total++
		switch t.State {
		case session.TaskComplete:
			p.Done++
		case session.TaskFailed:
			p.Failed++
		case session.TaskSkipped:
			p.Skipped++
		}
	}
	_, all := tasks.Order(st)
	for _, w := range all {
		if in.has(w.Task) {
			waiting = append(waiting, w)
		}
	}
	return p, waiting
}
