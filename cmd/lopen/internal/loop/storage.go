package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
)

// endTimeout bounds how long a run that ends may wait for the disk.
const endTimeout = 10 * time.Second

// change edits the State and saves it. A paused session is no error here, because the State
// stays in memory, and the next sync waits.
func (r *runner) change(t session.Trigger, fn func(*session.Edit) error) error {
	return r.ignorePaused(r.sess.Change(t, fn))
}

func (r *runner) ignorePaused(err error) error {
	var paused *lifecycle.PausedError
	if errors.As(err, &paused) {
		return nil
	}
	return err
}

// sync waits until everything that was saved is durable. It waits for the end of storage errors.
func (r *runner) sync(ctx context.Context) error {
	err := r.sess.Sync(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return r.waitStorage(ctx, err, r.unpause)
}

// replicate waits until what was saved is kept elsewhere as well, if the run is to. When it cannot be, the
// run pauses like on a storage error: what is done stays done, and the next run ticks it.
func (r *runner) replicate(ctx context.Context) error {
	if r.cfg.Replicate == nil {
		return nil
	}
	err := r.cfg.Replicate(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return r.pause(session.TriggerPaused, session.ExitStorageError, &Exit{ExitStorage, fmt.Sprintf("paused: what was done is on this disk and not in the fleet, and replicate is task: %v; %s", err, r.resumeHint())})
}

// unpause is [lifecycle.Session.Unpause]. It warns if the session was made again.
func (r *runner) unpause(ctx context.Context) error {
	was := r.sess.Incarnation()
	err := r.sess.Unpause(ctx)
	if now := r.sess.Incarnation(); now != was {
		r.cfg.UI.Warn("session %s was made again from memory, as incarnation %s: its log until now, the output of its attempts and its checkpoints are lost", r.sess.State().ID(), now)
	}
	return err
}

// unpauseIfPaused unpauses the session if it is paused on a storage error.
func (r *runner) unpauseIfPaused(ctx context.Context) error {
	var paused *lifecycle.PausedError
	if errors.As(r.sess.Paused(), &paused) {
		return r.unpause(ctx)
	}
	return nil
}

// waits reports whether a run waits for the end of a storage error of a class.
func waits(c lifecycle.Class) bool {
	switch c {
	case lifecycle.ClassNoSpace, lifecycle.ClassDenied, lifecycle.ClassRemoved, lifecycle.ClassDevice:
		return true
	}
	return false
}

// holdsFiles is waits for reading or writing the project's files. A denied file of the project is
// not waited for, and a lost lock is taken again.
func holdsFiles(c lifecycle.Class) bool {
	return c == lifecycle.ClassFenced || waits(c) && c != lifecycle.ClassDenied
}

// waitStorage waits while the storage does not work, and retries what failed: periodically after
// most errors, and for a failing device when a person says so. It returns nil when retry
// succeeded, and an Exit with code 14 when PauseTimeout is over. If the run does not wait for
// the class of cause, it returns cause.
func (r *runner) waitStorage(ctx context.Context, cause error, retry func(context.Context) error) (err error) {
	if ctx.Err() != nil {
		return cause
	}
	select {
	case raised := <-r.sess.Critical(): // so that it is reported only here
		cause = raised
	default:
	}
	class := lifecycle.ClassOf(cause)
	switch {
	case class == lifecycle.ClassFenced:
		err := retry(ctx) // it is taken again where nobody else resumed the session
		if err == nil {
			r.cfg.UI.Warn("a lock was lost and is taken again, nobody had gone on: %v", cause)
		}
		return err
	case !waits(class):
		return cause
	}
	w := storageWait{runner: r, cause: cause, class: class, since: time.Now()}
	var paused *lifecycle.PausedError
	if !errors.As(cause, &paused) { // the session logs its own pauses
		lifecycle.LogCause(r.log.Error(), cause).Msg("paused on a storage error")
		defer func() {
			if err == nil {
				r.log.Info().Dur("duration_ms", time.Since(w.since)).Msg("goes on after a storage error")
			}
		}()
	}
	return w.run(ctx, retry)
}

// A storageWait is one wait for the storage.
type storageWait struct {
	*runner
	cause error
	class lifecycle.Class
	since time.Time
}

// clears reports whether the cause may end without a person.
func (w *storageWait) clears() bool { return w.class != lifecycle.ClassDevice }

func (w *storageWait) run(ctx context.Context, retry func(context.Context) error) error {
	says, over := w.cfg.Shared.storage(w.class)
	defer over()
	w.emit(event{Event: eventPaused, Text: w.cause.Error()})
	if says {
		w.say()
	}
	var timeout <-chan time.Time
	if w.cfg.PauseTimeout > 0 {
		t := time.NewTimer(w.cfg.PauseTimeout)
		defer t.Stop()
		timeout = t.C
	}
	tick := time.NewTicker(Waits.Storage)
	defer tick.Stop()
	for {
		if err := w.next(ctx, tick.C, timeout); err != nil {
			return err
		}
		err := retry(ctx)
		if waits(lifecycle.ClassOf(err)) {
			continue
		}
		if err != nil {
			return err
		}
		if says {
			w.cfg.UI.Say("saved again after %s: going on", round(time.Since(w.since)))
		}
		return nil
	}
}

// say prints what the run waits for.
func (w *storageWait) say() {
	w.cfg.UI.Warn("paused, nothing can be saved: %v", w.cause)
	if w.clears() {
		w.cfg.UI.Say("%s: the run goes on by itself then", w.class.Hint())
	} else {
		w.cfg.UI.Say("%s", w.class.Hint())
	}
}

// next returns when the next retry is due. For a failing device that is when a person says so.
func (w *storageWait) next(ctx context.Context, tick, timeout <-chan time.Time) error {
	for {
		w.cfg.UI.Status(Status{Task: "paused: " + w.class.String(), Since: w.since, Progress: w.sess.State().Progress()})
		if !w.clears() && w.cfg.ByTerminal {
			key, err := w.cfg.UI.Choose("Try again?", []Choice{{'y', "yes"}, {'q', "stop"}})
			if err != nil || key == 'q' {
				return w.storageExit(w.cause)
			}
			return nil
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout:
			return w.storageExit(w.cause)
		}
		if w.clears() {
			return nil
		}
	}
}

// storageExit ends a run whose State cannot be saved. It sets the exit reason in the State,
// because closing the session tries once more to save it.
func (r *runner) storageExit(cause error) error {
	if err := r.change(session.TriggerPaused, func(e *session.Edit) error {
		h := e.Header()
		h.Status, h.ExitReason = session.StatusPaused, session.ExitStorageError
		return nil
	}); err != nil {
		return errors.Join(cause, err)
	}
	return &Exit{ExitStorage, fmt.Sprintf("stopped on a storage error, the newest state is not on the disk: %v; %s", cause, r.resumeHint())}
}

// pause pauses the session, durably, and returns exit.
func (r *runner) pause(t session.Trigger, why session.ExitReason, exit *Exit) error {
	if err := r.pauseOnly(t, why); err != nil {
		return err
	}
	return exit
}

func (r *runner) pauseOnly(t session.Trigger, why session.ExitReason) error {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	err := r.sess.Pause(ctx, t, why)
	if r.ignorePaused(err) == nil && err != nil {
		err = r.unpause(ctx) // the State was accepted, and a second try may make it durable
	}
	if err == nil {
		return nil
	}
	return &Exit{ExitStorage, fmt.Sprintf("the end of the run could not be saved: %v; %s", err, r.resumeHint())}
}

// interrupted ends a run that a person interrupted, and saves that.
func (r *runner) interrupted() error {
	exit := &Exit{ExitInterrupted, "interrupted: " + r.resumeHint()}
	if err := r.clearActive(session.TriggerPaused); err != nil {
		return err
	}
	if err := r.pauseOnly(session.TriggerPaused, session.ExitInterrupted); err != nil {
		r.cfg.UI.Warn("%v", err)
	}
	return exit
}

// clearActive clears the active task and makes tasks in progress pending.
func (r *runner) clearActive(t session.Trigger) error {
	st := r.sess.State()
	if st.ActiveTask() == "" {
		return nil
	}
	return r.change(t, func(e *session.Edit) error {
		e.Header().ActiveTask = ""
		for task := range st.All() {
			if len(task.Children) == 0 && task.State == session.TaskInProgress {
				tasks.Set(e, task.ID, func(t *session.Task) { t.State = session.TaskPending })
			}
		}
		return nil
	})
}
