package loop

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/failing"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer/plain"
)

// saveOutcome appends the iteration to the metrics and the attempt to the tasks' logs, and makes
// the tasks pending, all in one State. So a restart finds either the attempt with its outcome or
// the task in progress. counted says that the attempt counts against the threshold. final,
// unless nil, sets the final state of a task.
func (r *runner) saveOutcome(unit string, leaves []string, out outcome, m metrics, begun time.Time, t session.Trigger, counted bool, final func(*session.Header, *session.Task)) error {
	res := out.result
	log := session.Attempt{StartedAt: res.StartedAt, EndedAt: res.EndedAt, Exit: res.Exit, Signal: res.Signal, Error: plain.Clip(r.sess.Redact(out.failure), 1<<10)}
	if out.check != nil {
		log.Artifacts = []string{checked(out.check, failing.First(r.sess.Redact(string(out.checkTail)), maxFailing))}
	}
	defer r.cfg.Shared.end(r)
	return r.change(t, func(e *session.Edit) error {
		h := e.Header()
		h.ActiveTask = ""
		now := time.Now()
		m.apply(h, now)
		if out.check != nil {
			h.Check = out.check
		}
		n := 0
		entered := func(task *session.Task) session.Attempt {
			entry := log
			entry.Number = len(task.Log) + 1
			n = max(n, entry.Number)
			task.Log = append(slices.Clip(task.Log), entry)
			return entry
		}
		for _, id := range r.at.decided {
			tasks.Set(e, id, func(task *session.Task) { entered(task) })
		}
		for _, id := range leaves {
			tasks.Set(e, id, func(task *session.Task) {
				entry := entered(task)
				task.LastError = entry.Error
				task.State = session.TaskPending
				if counted {
					task.Attempts++
				}
				if final != nil {
					final(h, task)
				}
			})
		}
		e.AppendIteration(m.iteration(unit, n, begun, now))
		return nil
	})
}

const (
	artifactCheck = "check exited " // what the check of an attempt gave

	maxFailing  = 3       // lines of a failed check in an artifact
	maxArtifact = 2 << 10 // bytes of it
)

// checked returns the artifact that says what a check gave, with the first lines that say what failed.
func checked(c *session.CheckResult, lines []string) string {
	text := fmt.Sprintf("%s%d after %s", artifactCheck, c.Exit, c.Duration.Round(time.Millisecond))
	return plain.Clip(strings.Join(append([]string{text}, lines...), "\n"), maxArtifact)
}

// CheckOf returns what the check of a task's last attempt gave: its exit code and how long it took, and the first
// lines that say what failed. It returns "" if there was none.
func CheckOf(t session.Task) (result string, failed []string) {
	if n := len(t.Log); n > 0 {
		for _, a := range t.Log[n-1].Artifacts {
			if text, ok := strings.CutPrefix(a, artifactCheck); ok {
				lines := strings.Split(text, "\n")
				return lines[0], lines[1:min(len(lines), 1+maxFailing)]
			}
		}
	}
	return "", nil
}

// overtaken saves an attempt whose outcome decides nothing, since a person decided about the
// unit while it was in progress, or took it out of the plan.
func (r *runner) overtaken(ctx context.Context, unit string, out outcome, m metrics, begun time.Time) error {
	is := "it is no longer in the plan"
	if t, ok := r.sess.State().Task(unit); ok {
		is = "it is " + string(t.State) + ", as you decided meanwhile"
	}
	if err := r.saveOutcome(unit, nil, out, m, begun, session.TriggerStepCompleted, false, nil); err != nil {
		return err
	}
	if err := r.sync(ctx); err != nil {
		return err
	}
	delete(r.failures, unit)
	r.cfg.UI.Say("the attempt at %s decides nothing: %s", r.name(unit), is)
	return nil
}

// done marks the unit as done, durably, and then ticks its boxes.
func (r *runner) done(ctx context.Context, unit string, leaves []string, out outcome, m metrics, begun time.Time) error {
	git := r.git
	git.LastTaskCommit = git.Head
	now := time.Now()
	if err := r.saveOutcome(unit, leaves, out, m, begun, session.TriggerTaskCompleted, true, func(h *session.Header, t *session.Task) {
		h.Git = git
		if r.cfg.Commit {
			h.Commits = r.commits.state(unit)
		}
		t.State, t.LastError, t.CompletedAt = session.TaskComplete, "", now
	}); err != nil {
		return err
	}
	if err := r.sync(ctx); err != nil {
		return err
	}
	if err := r.replicate(ctx); err != nil {
		return err
	}
	if out.check != nil {
		r.green = green{unit: unit, n: attemptNumber(r.sess.State(), leaves) - 1} // this attempt is counted already
	}
	if err := r.tick(ctx, leaves); err != nil {
		return err
	}
	r.cfg.UI.Done(fmt.Sprintf("done: %s (%s)", r.name(unit), round(time.Since(begun))))
	r.emit(event{Event: eventDone, Task: unit, Name: r.name(unit), Duration: time.Since(begun).Seconds()})
	r.recordTransaction(ctx)
	if err := r.commit(ctx, unit, leaves); err != nil {
		return err
	}
	return r.componentDone(unit)
}

// tick ticks the boxes of leaves, and of parents that are complete now.
func (r *runner) tick(ctx context.Context, leaves []string) error {
	st, boxes := r.sess.State(), map[string]bool{}
	for _, id := range leaves {
		boxes[id] = true
		for t, ok := st.Task(id); ok && t.Parent != ""; {
			t, ok = st.Task(t.Parent)
			if ok && t.State == session.TaskComplete && t.Box != session.BoxNone {
				boxes[t.ID] = true
			}
		}
	}
	return r.writeBoxes(ctx, boxes)
}

func (r *runner) componentDone(unit string) error {
	st := r.sess.State()
	c, ok := st.Task(tasks.Component(st, unit))
	if !ok || c.State != session.TaskComplete {
		return nil
	}
	r.cfg.UI.Say("component done: %s", c.Name)
	r.log.Info().Str("task", c.ID).Msg("component complete")
	return r.change(session.TriggerComponentCompleted, func(e *session.Edit) error {
		e.Header().Step = session.StepRepeat
		return nil
	})
}

// failed saves a failed attempt and, at the threshold, asks or stops.
func (r *runner) failed(ctx context.Context, unit string, leaves []string, out outcome, m metrics, begun time.Time) error {
	if err := r.saveOutcome(unit, leaves, out, m, begun, session.TriggerTaskFailed, true, nil); err != nil {
		return err
	}
	if err := r.sync(ctx); err != nil {
		return err
	}
	n := 0
	for _, id := range leaves {
		t, _ := r.sess.State().Task(id)
		n = max(n, t.Attempts)
	}
	r.cfg.UI.Warn("failed: %s (attempt %s): %s", r.name(unit), r.ofThreshold(n), out.failure)
	if r.cfg.FailureThreshold == 0 || n < r.cfg.FailureThreshold {
		return nil
	}
	return r.usedUp(ctx, unit, leaves, n)
}

// usedUp handles a unit whose n attempts are used up: it asks a person, or without one marks the
// unit as failed.
func (r *runner) usedUp(ctx context.Context, unit string, leaves []string, n int) error {
	u := exhausted{runner: r, unit: unit, leaves: leaves, attempts: n}
	if r.cfg.Unattended {
		if err := u.set(ctx, session.TaskFailed, session.TriggerTaskFailed); err != nil {
			return err
		}
		return r.setBack(ctx, unit)
	}
	if !r.cfg.ByTerminal {
		return u.stop(ctx)
	}
	key, err := r.cfg.UI.Choose(fmt.Sprintf("%s failed %d times. What now?", r.name(unit), n), []Choice{
		{'r', "retry"}, {'s', "skip"}, {'d', "mark as done"}, {'e', "edit the plan"}, {'q', "stop"},
	})
	if err != nil {
		return u.stop(ctx)
	}
	switch key {
	case 'r':
		return u.set(ctx, session.TaskPending, session.TriggerStepCompleted)
	case 's':
		if err := u.set(ctx, session.TaskSkipped, session.TriggerStepCompleted); err != nil {
			return err
		}
		skipped := map[string]bool{}
		for _, id := range leaves {
			skipped[id] = true
		}
		return r.writeMarks(ctx, skipped)
	case 'd':
		if err := u.set(ctx, session.TaskComplete, session.TriggerTaskCompleted); err != nil {
			return err
		}
		return r.tick(ctx, leaves)
	case 'e':
		if err := u.set(ctx, session.TaskPending, session.TriggerStepCompleted); err != nil {
			return err
		}
		return r.cfg.UI.Edit(filepath.Join(r.cfg.Project, filepath.FromSlash(lifecycle.PlanPath(r.cfg.Module))))
	}
	return u.stop(ctx)
}

// An exhausted unit has used up its attempts.
type exhausted struct {
	*runner
	unit     string
	leaves   []string
	attempts int
}

// set sets the state of the unit's tasks, durably. Pending tasks get all their attempts again.
func (u *exhausted) set(ctx context.Context, state session.TaskState, trigger session.Trigger) error {
	if err := u.change(trigger, func(e *session.Edit) error {
		for _, id := range u.leaves {
			tasks.Set(e, id, func(t *session.Task) {
				t.State = state
				if state == session.TaskPending {
					t.Attempts = 0
				}
			})
		}
		return nil
	}); err != nil {
		return err
	}
	if err := u.sync(ctx); err != nil {
		return err
	}
	u.log.Info().Str("task", u.unit).Int("attempt", u.attempts).Str("outcome", string(state)).Msg("task used up its attempts")
	if state == session.TaskFailed {
		u.mark(u.leaves, plan.Mark{State: plan.MarkFailed, Attempts: u.attempts})
		e := event{Event: eventFailed, Task: u.unit, Name: u.name(u.unit)}
		if all := u.failures[u.unit]; len(all) > 0 {
			e.Text = all[0].Failure
		}
		u.emit(e)
	}
	return nil
}

// stop marks the unit as failed and ends the run, so that a person can fix the cause.
func (u *exhausted) stop(ctx context.Context) error {
	if err := u.set(ctx, session.TaskFailed, session.TriggerTaskFailed); err != nil {
		return err
	}
	return u.pause(session.TriggerPaused, session.ExitFailed, &Exit{ExitUser,
		fmt.Sprintf("%s failed %d times: mend what is in the way, then %s", u.name(u.unit), u.attempts, u.resumeHint())})
}

// notStarted ends a run whose command cannot be started. No attempt is counted.
func (r *runner) notStarted(cause error) error {
	if err := r.clearActive(session.TriggerPaused); err != nil {
		return err
	}
	r.log.Error().Err(cause).Str("task", r.at.unit).Int("iteration", r.at.iteration).Str("outcome", "not-started").Msg("task ends")
	return r.pause(session.TriggerPaused, session.ExitFailed, &Exit{ExitFailed, cause.Error()})
}
