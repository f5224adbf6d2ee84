package loop

import (
	"context"
	"fmt"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// finish ends a run that has nothing left to run.
func (r *runner) finish(ctx context.Context) error {
	st := r.sess.State()
	whole := st.Progress()
	p, waiting := r.cfg.Select.of(st).counts(st)
	uncovered := r.specification(r.plan)
	switch {
	case whole.Total == 0:
		r.report()
		return r.noTask()
	case p.Failed > 0:
		for _, w := range waiting {
			r.cfg.UI.Say("blocked: %s, which waits for %s", w.Task, list(w.For))
		}
		r.report()
		text := "the task failed"
		if p.Total > 1 {
			text = fmt.Sprintf("%d of %d tasks failed, %d blocked", p.Failed, p.Total, len(waiting))
		}
		return r.pause(session.TriggerPaused, session.ExitFailed, &Exit{ExitUser, text + ": " + r.resumeHint()})
	case r.cfg.Select != Selection{} && whole.Done < whole.Total:
		return r.finishSelected(st)
	case uncovered != nil:
		r.report()
		return r.pause(session.TriggerPaused, session.ExitPaused, uncovered)
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

// finishSelected ends a run of a part of the plan in which nothing failed. Unless a task of it is
// skipped, the part is done.
func (r *runner) finishSelected(st *session.State) error {
	r.report()
	if Skipped(st, r.cfg.Select) != "" {
		return r.pause(session.TriggerPaused, session.ExitPaused, WasSkipped(st, r.cfg.Select))
	}
	if err := r.pauseOnly(session.TriggerPaused, session.ExitPaused); err != nil {
		return err
	}
	if r.starts == 0 {
		r.cfg.UI.Say("%s", Already(st.ID().Module, r.cfg.Select))
		return nil
	}
	r.cfg.UI.Say("done: %s", r.cfg.Select)
	return nil
}

// Already says that what is selected was done before the run, and how to have it done again.
func Already(module string, s Selection) string {
	return fmt.Sprintf("done already: %s; to have it done again: lopen run %s%s --again", s, module, s.Flags())
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
	r.cfg.UI.Say("%s, %s of the command", line, plain.Some(r.starts, "start"))
	if p.Skipped > 0 {
		r.cfg.UI.Say("skipped: %s", Skipped(st, Selection{}))
	}
	if ids := Uncommitted(st); len(ids) > 0 && r.cfg.Commit {
		r.cfg.UI.Say("done and not committed: %s; why: lopen session show %s", list(ids), st.ID())
	}
	if len(r.unchanged) > 0 {
		r.cfg.UI.Say("done without changing a file: %s", list(r.unchanged))
	}
}

// Skipped returns a text with the selected leaves that are skipped, and how to run one after all.
// It returns "" if there are none.
func Skipped(st *session.State, s Selection) string {
	var ids []string
	in := s.of(st)
	for t := range st.All() {
		if t.State == session.TaskSkipped && len(t.Children) == 0 && in.has(t.ID) {
			ids = append(ids, t.ID)
		}
	}
	switch len(ids) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("%s; to have it done after all: lopen plan revive %s %s", ids[0], st.ID().Module, plain.Quote(ids[0]))
	}
	return fmt.Sprintf("%s; to have one done after all: lopen plan revive %s TASK", list(ids), st.ID().Module)
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

// WasSkipped returns the Exit of a run of a part of the plan that has skipped tasks.
func WasSkipped(st *session.State, s Selection) *Exit {
	if t, ok := st.Task(s.From); ok && s.From == s.Through && len(t.Children) == 0 {
		return &Exit{ExitUser, fmt.Sprintf("%s was skipped; to have it done after all: lopen plan revive %s %s", t.ID, st.ID().Module, plain.Quote(t.ID))}
	}
	return &Exit{ExitUser, fmt.Sprintf("%s is not done, skipped: %s", s, Skipped(st, s))}
}
