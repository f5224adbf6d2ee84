package loop

import (
	"context"
	"errors"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
)

// endKilled ends the attempt that a kill interrupted.
func (r *runner) endKilled(ctx context.Context) error {
	if err := r.judgeKilled(ctx); err != nil {
		return err
	}
	if err := r.clearActive(session.TriggerStepCompleted); err != nil {
		return err
	}
	return r.forgetEnded(ctx)
}

// judgeKilled runs the check for the task that was in progress when its loop died, before the
// task runs again. The task is done if the check passes and either its agent's success was
// recorded or its check failed when the task began. If a process still holds the command's
// lock, the task is not judged, because the process may change files after the check.
func (r *runner) judgeKilled(ctx context.Context) error {
	st := r.sess.State()
	unit := st.ActiveTask()
	leaves := inProgress(st, unit)
	if len(leaves) == 0 || r.cfg.Check == "" || !r.cfg.Select.of(st).covers(st, unit) ||
		r.cfg.RequireChange && len(r.killed) == 0 {
		return nil
	}
	why := r.evidence(st, unit)
	if why == "" {
		return nil
	}
	if held, err := r.childHeld(ctx); held {
		r.log.Warn().Err(err).Str("task", unit).Msg("task not judged: something holds the lock of its command")
		r.cfg.UI.Warn("%s was in progress when lopen was killed, and a process that its command left behind still runs: it runs again", r.name(unit))
		return nil
	}
	n := attemptNumber(st, leaves)
	r.at = working{unit: unit, leaves: leaves, iteration: st.NumIterations() + 1, git: r.git.Head, changes: r.killed}
	r.at.worker, r.at.session = r.killedAgent(st.Header())
	r.cfg.UI.Say("%s was in progress when lopen was killed, and %s: the check judges it", r.name(unit), why)
	r.status("the check, of "+r.name(unit), 0)
	stdout, stderr := r.cfg.UI.Output()
	begun := time.Now()
	checked, failure, err := r.checkAlone(ctx, unit, leaves, n, stdout, stderr)
	if ctx.Err() != nil {
		return r.interrupted()
	}
	if err != nil {
		return err
	}
	r.log.Info().Str("task", unit).Str("evidence", why).Str("failure", failure).Msg("check of a task that was cut off")
	if failure != "" {
		r.cfg.UI.Say("the check %q fails: %s; %s runs again", r.check, failure, r.name(unit))
		return r.checked(checked)
	}
	changes, err := r.checkpoint(ctx, checkpoint.AfterTask, unit)
	if err != nil {
		return err
	}
	r.noteChanges(unit, r.at.git, changes)
	if len(r.killed) == 0 {
		r.unchanged = append(r.unchanged, unit)
		r.cfg.UI.Warn("%s changed no file", r.name(unit))
	}
	out := outcome{start: start{result: child.Result{StartedAt: begun, EndedAt: time.Now()}}, verdict: verdict{then: record.Done}, check: checked}
	if err := r.recordAttempt(ctx, n, out, metrics{}); err != nil {
		return err
	}
	return r.done(ctx, unit, leaves, out, metrics{}, begun)
}

// killedAgent returns the agent that worked when the loop died, and its session. If the run does
// not have this agent, it returns the first one and "".
func (r *runner) killedAgent(h session.Header) (w *worker, id string) {
	for _, w := range r.workers {
		if w.Name() == h.AgentName {
			return w, h.AgentSession
		}
	}
	return r.workers[0], ""
}

// childHeld reports whether a process holds the lock of the interrupted command. It waits up to
// a second for the process to end.
func (r *runner) childHeld(ctx context.Context) (held bool, err error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range 10 {
		if held, err = r.sess.ChildHeld(); !held || err != nil {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return held, ctx.Err()
		}
	}
	return held, err
}

// evidence returns why an interrupted unit counts as done if its check passes, or "" if the
// check alone does not suffice, because it may have passed before the unit began.
func (r *runner) evidence(st *session.State, unit string) string {
	ended, err := r.sess.CommandEnded()
	if err != nil {
		r.cfg.UI.Warn("how the last command ended is not known: %v", err)
	}
	if ended != nil && ended.Success {
		return "its command ended well"
	}
	if c := st.Header().Check; c != nil && c.Task == unit && c.Command == r.check && c.Exit != 0 {
		return "its check failed when it began"
	}
	return ""
}

// forgetEnded forgets how the command of an attempt ended that a kill cut off and that was not
// recorded, since a person decided about its task. The next attempt has its number: killed
// before its command starts, it would count as one whose command ended well.
func (r *runner) forgetEnded(ctx context.Context) error {
	if ended, err := r.sess.CommandEnded(); err != nil || ended == nil {
		return nil //nolint:nilerr // the start of the next command meets it
	}
	hold, err := r.hold(ctx)
	if err != nil || hold == nil {
		return err
	}
	return errors.Join(hold.Forget(), hold.Release())
}

// inProgress returns the leaves of a unit that are in progress.
func inProgress(st *session.State, unit string) (leaves []string) {
	for _, id := range tasks.Leaves(st, unit) {
		if t, _ := st.Task(id); t.State == session.TaskInProgress {
			leaves = append(leaves, id)
		}
	}
	return leaves
}
