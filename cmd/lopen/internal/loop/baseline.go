package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A green is the last unit whose check passed, with the number of that attempt.
type green struct {
	unit  string // "" if no check has passed
	n     int
	begun bool // the check passed before the first task, which unit is
}

// baseline runs the check once before the first task and reports whether it passes, so that an
// agent is not blamed for failures that were there before it. The check of most new projects
// fails, so its output is not shown, and it decides nothing unless RequireGreen is set. The
// check is not run if Config.Assess knows that it passed for this task on the same tree. The
// result is saved, so that after a kill the next run knows whether the check failed when the
// task began.
func (r *runner) baseline(ctx context.Context, unit string, leaves []string) error {
	if r.cfg.Check == "" {
		r.warnOnce("no-check", "no --check: exit 0 of the command counts as done")
		return nil
	}
	if r.cfg.Assess == nil || r.assessed {
		return nil
	}
	r.assessed = true
	red := errors.New("the check fails")
	n := attemptNumber(r.sess.State(), leaves)
	checked, failure := &session.CheckResult{Command: r.check, Task: unit}, ""
	at, hit, err := r.cfg.Assess(ctx, unit, func(ctx context.Context) (err error) {
		r.status("the check, before the first task", 0)
		if checked, failure, err = r.checkAlone(ctx, unit, leaves, n, io.Discard, io.Discard); err == nil && failure != "" {
			err = red
		}
		return err
	})
	r.log.Info().Str("task", unit).Bool("passes", err == nil).Bool("remembered", hit).Str("failure", failure).Msg("check before the first task")
	switch {
	case ctx.Err() != nil:
		return r.interrupted()
	case err != nil && !errors.Is(err, red):
		return fmt.Errorf("check before the first task: %w", err)
	case hit:
		checked.At = at
	}
	if err := r.checked(checked); err != nil {
		return err
	}
	if err != nil {
		if r.cfg.RequireGreen {
			return r.pause(session.TriggerPaused, session.ExitFailed, &Exit{ExitUser,
				fmt.Sprintf("before the first task, the check %q fails: %s; --require-green stops here: mend it, then %s", r.check, failure, r.resumeHint())})
		}
		r.cfg.UI.Say("before the first task, the check %q fails: %s; this decides nothing", r.check, failure)
		return nil
	}
	since := ""
	if hit {
		since = ": nothing changed since " + at.Local().Format(time.DateTime)
	}
	r.cfg.UI.Say("before the first task, the check %q passes%s", r.check, since)
	if r.green.unit == "" {
		r.green = green{unit, n, true}
	}
	return nil
}

// checkAlone runs the check without a start of the command. The check gets the variables of the
// n-th attempt at a unit and their files, because it may depend on them. failure is "" if it
// passes. The result is nil if the context ended it.
func (r *runner) checkAlone(ctx context.Context, unit string, leaves []string, n int, stdout, stderr io.Writer) (checked *session.CheckResult, failure string, err error) {
	text, _, err := r.compose(r.sess.State(), unit, leaves, n)
	if err != nil {
		return nil, "", err
	}
	f, err := r.writePrompt(text)
	if err != nil {
		return nil, "", err
	}
	_ = f.Close() // the check opens it by its name
	if err := r.listChanged(r.since); err != nil {
		return nil, "", err
	}
	defer r.release()
	checked, failure, _, err = r.runCheck(ctx, unit, r.env(unit, n), r.deadline(), stdout, stderr)
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return nil, "", err
	}
	return checked, failure, nil
}

// checked saves the result of the last check; nil if it does not apply to the files any more.
func (r *runner) checked(c *session.CheckResult) error {
	return r.change(session.TriggerStepCompleted, func(e *session.Edit) error {
		e.Header().Check = c
		return nil
	})
}
