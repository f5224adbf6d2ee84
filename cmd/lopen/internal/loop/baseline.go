package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
)

// baseline runs the check once before the first task and says whether the tree
// was green to begin with: what an agent is blamed for must not have been there
// before it. It decides nothing. Where Config.Assess remembers that the check
// passed on the tree as it is, it is not run.
func (r *Runner) baseline(ctx context.Context) error {
	if r.cfg.Check == "" || r.cfg.Assess == nil || r.assessed {
		return nil
	}
	r.assessed = true
	red := errors.New("the check fails")
	failure := ""
	at, hit, err := r.cfg.Assess(ctx, func(ctx context.Context) error {
		r.status("the check, before the first task", 0)
		deadline := time.Time{}
		if r.cfg.Timeout > 0 {
			deadline = time.Now().Add(r.cfg.Timeout)
		}
		res, err := r.supervise(ctx, child.Command{Argv: []string{"sh", "-c", r.cfg.Check}, Dir: r.cfg.Project, Env: r.cfg.Environ}, "check", deadline)
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
	switch {
	case ctx.Err() != nil:
		return r.interrupted()
	case errors.Is(err, red):
		r.cfg.UI.Warn("before the first task, the check %q fails: %s", r.cfg.Check, failure)
	case err != nil:
		return fmt.Errorf("check before the first task: %w", err)
	case hit:
		r.cfg.UI.Say("before the first task, the check %q passes: nothing changed since %s", r.cfg.Check, at.Local().Format(time.DateTime))
	default:
		r.cfg.UI.Say("before the first task, the check %q passes", r.cfg.Check)
	}
	return nil
}
