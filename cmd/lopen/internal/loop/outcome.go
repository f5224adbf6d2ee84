package loop

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/plain"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
)

// record appends the iteration to the metrics and to the tasks' logs, and
// takes the unit out of progress, all in one State: either a restart finds the
// attempt with its outcome or it finds the task in progress. A counted attempt
// is one of the agent's own; final, when not nil, decides what became of a task.
func (r *Runner) record(unit string, leaves []string, out outcome, m metrics, begun time.Time, t session.Trigger, counted bool, final func(*session.Header, *session.Task)) error {
	res := out.result
	log := session.Attempt{StartedAt: res.StartedAt, EndedAt: res.EndedAt, Exit: res.Exit, Signal: res.Signal, Error: plain.Clip(r.sess.Redact(out.failure), 1<<10)}
	return r.change(t, func(e *session.Edit) error {
		h := e.Header()
		h.ActiveTask = ""
		m.apply(h, time.Now())
		if out.check != nil {
			h.Check = out.check
		}
		n := 0
		for _, id := range leaves {
			tasks.Set(e, id, func(task *session.Task) {
				entry := log
				entry.Number = len(task.Log) + 1
				n = max(n, entry.Number)
				task.Log = append(slices.Clip(task.Log), entry)
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
		e.AppendIteration(m.iteration(unit, n, begun, time.Since(begun)))
		return nil
	})
}

// done makes durable that the unit is done, and ticks its boxes then.
func (r *Runner) done(ctx context.Context, unit string, leaves []string, out outcome, m metrics, begun time.Time) error {
	git := r.git
	git.LastTaskCommit = git.Head
	now := time.Now()
	if err := r.record(unit, leaves, out, m, begun, session.TriggerTaskCompleted, true, func(h *session.Header, t *session.Task) {
		h.Git = git
		t.State, t.LastError, t.CompletedAt = session.TaskComplete, "", now
	}); err != nil {
		return err
	}
	if err := r.sync(ctx); err != nil {
		return err
	}
	if out.check != nil {
		r.green = green{unit: unit, n: attemptNumber(r.sess.State(), leaves) - 1} // this one is counted
	}
	boxes := map[string]bool{}
	for _, id := range leaves {
		boxes[id] = true
	}
	if err := r.tick(ctx, boxes); err != nil {
		return err
	}
	r.cfg.UI.Done(fmt.Sprintf("done: %s (%s)", r.name(unit), round(time.Since(begun))))
	r.emit(Event{Event: EventDone, Task: unit, Name: r.name(unit), Duration: time.Since(begun).Seconds()})
	return r.componentDone(unit)
}

// tick ticks boxes, and those of parents whose last child this was.
func (r *Runner) tick(ctx context.Context, boxes map[string]bool) error {
	st := r.sess.State()
	for id := range boxes {
		for t, ok := st.Task(id); ok && t.Parent != ""; {
			t, ok = st.Task(t.Parent)
			if ok && t.State == session.TaskComplete && t.Box != session.BoxNone {
				boxes[t.ID] = true
			}
		}
	}
	return r.writeBoxes(ctx, boxes)
}

func (r *Runner) componentDone(unit string) error {
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

// failed counts a failed attempt and, at the threshold, asks or stops.
func (r *Runner) failed(ctx context.Context, unit string, leaves []string, out outcome, m metrics, begun time.Time) error {
	if err := r.record(unit, leaves, out, m, begun, session.TriggerTaskFailed, true, nil); err != nil {
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

// usedUp decides about a unit whose attempts are used up.
func (r *Runner) usedUp(ctx context.Context, unit string, leaves []string, n int) error {
	set := func(state session.TaskState, trigger session.Trigger) error {
		if err := r.change(trigger, func(e *session.Edit) error {
			for _, id := range leaves {
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
		if err := r.sync(ctx); err != nil {
			return err
		}
		r.log.Info().Str("task", unit).Int("attempt", n).Str("outcome", string(state)).Msg("task used up its attempts")
		if state == session.TaskFailed {
			r.mark(leaves, plan.Mark{State: plan.MarkFailed, Attempts: n})
			r.emit(Event{Event: EventFailed, Task: unit, Name: r.name(unit), Text: r.lastFailure(unit)})
		}
		return nil
	}
	if r.cfg.Unattended {
		if err := set(session.TaskFailed, session.TriggerTaskFailed); err != nil {
			return err
		}
		return r.setBack(ctx, unit)
	}
	stop := func() error {
		if err := set(session.TaskFailed, session.TriggerTaskFailed); err != nil {
			return err
		}
		return r.pause(session.TriggerPaused, session.ExitFailed, &Exit{ExitUser,
			fmt.Sprintf("%s failed %d times: mend what is in the way, then %s", r.name(unit), n, r.resumeHint())})
	}
	if !r.cfg.ByTerminal {
		return stop()
	}
	key, err := r.cfg.UI.Choose(fmt.Sprintf("%s failed %d times. What now?", r.name(unit), n), []Choice{
		{'r', "retry"}, {'s', "skip"}, {'d', "mark as done"}, {'e', "edit the plan"}, {'q', "stop"},
	})
	if err != nil {
		return stop()
	}
	switch key {
	case 'r':
		return set(session.TaskPending, session.TriggerStepCompleted)
	case 's':
		return set(session.TaskSkipped, session.TriggerStepCompleted)
	case 'd':
		if err := set(session.TaskComplete, session.TriggerTaskCompleted); err != nil {
			return err
		}
		boxes := map[string]bool{}
		for _, id := range leaves {
			boxes[id] = true
		}
		return r.tick(ctx, boxes)
	case 'e':
		if err := set(session.TaskPending, session.TriggerStepCompleted); err != nil {
			return err
		}
		return r.cfg.UI.Edit(filepath.Join(r.cfg.Project, filepath.FromSlash(planPath(r.cfg.Module))))
	}
	return stop()
}

// notStarted ends a run whose command cannot be started: no attempt counts.
func (r *Runner) notStarted(leaves []string, cause error) error {
	err := r.change(session.TriggerPaused, func(e *session.Edit) error {
		e.Header().ActiveTask = ""
		for _, id := range leaves {
			tasks.Set(e, id, func(t *session.Task) { t.State = session.TaskPending })
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.log.Error().Err(cause).Str("task", r.at.unit).Int("iteration", r.at.iteration).Str("outcome", "not-started").Msg("task ends")
	return r.pause(session.TriggerPaused, session.ExitFailed, &Exit{ExitFailed, cause.Error()})
}
