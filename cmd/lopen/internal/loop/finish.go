package loop

import (
	"context"
	"fmt"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
)

// finish ends a run in which nothing is left to run.
func (r *Runner) finish(ctx context.Context) error {
	st := r.sess.State()
	p := st.Progress()
	_, waiting := tasks.Order(st)
	switch {
	case p.Total == 0:
		r.report()
		return r.noTask()
	case r.cfg.Only != "" && p.Done+p.Skipped < p.Total:
		r.report()
		if t, _ := st.Task(r.cfg.Only); t.State == session.TaskFailed {
			return r.pause(session.TriggerPaused, session.ExitFailed, &Exit{ExitUser, "the task failed: " + r.resumeHint()})
		}
		if err := r.pauseOnly(session.TriggerPaused, session.ExitPaused); err != nil {
			return err
		}
		r.cfg.UI.Say("done: %s", r.cfg.Only)
		return nil
	case p.Failed > 0:
		for _, w := range waiting {
			r.cfg.UI.Say("blocked by what failed: %s", w.Task)
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

func (r *Runner) report() {
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
	if len(r.unchanged) > 0 {
		r.cfg.UI.Say("done without changing a file: %s", list(r.unchanged))
	}
}
