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

// lastWords bounds what an interrupted run may still wait for the disk.
const lastWords = 10 * time.Second

// change edits the State and saves it. A paused storage is no error here: the
// State is kept, and the next sync waits.
func (r *Runner) change(t session.Trigger, fn func(*session.Edit) error) error {
	return r.tolerate(r.sess.Change(t, fn))
}

func (r *Runner) tolerate(err error) error {
	var paused *lifecycle.PausedError
	if errors.As(err, &paused) {
		return nil
	}
	return err
}

// sync waits until all that was saved is durable, through storage errors.
func (r *Runner) sync(ctx context.Context) error {
	err := r.sess.Sync(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return r.waitStorage(ctx, err, r.unpause)
}

// unpause is [lifecycle.Session.Unpause], and says when the session was made again.
func (r *Runner) unpause(ctx context.Context) error {
	was := r.sess.Incarnation()
	err := r.sess.Unpause(ctx)
	if now := r.sess.Incarnation(); now != was {
		r.cfg.UI.Warn("session %s was made again from memory, as incarnation %s: its log until now, the output of its attempts and its checkpoints are lost", r.sess.State().ID(), now)
	}
	return err
}

// unpaused unpauses the session where its storage is paused.
func (r *Runner) unpaused(ctx context.Context) error {
	var paused *lifecycle.PausedError
	if errors.As(r.sess.Paused(), &paused) {
		return r.unpause(ctx)
	}
	return nil
}

// waitStorage holds the run while the storage does not work, and does again what
// failed: by itself for a full disk and a denied write, for a failing device when the
// person says so. It returns nil when retry succeeded and an Exit with code 14 when
// PauseTimeout is over; what is no error of the storage comes back as it is.
func (r *Runner) waitStorage(ctx context.Context, cause error, retry func(context.Context) error) (err error) {
	if ctx.Err() != nil {
		return cause
	}
	select {
	case raised := <-r.sess.Critical(): // said here and not again
		cause = raised
	default:
	}
	class := lifecycle.ClassOf(cause)
	if class == lifecycle.ClassFenced { // taken again where nobody else went on
		if err := retry(ctx); err != nil {
			return err
		}
		r.cfg.UI.Warn("a lock was lost and is taken again, nobody had gone on: %v", cause)
		return nil
	}
	byItself := class == lifecycle.ClassNoSpace || class == lifecycle.ClassDenied || class == lifecycle.ClassRemoved
	if !byItself && class != lifecycle.ClassDevice {
		return cause
	}
	since := time.Now()
	var paused *lifecycle.PausedError
	if !errors.As(cause, &paused) { // the session has said so itself
		lifecycle.LogCause(r.log.Error(), cause).Msg("paused on a storage error")
		defer func() {
			if err == nil {
				r.log.Info().Dur("duration_ms", time.Since(since)).Msg("goes on after a storage error")
			}
		}()
	}
	r.cfg.UI.Warn("paused, nothing can be saved: %v", cause)
	r.emit(Event{Event: EventPaused, Text: cause.Error()})
	if byItself {
		r.cfg.UI.Say("%s: the run goes on by itself then", class.Hint())
	} else {
		r.cfg.UI.Say("%s", class.Hint())
	}
	var timeout <-chan time.Time
	if r.cfg.PauseTimeout > 0 {
		t := time.NewTimer(r.cfg.PauseTimeout)
		defer t.Stop()
		timeout = t.C
	}
	tick := time.NewTicker(Waits.Storage)
	defer tick.Stop()
	for {
		r.cfg.UI.Status(Status{Task: "paused: " + class.String(), Since: since, Progress: r.sess.State().Progress()})
		if !byItself && r.cfg.ByTerminal {
			key, err := r.cfg.UI.Choose("Try again?", []Choice{{'y', "yes"}, {'q', "stop"}})
			if err != nil || key == 'q' {
				return r.storageExit(cause)
			}
		} else {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return ctx.Err()
			case <-timeout:
				return r.storageExit(cause)
			}
		}
		if !byItself && !r.cfg.ByTerminal {
			continue // nobody said that the device was looked after
		}
		err := retry(ctx)
		switch lifecycle.ClassOf(err) {
		case lifecycle.ClassNoSpace, lifecycle.ClassDenied, lifecycle.ClassRemoved, lifecycle.ClassDevice:
			continue
		}
		if err != nil {
			return err
		}
		r.cfg.UI.Say("saved again after %s: going on", round(time.Since(since)))
		return nil
	}
}

// storageExit ends a run whose State cannot be saved. Why it ended is kept in
// the State all the same: closing the session tries a last time.
func (r *Runner) storageExit(cause error) error {
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
func (r *Runner) pause(t session.Trigger, why session.ExitReason, exit *Exit) error {
	if err := r.pauseOnly(t, why); err != nil {
		return err
	}
	return exit
}

func (r *Runner) pauseOnly(t session.Trigger, why session.ExitReason) error {
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	err := r.sess.Pause(ctx, t, why)
	if r.tolerate(err) == nil && err != nil {
		err = r.unpause(ctx) // the State is accepted; it may be durable with a second try
	}
	if err == nil {
		return nil
	}
	return &Exit{ExitStorage, fmt.Sprintf("the end of the run could not be saved: %v; %s", err, r.resumeHint())}
}

// interrupted saves that a person ended the run.
func (r *Runner) interrupted() error {
	exit := &Exit{ExitInterrupted, "interrupted: " + r.resumeHint()}
	if err := r.rest(session.TriggerPaused); err != nil {
		return err
	}
	if err := r.pauseOnly(session.TriggerPaused, session.ExitInterrupted); err != nil {
		r.cfg.UI.Warn("%v", err)
	}
	return exit
}

// rest takes whatever was in progress out of it.
func (r *Runner) rest(t session.Trigger) error {
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
