package loop

import (
	"context"
	"fmt"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
)

// finish ends a run that has nothing left to run.
func (r *runner) finish(ctx context.Context) error {
	st := r.sess.State()
	p := st.Progress()
	_, waiting := tasks.Order(st)
	switch {
	case p.Total == 0:
		r.report()
		return r.noTask()
	case r.cfg.Only != "" && p.Done < p.Total:
		r.report()
		switch t, _ := st.Task(r.cfg.Only); t.State {
		case session.TaskFailed:
			return r.pause(session.TriggerPaused, session.ExitFailed, &Exit{ExitUser, "the task failed: " + r.resumeHint()})
		case session.TaskSkipped:
			return r.pause(session.TriggerPaused, session.ExitPaused, WasSkipped(st, r.cfg.Only))
		}
		if err := r.pauseOnly(session.TriggerPaused, session.ExitPaused); err != nil {
			return err
		}
		r.cfg.UI.Say("done: %s", r.cfg.Only)
		return nil
	case p.Failed > 0:
		for _, w := range waiting {
			r.cfg.UI.Say("blocked: %s, which waits for %s", w.Task, list(w.For))
		}
		r.report()
		return r.pause(session.TriggerPaused, session.ExitFailed, &Exit{ExitUser,
			fmt.Sprintf("%d of %d tasks failed, %d blocked: %s", p.Failed, p.Total, len(waiting), r.resumeHint())})
	}
	for {
		err := r.sess.Complete(ctx)
		if err == nil {
			break
		}
		if err := r.waitStorage(ctx, err, r.unpause); err != nil {
			return err
		}
	}
	r.report()
	return nil
}

func (r *runner) report() {
	st := r.sess.State()
	p, m := st.Progress(), st.Totals()
	line := fmt.Sprintf("%s: %d/%d tasks done", r.cfg.Module, p.Done, p.Total)
	if p.Failed > 0 {
		line += fmt.Sprintf(", %d failed", p.Failed)
	}
	if p.Skipped > 0 {
		line += fmt.Sprintf(", %d skipped", p.Skipped)
	}
	if m.InputTokens+m.OutputTokens > 0 {
		line += fmt.Sprintf(", %d tokens", m.InputTokens+m.OutputTokens)
	}
	r.cfg.UI.Say("%s, %d starts of the command", line, r.starts)
	if p.Skipped > 0 {
		r.cfg.UI.Say("skipped: %s", Skipped(st, ""))
	}
	if len(r.unchanged) > 0 {
		r.cfg.UI.Say("done without changing a file: %s", list(r.unchanged))
	}
}

// Skipped returns a text with the skipped leaves at or beneath a task, or with all skipped
// leaves if beneath is "", and how to run one after all. It returns "" if there are none.
func Skipped(st *session.State, beneath string) string {
	var ids []string
	for t := range st.All() {
		if t.State == session.TaskSkipped && len(t.Children) == 0 && (beneath == "" || within(st, t.ID, beneath)) {
			ids = append(ids, t.ID)
		}
	}
	switch len(ids) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("%s; to have it done after all: lopen plan untick %s %s", ids[0], st.ID().Module, ids[0])
	}
	return fmt.Sprintf("%s; to have one done after all: lopen plan untick %s TASK", list(ids), st.ID().Module)
}

// Differs returns a text with the tasks whose boxes are ticked in the plan but which are not
// complete in the State, as in a fork of an earlier record, and how to count one as done. It
// returns "" if there are none.
func Differs(st *session.State) string {
	var ids []string
	for t := range st.All() {
		if t.Box == session.BoxTicked && t.State != session.TaskComplete && len(t.Children) == 0 {
			ids = append(ids, t.ID)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return fmt.Sprintf("%d ticked in the plan and not done in session %s, so they run again: %s; to count one as done: lopen plan tick %s TASK",
		len(ids), st.ID(), list(ids), st.ID().Module)
}

// WasSkipped returns the Exit of a run of only one task that is skipped.
func WasSkipped(st *session.State, id string) *Exit {
	if t, _ := st.Task(id); len(t.Children) == 0 {
		return &Exit{ExitUser, fmt.Sprintf("%s was skipped; to have it done after all: lopen plan untick %s %s", id, st.ID().Module, id)}
	}
	return &Exit{ExitUser, fmt.Sprintf("%s is not done, skipped: %s", id, Skipped(st, id))}
}
