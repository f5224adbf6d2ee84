package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/writer/plain"
)

// setBack sets back the files that a failed unit changed to what they were before its first
// attempt, so that the failure does not affect the other tasks. Then it runs again the check
// that passed last. It is called in an unattended run, after the unit is marked as failed. The
// error is an [*Exit] if the check fails.
func (r *runner) setBack(ctx context.Context, unit string) error {
	why := "--keep-failed"
	if !r.cfg.KeepFailed {
		var err error
		if why, err = r.setBackFiles(ctx, unit); ctx.Err() != nil {
			return r.interrupted()
		} else if err != nil {
			return err
		}
	}
	if why != "" {
		r.log.Info().Str("task", unit).Str("reason", why).Msg("task not set back")
		r.cfg.UI.Warn("the files stay as %s left them: %s", r.name(unit), why)
		if err := r.ignorePaused(r.sess.NotSetBack(unit, why)); err != nil {
			return err
		}
	}
	if r.cfg.KeepFailed {
		return nil
	}
	return r.checkAgain(ctx, unit)
}

// setBackFiles is setBack without the check. why is why the files stay as they are, or "" if
// they were set back.
func (r *runner) setBackFiles(ctx context.Context, unit string) (why string, err error) {
	switch {
	case !r.cfg.Checkpoint:
		return "checkpoints are off", nil
	case slices.Contains(r.noCheckpoint, unit):
		return "a checkpoint before or after it could not be made", nil
	}
	var done rewind.Result
	try := func(ctx context.Context) (err error) {
		if err := r.unpauseIfPaused(ctx); err != nil {
			return err
		}
		done, why, err = r.sess.SetBack(ctx, unit)
		return err
	}
	if err = try(ctx); errors.Is(err, checkpoint.ErrUnchanged) && ctx.Err() == nil {
		if !holdsFiles(lifecycle.ClassOf(err)) {
			return err.Error(), nil
		}
		err = r.waitStorage(ctx, err, try)
	}
	if err != nil || why != "" {
		return why, err
	}
	return r.leaves(ctx, unit, done), nil
}

// leaves says what a set back did and left. It returns why the files stay as they are, if nothing was set back.
func (r *runner) leaves(ctx context.Context, unit string, done rewind.Result) (why string) {
	at, fixed := mounted(done.Retained), r.fixed(done.Retained)
	refused, used := r.refused(done.Retained), r.inUse(done.Retained)
	if len(at) > 0 {
		r.cfg.UI.Warn("kept, with what is on it, because %s: %s", checkpoint.Mounted, list(at))
	}
	switch {
	case done.Before != nil:
		r.wasSetBack(ctx, unit, done, refused, used)
		if len(fixed) > 0 {
			r.log.Warn().Str("task", unit).Strs("paths", fixed).Msg("files not set back: they are not stored, or are not to be changed")
			r.cfg.UI.Warn("kept as %s left them: %s", r.name(unit), list(fixed))
		}
	case len(refused) > 0:
		why = string(checkpoint.Denied) + ": " + list(refused)
	case len(used) > 0:
		why = list(used)
	case len(fixed) > 0:
		why = list(fixed)
	case len(at) > 0:
		why = string(checkpoint.Mounted) + ": " + list(at)
	}
	return why
}

// wasSetBack forgets what a failed unit changed, and says what was set back. refused are the paths
// that may not be changed, used those that somebody has open, each with the reason.
func (r *runner) wasSetBack(ctx context.Context, unit string, done rewind.Result, refused, used []string) {
	var paths, kept []string
	for _, c := range done.Changes {
		paths = append(paths, c.Path)
		r.since = append(r.since, files.Change{Path: c.Path})
		delete(r.commits.own, c.Path)
	}
	delete(r.commits.touched, unit)
	r.unstage(ctx, paths)
	for _, k := range done.Retained {
		switch {
		case k.Why == checkpoint.Denied, k.Why == checkpoint.Mounted, k.Why == checkpoint.InUse, k.Why == checkpoint.Together, isFixed(k):
		default:
			kept = append(kept, k.Path)
		}
	}
	id := r.sess.State().ID()
	r.cfg.UI.Warn("set back to before %s: %s", r.name(unit), list(paths))
	if len(kept) > 0 {
		r.cfg.UI.Say("kept, because its attempts alone did not change it: %s", list(kept))
	}
	if len(refused) > 0 {
		r.log.Warn().Str("task", unit).Strs("paths", refused).Msg("files not set back: the system does not allow it")
		r.cfg.UI.Warn("kept as %s left them, because %s: %s", r.name(unit), checkpoint.Denied, list(refused))
	}
	if len(used) > 0 {
		r.log.Warn().Str("task", unit).Strs("paths", used).Msg("files not set back: somebody has them open for writing")
		r.cfg.UI.Warn("kept %s", list(used))
	}
	r.cfg.UI.Say("to see what it left: %s; to bring that back: %s", ShowFailed(id, unit, done.To.ID.Short()), RestoreFailed(id, unit))
}

// mounted returns the paths at which something was mounted or unmounted since.
func mounted(kept []checkpoint.Retained) (paths []string) {
	for _, k := range kept {
		if k.Why == checkpoint.Mounted {
			paths = append(paths, k.Path)
		}
	}
	return paths
}

// isFixed reports whether a path stays for what it is, whoever changed it.
func isFixed(k checkpoint.Retained) bool {
	switch k.Why {
	case checkpoint.Ignored, checkpoint.Uncovered, checkpoint.Nested, checkpoint.Unknown, checkpoint.TooLarge,
		checkpoint.Unsettled, checkpoint.Blocked, checkpoint.Unstored, checkpoint.Fixed, checkpoint.Lost, checkpoint.Older:
		return true
	}
	return false
}

// fixed returns the paths that stay for what they are, with the reasons.
func (r *runner) fixed(kept []checkpoint.Retained) (paths []string) {
	for _, k := range kept {
		if isFixed(k) {
			path := k.Path + " (" + string(k.Why)
			if k.Cause != "" {
				path += ": " + r.quote(k.Cause)
			}
			paths = append(paths, path+")")
		}
	}
	return paths
}

// refused returns the paths that may not be changed, with the reasons.
func (r *runner) refused(kept []checkpoint.Retained) (paths []string) {
	for _, k := range kept {
		if k.Why == checkpoint.Denied {
			path := k.Path
			if k.Cause != "" {
				path += " (" + r.quote(k.Cause) + ")"
			}
			paths = append(paths, path)
		}
	}
	return paths
}

// inUse returns the paths that somebody has open for writing and what stays with them, each with
// who that is.
func (r *runner) inUse(kept []checkpoint.Retained) (paths []string) {
	for _, k := range kept {
		if k.Why == checkpoint.InUse || k.Why == checkpoint.Together {
			paths = append(paths, k.Path+": "+r.quote(k.Reason()))
		}
	}
	return paths
}

// unstage takes files that were set back out of the index, where the agent staged what it made
// of them: they would differ from HEAD, and the person's next commit would have that. What the
// person has at work stays staged.
func (r *runner) unstage(ctx context.Context, paths []string) {
	if !r.cfg.Commit {
		return
	}
	paths = slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return inside(path) || r.commits.held[r.pathKey(path)] })
	if len(paths) == 0 {
		return
	}
	if err := r.cfg.Repository.Unstage(ctx, paths); err != nil && ctx.Err() == nil {
		r.cfg.UI.Warn("what is staged of files that were set back stays so: %s; then: git reset -q -- %s", r.quote(err.Error()), filesOf(paths))
	}
}

// ShowFailed returns the command that shows what all attempts at a failed task left. to is the
// checkpoint to which its files were set back, by its ID or a prefix of that; before:TASK would
// be the checkpoint before the last attempt only.
func ShowFailed(id session.ID, task, to string) string {
	return fmt.Sprintf("lopen checkpoint diff %s --session %s", plain.Quote(to, "failed:"+task), id)
}

// RestoreFailed returns the command that brings back what a failed task left, without changes of
// others since then.
func RestoreFailed(id session.ID, task string) string {
	return fmt.Sprintf("lopen checkpoint restore %s --session %s", plain.Quote("failed:"+task), id)
}

// checkAgain runs the check again for the unit for which it passed last, after a unit failed. If
// the check fails now, the remaining tasks are not the cause, and the run stops.
func (r *runner) checkAgain(ctx context.Context, failed string) error {
	g := r.green
	if _, ok := r.sess.State().Task(g.unit); r.cfg.Check == "" || !ok {
		return r.checked(nil) // the last result does not apply to the files any more
	}
	r.status("the check, after "+r.name(failed)+" failed", 0)
	stdout, stderr := r.cfg.UI.Output()
	checked, failure, err := r.checkAlone(ctx, g.unit, tasks.Leaves(r.sess.State(), g.unit), g.n, stdout, stderr)
	if ctx.Err() != nil {
		return r.interrupted()
	}
	if err != nil {
		return fmt.Errorf("check after a task failed: %w", err)
	}
	r.log.Info().Str("task", g.unit).Str("failed", failed).Str("failure", failure).Msg("check after a task failed")
	if err := r.checked(checked); err != nil || failure == "" {
		return err
	}
	what, see := "passed for "+r.name(g.unit), "lopen checkpoint diff "+plain.Quote("after:"+g.unit)
	if g.begun {
		what, see = "passed before the first task", "lopen checkpoint diff "+plain.Quote("before:"+g.unit)
	}
	text := fmt.Sprintf("the check %q %s and fails after %s failed: %s", r.check, what, r.name(failed), failure)
	r.emit(event{Event: eventNeeded, Task: failed, Name: r.name(failed), Text: text})
	if r.cfg.Checkpoint {
		text += fmt.Sprintf("; what differs: %s --session %s", see, r.sess.State().ID())
	}
	return r.pause(session.TriggerPaused, session.ExitFailed, &Exit{ExitUser, fmt.Sprintf("%s; mend it, then %s", text, r.resumeHint())})
}
