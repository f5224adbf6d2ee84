package loop

import (
	"context"
	"fmt"
	"time"
)

// orphanGrace is how long a command that outlived its loop may take to end by
// itself before it is ended.
const orphanGrace = 5 * time.Second

// orphan makes sure that nothing works beside this run: a command of an earlier
// run that still lives is given a moment and then ended with its whole group.
func (r *Runner) orphan(ctx context.Context) error {
	o, err := r.sess.FindOrphan()
	if err != nil {
		return fmt.Errorf("look for a command that outlived its run: %w", err)
	}
	if o == nil {
		return nil
	}
	if !o.Alive {
		r.cfg.UI.Warn("a process left behind by an earlier command still runs and is left alone (%s)", o)
		return nil
	}
	r.cfg.UI.Warn("a command of an earlier run still works (%s): waiting %s before it is ended", o, orphanGrace)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	timeout := time.NewTimer(orphanGrace)
	defer timeout.Stop()
	for waiting := true; waiting; {
		select {
		case <-tick.C:
			if o, err = r.sess.FindOrphan(); err != nil || o == nil || !o.Alive {
				return err
			}
		case <-timeout.C:
			waiting = false
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := o.End(ctx, r.cfg.Grace); err != nil {
		return &Exit{ExitBusy, fmt.Sprintf("a command of an earlier run still works and could not be ended (%s): %v", o, err)}
	}
	r.cfg.UI.Say("ended it: its task runs again")
	return nil
}
