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

// endTimeout bounds what an interrupted run may still wait for the disk.
const endTimeout = 10 * time.Second

// change edits the State and saves it. A paused storage is no error here: the
// State stays in memory, and the next sync waits.
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

// sync waits until all that was saved is durable, through storage errors.
func (r *runner) sync(ctx context.Context) error {
	err := r.sess.Sync(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return r.waitStorage(ctx, err, r.unpause)
}

// unpause is [lifecycle.Session.Unpause], and says when the session was made again.
func (r *runner) unpause(ctx context.Context) error {
	was := r.sess.Incarnation()
	err := r.sess.Unpause(ctx)
	if now := r.sess.Incarnation(); now != was {
		r.cfg.UI.Warn("session %s was made again from memory, as incarnation %s: its log until now, the output of its attempts and its checkpoints are lost", r.sess.State().ID(), now)
	}
	return err
}

// unpauseIfPaused unpauses the session where its storage is paused.
func (r *runner) unpauseIfPaused(ctx context.Context) error {
	var paused *lifecycle.PausedError
	if errors.As(r.sess.Paused(), &paused) {
		return r.unpause(ctx)
	}
	return nil
}

// waits says whether a run is held by a storage error of a class until its cause is gone.
func waits(c lifecycle.Class) bool {
	switch c {
	case lifecycle.ClassNoSpace, lifecycle.ClassDenied, lifecycle.ClassRemoved, lifecycle.ClassDevice:
		return true
	}
	return false
}

// holdsFiles is waits where the project's files are read or written: that one of them is
// denied is the project's matter and ends nothing, and a lock that was lost is taken again.
func holdsFiles(c lifecycle.Class) bool {
	return c == lifecycle.ClassFenced || waits(c) && c != lifecycle.ClassDenied
}

// waitStorage holds the run while the storage does not work, and does again what
// failed: by itself for a full disk and a denied write, for a failing device when the
// person says so. It returns nil when retry succeeded and an Exit with code 14 when
// PauseTimeout is over; any other error is returned as it is.
func (r *runner) waitStorage(ctx context.Context, cause error, retry func(context.Context) error) (err error) {
	if ctx.Err() != nil {
		return cause
	}
	select {
	case raised := <-r.sess.Critical(): // reported here and not again
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
	if !errors.As(cause, &paused) { // the session has logged its pause itself
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

// clears says that the cause may go away without the person who runs this.
func (w *storageWait) clears() bool { return w.class != lifecycle.ClassDevice }

func (w *storageWait) run(ctx context.Context, retry func(context.Context) error) error {
	w.cfg.UI.Warn("paused, nothing can be saved: %v", w.cause)
	w.emit(event{Event: eventPaused, Text: w.cause.Error()})
	if w.clears() {
		w.cfg.UI.Say("%s: the run goes on by itself then", w.class.Hint())
	} else {
		w.cfg.UI.Say("%s", w.class.Hint())
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
		w.cfg.UI.Say("saved again after %s: going on", round(time.Since(w.since)))
		return nil
	}
}

// next returns when there is a reason to try again. A failing device is tried only after a
// person has looked after it.
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

// storageExit ends a run whose State cannot be saved. Why it ended is noted in
// the State all the same: closing the session tries a last time.
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

// pause saves that the run ends here and returns exit.
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
		err = r.unpause(ctx) // the State is accepted; it may be durable with a second try
	}
	if err == nil {
		return nil
	}
	return &Exit{ExitStorage, fmt.Sprintf("the end of the run could not be saved: %v; %s", err, r.resumeHint())}
}

// interrupted saves that a person ended the run.
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

// clearActive takes whatever was in progress out of it.
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
