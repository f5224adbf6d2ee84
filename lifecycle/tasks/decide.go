package tasks

import (
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
)

// A Decision is what a person decided about tasks by one command, such as `plan tick`.
type Decision struct {
	Seq   uint64            `json:"seq"` // grows from one decision of a module to the next
	At    time.Time         `json:"at"`
	State session.TaskState `json:"state"` // TaskComplete, TaskPending, TaskSkipped or TaskFailed
	Tasks []string          `json:"tasks"` // IDs; of a task that has others beneath it only the box is decided
}

// Decided has the newest decision about each task, by the task's ID.
type Decided map[string]Decision

// Newest returns the newest decision about each task. all is sorted by Seq.
func Newest(all []Decision) Decided {
	d := Decided{}
	for i := range all {
		for _, id := range all[i].Tasks {
			d[id] = all[i]
		}
	}
	return d
}

// Apply gives a task the state that was decided on, and the box that goes with it. It returns
// false, and changes nothing, if the task has both already: a decision that was taken, and not
// forgotten because of a crash, says nothing of what a person changed by hand since then.
//
// A task in progress that is to be pending stays as it is, since it is running: the attempt
// decides.
func (d Decision) Apply(t *session.Task) bool {
	box := session.BoxOpen
	if d.State == session.TaskComplete {
		box = session.BoxTicked
	}
	same := t.State == d.State || d.State == session.TaskPending && t.State == session.TaskInProgress || len(t.Children) > 0
	if t.Box == session.BoxNone || same && t.Box == box {
		return false
	}
	t.Box = box
	if same {
		return true
	}
	switch t.State = d.State; d.State {
	case session.TaskComplete:
		t.LastError, t.CompletedAt = "", d.At
	case session.TaskPending:
		t.Attempts = 0
	}
	return true
}

// told is the note of each state that a person can decide on.
var told = map[session.TaskState]NoteKind{
	session.TaskComplete: ToldDone, session.TaskPending: ToldOpen, session.TaskSkipped: ToldSkipped, session.TaskFailed: ToldFailed,
}

// decided applies the decision about a task, if there is one that was not taken yet.
func (r *Result) decided(d Decided, t *session.Task, pt plan.Task) bool {
	decision, ok := d[pt.ID]
	if !ok {
		return false
	}
	was := t.State
	t.Children = pt.Children
	if !decision.Apply(t) {
		return false
	}
	if t.State != was {
		r.note(told[t.State], t.ID)
	}
	if ticked := t.Box == session.BoxTicked; ticked != pt.Checked {
		r.Boxes[t.ID] = ticked
	}
	return true
}

// skippable reports whether a mark can say that a task is skipped: it is an open leaf.
func skippable(t session.Task, pt plan.Task) bool {
	return pt.Box >= 0 && len(pt.Children) == 0 && t.State != session.TaskComplete
}

// mark compares the mark of a skipped task with the State. Somebody who adds one by hand
// while no command runs skips the task. A mark that is gone is written again: it may have been
// lost in many ways, and what was skipped must not run unasked.
func (r *Result) mark(t *session.Task, pt plan.Task, when When, told bool) {
	marked, skipped := pt.Mark.State == plan.MarkSkipped, t.State == session.TaskSkipped
	if !skippable(*t, pt) || marked == skipped {
		return
	}
	switch {
	case told:
		r.Marks[t.ID] = skipped
	case skipped:
		r.Marks[t.ID] = true
		r.Notes = append(r.Notes, Note{Kind: Marked, Task: t.ID, Type: r.typed("revive", t.ID)})
	case when == Between:
		t.State = session.TaskSkipped
		r.note(Skipped, t.ID)
	default:
		r.Marks[t.ID] = false
		r.noteTakenBack(t.ID, "skip", when)
	}
}
