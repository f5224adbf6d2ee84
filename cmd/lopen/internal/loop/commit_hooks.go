package loop

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/repo"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// afterHooks runs the check again if the hooks of a commit changed files: what is committed is
// not what it passed for.
func (r *runner) afterHooks(ctx context.Context, unit string, leaves []string, made repo.Made) error {
	c := &r.commits
	was := maps.Clone(c.held)
	differing, err := r.cfg.Repository.Differing(ctx)
	if err != nil {
		return nil //nolint:nilerr // the next look says what is wrong
	}
	var left []string
	for _, path := range differing {
		if !inside(path) && !was[r.pathKey(path)] && !c.own[path] {
			left = append(left, path)
		}
	}
	if len(left) == 0 && !made.Rewritten {
		return nil
	}
	changed, err := r.changedByHooks(ctx, unit)
	if err != nil {
		return err
	}
	if left = r.byHooks(unit, left, changed, made); len(left) == 0 && !made.Rewritten {
		return nil
	}
	if len(left) > 0 {
		r.cfg.UI.Warn("a hook changed files that are not in the commit: %s", list(left))
	}
	return r.checkAfterHooks(ctx, unit, leaves, "git show "+plain.Quote(shortHash(made.Hash)))
}

// byHooks returns which of the files that are left differing from HEAD after a commit the hooks
// changed, and names the others: a repository that the agent made, or what a reset of HEAD left.
func (r *runner) byHooks(unit string, left []string, changed map[string]bool, made repo.Made) (by []string) {
	var unseen []string
	for _, path := range left {
		if changed[path] {
			by = append(by, path)
		} else {
			unseen = append(unseen, path)
		}
	}
	if len(unseen) > 0 && made.Index == nil {
		r.cfg.UI.Warn("not committed with %s, because the task did not change it, or it is a repository of its own: %s", r.name(unit), list(unseen))
	}
	return by
}

// changedByHooks returns the files that changed since the end of a unit, which are as good as
// its own.
func (r *runner) changedByHooks(ctx context.Context, unit string) (map[string]bool, error) {
	changes, err := r.checkpoint(ctx, checkpoint.AfterTask, unit)
	changed := map[string]bool{}
	for _, f := range changes {
		changed[f.Path], r.commits.own[f.Path] = true, true
	}
	return changed, err
}

// hooksMended reports whether the hooks of a commit that failed changed files of the unit, as
// those do that format what they refuse: then the next try may pass.
func (r *runner) hooksMended(ctx context.Context, unit string, paths []string) bool {
	if ctx.Err() != nil || len(paths) == 0 {
		return false
	}
	changed, err := r.changedByHooks(ctx, unit)
	return err == nil && slices.ContainsFunc(paths, func(path string) bool { return changed[path] })
}

// checkAfterHooks runs the check for what hooks made of a unit's files. If it fails, the run
// ends. look is the command that shows what they made.
func (r *runner) checkAfterHooks(ctx context.Context, unit string, leaves []string, look string) error {
	if r.cfg.Check == "" {
		return nil
	}
	r.cfg.UI.Say("a hook changed files: the check runs again")
	stdout, stderr := r.cfg.UI.Output()
	checked, failure, err := r.checkAlone(ctx, unit, leaves, attemptNumber(r.sess.State(), leaves)-1, stdout, stderr)
	if ctx.Err() != nil {
		return r.interrupted()
	}
	if err != nil {
		return fmt.Errorf("check after a commit: %w", err)
	}
	if err := r.checked(checked); err != nil || failure == "" {
		return err
	}
	text := fmt.Sprintf("the check %q passed for %s, and fails after a hook of its commit changed files: %s", r.check, r.name(unit), failure)
	r.emit(event{Event: eventNeeded, Task: unit, Name: r.name(unit), Text: text})
	return r.pause(session.TriggerPaused, session.ExitFailed, &Exit{ExitUser, fmt.Sprintf("%s; look at it: %s; mend it, then %s", text, look, r.resumeHint())})
}
