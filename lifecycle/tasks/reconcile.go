package tasks

import (
	"fmt"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
)

// When says between which moments a difference arose, and so whose it is.
type When uint8

const (
	// Between two starts of the command: only a person was there.
	Between When = iota
	// During the command: a changed box is taken back, as the agent does not
	// decide what is done.
	During
	// Cut is after a kill in the middle of a task: nobody can tell. Reconcile
	// takes changed boxes back and lists them in Result.Unclear, so that a
	// caller with a person at hand can ask and reconcile as Between instead.
	Cut
)

// A Result is what Reconcile found.
type Result struct {
	State *session.State  // the State with the plan's tasks
	Boxes map[string]bool // boxes that lopen has to write: task ID to ticked
	Notes []Note          // what a person should be told, in the plan's order
	// Unclear lists the tasks whose boxes changed while nobody can tell who
	// it was (Cut only).
	Unclear []string
}

// A Note is one difference between the plan and the State.
type Note struct {
	Kind NoteKind
	Task string // the task's ID
	Was  string // for Reworded: the ID before
}

// NoteKind is the kind of a difference.
type NoteKind uint8

// The kinds of differences.
const (
	New       NoteKind = iota // appeared in the plan
	Gone                      // no longer in the plan
	Reworded                  // gone, and new at the same place
	Ticked                    // ticked by hand: counts as done
	Unticked                  // unticked by hand: runs again
	TakenBack                 // changed while the command ran: set back
	Mended                    // done before a kill that kept lopen from ticking it
)

func (n Note) String() string {
	switch n.Kind {
	case New:
		return fmt.Sprintf("new in the plan: %s", n.Task)
	case Gone:
		return fmt.Sprintf("no longer in the plan: %s", n.Task)
	case Reworded:
		return fmt.Sprintf("reworded, so a new task: %s (was %s)", n.Task, n.Was)
	case Ticked:
		return fmt.Sprintf("ticked by hand, counts as done: %s", n.Task)
	case Unticked:
		return fmt.Sprintf("unticked by hand, runs again: %s", n.Task)
	case TakenBack:
		return fmt.Sprintf("its box was changed while the command ran, set back: %s", n.Task)
	case Mended:
		return fmt.Sprintf("done already, ticked now: %s", n.Task)
	}
	return n.Task
}

// Reconcile takes the plan's tasks over into the State. The first time, when
// the State has none, nothing is noted.
func Reconcile(st *session.State, p *plan.Plan, when When) (Result, error) {
	r := Result{Boxes: map[string]bool{}}
	first := st.NumTasks() == 0
	e := st.Edit()
	inPlan := make(map[string]bool)
	for _, pt := range p.Tasks() {
		inPlan[pt.ID] = true
		t, known := st.Task(pt.ID)
		if !known && !first {
			r.Notes = append(r.Notes, Note{Kind: New, Task: pt.ID})
		}
		e.Put(r.merge(t, known, pt, when))
	}
	for t := range st.All() {
		if !inPlan[t.ID] {
			if _, still := e.Task(t.ID); still {
				r.gone(st, p, t)
				e.Remove(t.ID)
			}
		}
	}
	e.SetRoots(p.Roots())
	derive(e, p)
	for _, pt := range p.Tasks() {
		if t, _ := e.Task(pt.ID); len(pt.Children) > 0 && pt.Box >= 0 && !pt.Checked && t.State == session.TaskComplete {
			r.Boxes[pt.ID] = true // a parent is ticked with its last child
		}
	}
	next, err := e.State()
	r.State = next
	return r, err
}

// merge is the task of the State as the plan wants it.
func (r *Result) merge(t session.Task, known bool, pt plan.Task, when When) session.Task {
	if !known {
		t = session.Task{ID: pt.ID, State: session.TaskPending}
		if pt.Checked && len(pt.Children) == 0 {
			t.State = session.TaskComplete
		}
		t.Box = box(pt)
	}
	t.Kind, t.Name, t.Parent = session.Kind(pt.Kind), pt.Name, pt.Parent
	t.Children, t.DependsOn = slices.Clone(pt.Children), slices.Clone(pt.After)
	seen := box(pt)
	if !known || seen == session.BoxNone {
		t.Box = seen
		return t
	}
	leaf := len(pt.Children) == 0
	switch {
	case t.Box == seen:
		if leaf && t.State == session.TaskComplete && seen == session.BoxOpen {
			r.Boxes[pt.ID] = true
			r.note(Mended, pt.ID)
		}
	case leaf && seen == session.BoxTicked && t.State == session.TaskComplete:
		t.Box = seen // lopen ticked it and was killed before it could remember
	case !leaf && when == Between, t.Box == session.BoxNone:
		t.Box = seen // a parent's box follows its children's and decides nothing
	case when == Between:
		t.Box = seen
		if seen == session.BoxTicked {
			t.State = session.TaskComplete
			r.note(Ticked, pt.ID)
		} else {
			t.State, t.Attempts = session.TaskPending, 0
			r.note(Unticked, pt.ID)
		}
	default:
		r.Boxes[pt.ID] = t.Box == session.BoxTicked
		r.note(TakenBack, pt.ID)
		if when == Cut {
			r.Unclear = append(r.Unclear, pt.ID)
		}
	}
	return t
}

func (r *Result) note(k NoteKind, id string) { r.Notes = append(r.Notes, Note{Kind: k, Task: id}) }

// gone notes a task that left the plan, as reworded when a new one stands at
// its place under the same parent.
func (r *Result) gone(st *session.State, p *plan.Plan, t session.Task) {
	was, now := st.Roots(), p.Roots()
	if t.Parent != "" {
		parent, _ := st.Task(t.Parent)
		planned, ok := p.Task(t.Parent)
		if !ok {
			r.note(Gone, t.ID)
			return
		}
		was, now = parent.Children, planned.Children
	}
	if i := slices.Index(was, t.ID); i >= 0 && i < len(now) && len(was) == len(now) {
		if j := slices.Index(r.Notes, Note{Kind: New, Task: now[i]}); j >= 0 {
			r.Notes[j] = Note{Kind: Reworded, Task: now[i], Was: t.ID}
			return
		}
	}
	r.note(Gone, t.ID)
}

func box(t plan.Task) session.Box {
	switch {
	case t.Box < 0:
		return session.BoxNone
	case t.Checked:
		return session.BoxTicked
	}
	return session.BoxOpen
}

// derive sets the state of every parent from its children's, last items first,
// so that children are right before their parents.
func derive(e *session.Edit, p *plan.Plan) {
	all := p.Tasks()
	for i := len(all) - 1; i >= 0; i-- {
		if len(all[i].Children) > 0 {
			deriveOne(e, all[i].ID)
		}
	}
}

func deriveOne(e *session.Edit, id string) {
	t, ok := e.Task(id)
	if !ok {
		return
	}
	var n [5]int
	for _, c := range t.Children {
		child, _ := e.Task(c)
		switch child.State {
		case session.TaskInProgress:
			n[0]++
		case session.TaskPending:
			n[1]++
		case session.TaskFailed:
			n[2]++
		case session.TaskSkipped:
			n[3]++
		case session.TaskComplete:
			n[4]++
		}
	}
	state := session.TaskComplete
	switch {
	case n[0] > 0:
		state = session.TaskInProgress
	case n[1] > 0:
		state = session.TaskPending
	case n[2] > 0:
		state = session.TaskFailed
	case n[3] > 0:
		state = session.TaskSkipped
	}
	if t.State != state {
		t.State = state
		e.Put(t)
	}
}

// Set changes one task through fn and derives the states of its parents.
func Set(e *session.Edit, id string, fn func(*session.Task)) {
	t, ok := e.Task(id)
	if !ok {
		return
	}
	fn(&t)
	e.Put(t)
	for parent := t.Parent; parent != ""; {
		deriveOne(e, parent)
		p, ok := e.Task(parent)
		if !ok {
			return
		}
		parent = p.Parent
	}
}
