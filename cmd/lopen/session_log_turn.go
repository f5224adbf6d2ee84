package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/report"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/plain"
)

// turnsOf is what the log of a session takes from its State: who made it, and what was asked. The zero
// value is that of a run.
type turnsOf struct {
	origin session.Origin
	st     *session.State // nil of a run
}

// readTurns reads them. Of a session that cannot be read the log says what it has itself.
func readTurns(store *lifecycle.Store, id session.ID) turnsOf {
	st, _, _ := store.Read(id)
	switch {
	case st == nil:
		return turnsOf{}
	case st.Header().Origin == session.OriginHook:
		return turnsOf{session.OriginHook, st}
	}
	return turnsOf{origin: st.Header().Origin}
}

// task names a task: a prompt as a person knows it, any other by its ID.
func (t turnsOf) task(id string) string {
	if t.st == nil || id == "" {
		return id
	}
	return taskTitle(t.st, id)
}

// active names the active task, which may be none.
func (t turnsOf) active(id string) string {
	if t.st == nil || id == "" {
		return shown(cmp.Or(id, "none"))
	}
	return t.task(id)
}

// happened says what an operation did to a task: the turn of a prompt begins with it.
func (t turnsOf) happened(op string) string {
	if op == record.OpTaskCreated && t.st != nil {
		return "begun"
	}
	return strings.ReplaceAll(op, "-", " ")
}

// state is a state of a task: a prompt is not skipped.
func (t turnsOf) state(s string) string {
	if s == string(session.TaskSkipped) {
		return report.Skipped(t.origin)
	}
	return s
}

// attempt is a line about an attempt; of a turn what became of the prompt.
func (t turnsOf) attempt(a *record.Attempt) string {
	if t.st == nil {
		took := " took " + a.EndedAt.Sub(a.StartedAt).Round(time.Millisecond).String()
		if a.Then == record.Killed {
			took = ""
		}
		return fmt.Sprintf("%s: attempt %d%s: %s", a.Task, a.Attempt, took, a.Then)
	}
	name := t.task(a.Task)
	if a.Attempt > 1 {
		name += fmt.Sprintf(", attempt %d", a.Attempt)
	}
	changed, took := len(a.Files)+a.MoreFiles, report.Span(a.EndedAt.Sub(a.StartedAt).Seconds())
	files := plain.Some(changed, "file") + " changed"
	switch {
	case a.Then == record.Done && changed == 0:
		return fmt.Sprintf("%s: no file changed in %s", name, took)
	case a.Then == record.Done:
		return fmt.Sprintf("%s: %s in %s", name, files, took)
	case changed == 0: // or nobody looked, as where a check sent the turn back
		return fmt.Sprintf("%s: %s after %s", name, plain.Line(a.Then), took)
	}
	return fmt.Sprintf("%s: %s after %s, %s", name, plain.Line(a.Then), took, files)
}

// openTurn says what is known of the turn of an agent that has not ended, if it is the one of a task or
// any for ""; else it is "".
func openTurn(store *lifecycle.Store, id session.ID, task string) string {
	owner, err := store.Holder(id) // before the State: a turn that ends in between has no task in it
	st, _, _ := store.Read(id)
	if st == nil || st.Header().Origin != session.OriginHook || task != "" && task != st.ActiveTask() {
		return ""
	}
	t, ok := st.Task(st.ActiveTask())
	if !ok {
		return ""
	}
	text := fmt.Sprintf("%s, begun %s: ", taskTitle(st, t.ID), t.StartedAt.Local().Format(time.DateTime))
	if err != nil || owner != nil {
		return text + "in progress"
	}
	return text + "no end of it is on record, and the agent is gone; which files it changed is noted when its session is resumed, or rewound"
}
