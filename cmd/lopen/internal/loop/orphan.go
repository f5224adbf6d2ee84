package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/process"
)

// EndOrphans makes sure that no command of an earlier run works at the same time as this run. It
// waits a moment for a command of any session of the module that outlived its loop, and then
// ends it as the loop would: its process group, and what it started outside of that. The caller
// holds the module. If the session of the command is held, or the command cannot be ended, the
// error is an [*Exit] with code 11; with beside what cannot be ended is only named.
func EndOrphans(ctx context.Context, store *lifecycle.Store, module string, beside bool, ui UI) error {
	ids, err := sessionsOf(store, module)
	for _, id := range ids {
		err := endOrphan(ctx, store, id, ui)
		var left *stillWorks
		if errors.As(err, &left) {
			if err = nil; !beside {
				return left.exit(module)
			}
			ui.Warn("%s; this run works at the same time (--beside)", left.reason)
		}
		if err != nil {
			return err
		}
	}
	return err
}

// A stillWorks is the error for what is left of a command and cannot be ended.
type stillWorks struct{ reason string }

func (e *stillWorks) Error() string { return e.reason }

func (e *stillWorks) exit(module string) *Exit {
	return &Exit{ExitBusy, fmt.Sprintf("%s\n  to work at the same time: lopen run %s --beside", e.reason, module)}
}

// sessionsOf lists the sessions of a module, including quarantined ones.
func sessionsOf(store *lifecycle.Store, module string) (ids []session.ID, err error) {
	infos, err := store.List()
	if err != nil {
		return nil, err
	}
	quarantined, err := store.Quarantined()
	for _, info := range append(infos, quarantined...) {
		if info.ID.Module == module {
			ids = append(ids, info.ID)
		}
	}
	return ids, err
}

// NoOrphans is EndOrphans for a caller that does not hold the module and must not end a command:
// if one works, the error is an [*Exit] with code 11, and with beside the UI names it.
func NoOrphans(store *lifecycle.Store, module string, beside bool, ui UI) error {
	ids, err := sessionsOf(store, module)
	if err != nil {
		return err
	}
	for _, id := range ids {
		o, err := store.Abandoned(id)
		if err != nil {
			return err
		}
		switch {
		case o == nil || !o.Alive:
		case beside:
			ui.Warn("a command of an earlier run still works (%s); this run works at the same time (--beside)", o)
		default:
			return &Exit{ExitBusy, fmt.Sprintf("a command of an earlier run still works (%s): wait for it, or: %s", o, repair.HowToEnd(o, id))}
		}
	}
	return nil
}

func endOrphan(ctx context.Context, store *lifecycle.Store, id session.ID, ui UI) (err error) {
	o, err := store.Orphan(id)
	if err != nil || o == nil {
		return err
	}
	if err := refuseHeld(store, id, o); err != nil {
		return err
	}
	log := store.Logger(id).With().Int("process_group", o.PGID).Str("command", o.Command).Logger()
	if !o.Alive {
		log.Warn().Msg("orphan left alone: it is no command of a run any more")
		ui.Warn("%s, still runs and is left alone; %s", o, repair.HowToEnd(o, id))
		return nil
	}
	log.Warn().Msg("orphan found")
	begun := time.Now()
	defer func() {
		if err == nil {
			log.Info().Dur("duration_ms", time.Since(begun)).Msg("orphan ended")
		}
	}()
	then := "before it is ended"
	if !o.CanEnd() {
		then = "for its end; " + o.ByHand()
	}
	ui.Warn("a command of an earlier run still works (%s): waiting %s %s", o, Waits.Orphan, then)
	if o, err = outlast(ctx, store, id, o); err != nil || o == nil {
		return err
	}
	if err := refuseHeld(store, id, o); err != nil {
		return err
	}
	what := o.String()
	if err := o.End(ctx, defaultGrace); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return &stillWorks{fmt.Sprintf("a command of an earlier run still works and could not be ended (%s): %v", what, err)}
	}
	if o, err = store.Orphan(id); err != nil {
		return err
	}
	if o != nil && o.Alive { // what is not known to be the command's, or was started meanwhile
		return &stillWorks{fmt.Sprintf("a part of a command of an earlier run may still work (%s); %s", o, o.ByHand())}
	}
	ui.Say("ended it: its task runs again, unless its check says that it is done")
	return nil
}

// outlast waits a moment for an orphan to end by itself. It returns nil if it has ended, else the
// orphan.
func outlast(ctx context.Context, store *lifecycle.Store, id session.ID, o *process.Orphan) (*process.Orphan, error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	timeout := time.NewTimer(Waits.Orphan)
	defer timeout.Stop()
	for {
		select {
		case <-tick.C:
			var err error
			if o, err = store.Orphan(id); err != nil || o == nil || !o.Alive {
				return nil, err
			}
		case <-timeout.C:
			return o, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// refuseHeld returns an [*Exit] if the session of a command is held, because its holder started
// the command.
func refuseHeld(store *lifecycle.Store, id session.ID, o *process.Orphan) error {
	owner, err := store.Holder(id)
	if err == nil && owner != nil {
		err = &Exit{ExitBusy, fmt.Sprintf("session %s is held by %s, and its command works (%s): wait for it, or pause it with: lopen session pause %s", id, owner, o, id)}
	}
	return err
}

// endLeft ends what the commands of an attempt left behind that is not done, before its files are
// looked at and set back. It says what that was and what it cannot end.
func (r *runner) endLeft(ctx context.Context, then string) {
	if then == record.Done && ctx.Err() == nil {
		return
	}
	for _, hold := range r.held {
		ended, left, err := hold.EndLeft(context.WithoutCancel(ctx), defaultGrace)
		switch {
		case err != nil:
			r.log.Warn().Err(err).Str("task", r.at.unit).Str("processes", ended).Msg("processes of an attempt not ended")
			r.cfg.UI.Warn("what the attempt left behind could not be ended: %v", err)
		case ended != "":
			r.log.Info().Str("task", r.at.unit).Str("processes", ended).Msg("processes of an attempt ended")
			r.cfg.UI.Say("ended what the attempt left behind: %s", ended)
		}
		if left != "" {
			r.log.Warn().Str("task", r.at.unit).Str("processes", left).Msg("processes left alone: they may be of an attempt")
			r.cfg.UI.Warn("what the attempt may have left behind still works and is left alone: %s", left)
		}
	}
	r.release()
}

// keepHeld keeps the lock of a command until its attempt is judged. If it did not end by itself, what it
// started has ended with it, and the lock is released. nil is no lock.
func (r *runner) keepHeld(hold *process.Lock, byItself bool) {
	switch {
	case hold == nil:
	case byItself:
		r.held = append(r.held, hold)
	default:
		_ = hold.Release()
	}
}

// release gives back the locks of an attempt's commands: what works from then on is left behind.
func (r *runner) release() {
	for _, hold := range r.held {
		_ = hold.Release()
	}
	r.held = nil
}

// defaultGrace is the time from SIGTERM to SIGKILL.
const defaultGrace = 10 * time.Second
