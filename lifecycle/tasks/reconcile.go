package tasks

import (
	"path"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer/plain"
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
	// Marks lists the tasks whose marks lopen has to write: true for the mark of a skipped
	// task, false for none.
	Marks map[string]bool
	Notes []Note // what to report to a person, in the plan's order
	// Unclear lists the tasks whose boxes changed while nobody can tell who
	// it was (Cut only).
	Unclear []string

	module string
}

// A Note is one difference between the plan and the State.
type Note struct {
	Kind NoteKind
	Task string // the task's ID
	Was  string // for Reworded: the ID before; for Broken: the ID that the plan does not have
	Type string // for TakenBack and Marked: what a person types to decide it; for Broken: the ID that is meant, "" if nobody knows
}

// NoteKind is the kind of a difference.
type NoteKind uint8

// The kinds of differences.
const (
	New         NoteKind = iota // appeared in the plan
	Gone                        // no longer in the plan
	Reworded                    // gone, and new at the same place
	Ticked                      // ticked by hand: counts as done
	Unticked                    // unticked by hand: runs again
	TakenBack                   // changed while the command ran, or new and ticked then: set back
	Mended                      // done before a kill; lopen had not ticked it
	Skipped                     // marked as skipped by hand: does not run
	Marked                      // skipped, and marked so again
	ToldDone                    // a person's command: counts as done
	ToldOpen                    // a person's command: runs again
	ToldSkipped                 // a person's command: does not run
	ToldFailed                  // a person's command: does not run any more in this run
	Broken                      // waits for what is no longer in the plan
)

var noteTexts = [...]string{
	New: "new in the plan", Gone: "no longer in the plan", Reworded: "reworded, so a new task", Ticked: "ticked by hand, counts as done",
	Unticked: "unticked by hand, runs again", TakenBack: "its box was changed while the command ran, set back", Mended: "done already, ticked now",
	Skipped: "marked as skipped by hand, does not run", Marked: "skipped, its mark is written again", ToldDone: "ticked by command, counts as done",
	ToldOpen: "unticked or revived by command, runs again", ToldSkipped: "skipped by command, does not run",
	ToldFailed: "marked as failed by command, does not run in this run", Broken: "waits for what the plan does not have, and stays blocked",
}

func (n Note) String() string {
	s := noteTexts[n.Kind] + ": " + n.Task
	switch n.Kind {
	case Reworded:
		s += " (was " + n.Was + ")"
	case TakenBack:
		s += "; if it was you: " + n.Type
	case Marked:
		s += "; if it is to run: " + n.Type
	case Broken:
		s += " (after: " + n.Was + ")"
		if n.Type != "" {
			s += "; it probably means " + n.Type
		}
	}
	return s
}

// Reconcile copies the plan's tasks into the State. The first time, when
// the State has none, nothing is noted.
func Reconcile(st *session.State, p *plan.Plan, when When) (Result, error) {
	return Decided(nil).Reconcile(st, p, when)
}

// Reconcile is the function of that name where a person has decided about tasks by commands
// since the last call. Whatever the plan says of these tasks and whenever it is noticed, they
// get the state that was decided on; the plan follows, by Boxes and Marks.
func (d Decided) Reconcile(st *session.State, p *plan.Plan, when When) (Result, error) {
	r := Result{Boxes: map[string]bool{}, Marks: map[string]bool{}, module: st.ID().Module}
	first := st.NumTasks() == 0
	e := st.Edit()
	before := stood(st, p)
	inPlan := make(map[string]bool)
	for _, pt := range p.Tasks() {
		inPlan[pt.ID] = true
		t, known := st.Task(pt.ID)
		var told bool
		switch {
		case known:
			if told = r.decided(d, &t, pt); !told {
				t = r.merge(t, pt, when)
			}
		case first:
			t = fresh(pt)
			if told = r.decided(d, &t, pt); !told && skippable(t, pt) && pt.Mark.State == plan.MarkSkipped {
				t.State = session.TaskSkipped
			}
		default:
			var was session.Task
			if _, still := p.Task(before[pt.ID]); !still {
				was, _ = st.Task(before[pt.ID])
			}
			_, told = d[pt.ID]
			t = r.appeared(was, pt, when, told)
			r.decided(d, &t, pt)
		}
		r.mark(&t, pt, when, told)
		e.Put(follow(t, pt))
	}
	r.remove(st, e, inPlan)
	r.broken(st, p)
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

// remove takes away the tasks that are not in the plan. What was reworded is noted already.
func (r *Result) remove(st *session.State, e *session.Edit, inPlan map[string]bool) {
	reworded := map[string]bool{}
	for _, n := range r.Notes {
		if n.Kind == Reworded {
			reworded[n.Was] = true
		}
	}
	for t := range st.All() {
		if _, still := e.Task(t.ID); inPlan[t.ID] || !still {
			continue
		}
		if !reworded[t.ID] {
			r.note(Gone, t.ID)
		}
		e.Remove(t.ID)
	}
}

// broken notes what tasks wait for since an edit of the plan and the plan does not have.
func (r *Result) broken(st *session.State, p *plan.Plan) {
	for _, m := range p.Missing() {
		_, had := st.Task(m.For)
		if t, _ := st.Task(m.Task); st.NumTasks() == 0 || !had && slices.Contains(t.DependsOn, m.For) {
			continue // it was so before
		}
		r.Notes = append(r.Notes, Note{Kind: Broken, Task: m.Task, Was: m.For, Type: r.meant(m, p)})
	}
}

// meant returns the task that a reference probably means: the one that has other words now, or else the only one of that name.
func (r *Result) meant(m plan.Missing, p *plan.Plan) (id string) {
	for _, n := range r.Notes {
		if n.Kind == Reworded && n.Was == m.For {
			return n.Task
		}
	}
	for t := range p.All() {
		if t.ID != m.Task && path.Base(t.ID) == path.Base(m.For) {
			if id != "" {
				return ""
			}
			id = t.ID
		}
	}
	return id
}

// follow gives a task the place and the words that it has in the plan.
func follow(t session.Task, pt plan.Task) session.Task {
	t.Kind, t.Name, t.Parent = session.Kind(pt.Kind), pt.Name, pt.Parent
	t.Children, t.DependsOn = slices.Clone(pt.Children), slices.Clone(pt.After)
	return t
}

// fresh is a task that the State does not have, done if it is ticked.
func fresh(pt plan.Task) session.Task {
	t := session.Task{ID: pt.ID, State: session.TaskPending, Box: Box(pt)}
	if pt.Checked && len(pt.Children) == 0 {
		t.State = session.TaskComplete
	}
	return t
}

// appeared is a task that was not in the plan the last time. One that comes
// ticked while the command runs is taken back as well: an agent that rewords its
// task as it ticks it decides no more than one that only ticks. A task that was
// done and is reworded stays done.
//
// was is the task that stood in its place, if it is gone from the plan.
// told says that a person decided about it by a command.
func (r *Result) appeared(was session.Task, pt plan.Task, when When, told bool) session.Task {
	if was.ID != "" {
		r.Notes = append(r.Notes, Note{Kind: Reworded, Task: pt.ID, Was: was.ID})
	} else {
		r.note(New, pt.ID)
	}
	t := fresh(pt)
	switch {
	case t.State == session.TaskComplete && when != Between && was.State != session.TaskComplete && !told:
		t.State, t.Box = session.TaskPending, session.BoxOpen
		r.takeBack(t, when)
	case skippable(t, pt) && was.State == session.TaskSkipped:
		t.State = session.TaskSkipped
	}
	return t
}

// stood returns the task of the State that stood where a task of the plan is now, under
// the same parent, by the ID of the latter. Where a parent has more or fewer children
// than before nobody can tell.
func stood(st *session.State, p *plan.Plan) map[string]string {
	at := map[string]string{}
	pair := func(was, now []string) {
		if len(was) == len(now) {
			for i, id := range now {
				at[id] = was[i]
			}
		}
	}
	pair(st.Roots(), p.Roots())
	for _, pt := range p.Tasks() {
		if t, ok := st.Task(pt.ID); ok {
			pair(t.Children, pt.Children)
		}
	}
	return at
}

// merge is a task of the State as its box in the plan wants it.
func (r *Result) merge(t session.Task, pt plan.Task, when When) session.Task {
	seen := Box(pt)
	if seen == session.BoxNone {
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
		r.takeBack(t, when)
	}
	return t
}

// takeBack sets a box of the plan to what the task remembers.
func (r *Result) takeBack(t session.Task, when When) {
	r.Boxes[t.ID] = t.Box == session.BoxTicked
	verb := "tick"
	if r.Boxes[t.ID] {
		verb = "untick"
	}
	r.noteTakenBack(t.ID, verb, when)
}

// noteTakenBack notes what was set back, with the command by which a person decides the same.
func (r *Result) noteTakenBack(id, verb string, when When) {
	r.Notes = append(r.Notes, Note{Kind: TakenBack, Task: id, Type: r.typed(verb, id)})
	if when == Cut {
		r.Unclear = append(r.Unclear, id)
	}
}

func (r *Result) typed(verb, id string) string {
	return "lopen plan " + plain.Quote(verb, r.module, id)
}

func (r *Result) note(k NoteKind, id string) { r.Notes = append(r.Notes, Note{Kind: k, Task: id}) }

// Box is a task's checkbox as it stands in the plan.
func Box(t plan.Task) session.Box {
	switch {
	case t.Box < 0:
		return session.BoxNone
	case t.Checked:
		return session.BoxTicked
	}
	return session.BoxOpen
}
