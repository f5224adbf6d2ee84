package loop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
)

// baseline runs the check once before the first task and says whether the tree
// was green to begin with: what an agent is blamed for must not have been there
// before it. The check gets the variables of the check after that task, and the files
// that they name, because it may judge by them. It decides nothing, and most new
// projects begin red, so its output is not shown. Where Config.Assess remembers that
// the check passed for this task on the tree as it is, it is not run.
func (r *Runner) baseline(ctx context.Context, unit string, leaves []string) error {
	if r.cfg.Check == "" || r.cfg.Assess == nil || r.assessed {
		return nil
	}
	r.assessed = true
	red := errors.New("the check fails")
	failure := ""
	at, hit, err := r.cfg.Assess(ctx, unit, func(ctx context.Context) error {
		r.status("the check, before the first task", 0)
		n := attemptNumber(r.sess.State(), leaves)
		prompt, _, err := r.compose(r.sess.State(), unit, leaves, n)
		if err != nil {
			return err
		}
		f, err := r.writePrompt(prompt)
		if err != nil {
			return err
		}
		_ = f.Close() // the check reads it by its name, if at all
		if err := r.listChanged(r.since); err != nil {
			return err
		}
		deadline := time.Time{}
		if r.cfg.Timeout > 0 {
			deadline = time.Now().Add(r.cfg.Timeout)
		}
		c := child.Command{Argv: []string{"sh", "-c", r.cfg.Check}, Dir: r.cfg.Project, Env: r.env(unit, n), Stdout: io.Discard, Stderr: io.Discard}
		res, err := r.supervise(ctx, c, "check", deadline)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if res.Cause != child.CauseNone || res.Exit != 0 {
			failure = describe(res, r.cfg)
			return red
		}
		return nil
	})
	r.log.Info().Str("task", unit).Bool("passes", err == nil).Bool("remembered", hit).Str("failure", failure).Msg("check before the first task")
	switch {
	case ctx.Err() != nil:
		return r.interrupted()
	case errors.Is(err, red):
		r.cfg.UI.Say("before the first task, the check %q fails: %s; this decides nothing", r.check, failure)
	case err != nil:
		return fmt.Errorf("check before the first task: %w", err)
	case hit:
		r.cfg.UI.Say("before the first task, the check %q passes: nothing changed since %s", r.check, at.Local().Format(time.DateTime))
	default:
		r.cfg.UI.Say("before the first task, the check %q passes", r.check)
	}
	return nil
}
