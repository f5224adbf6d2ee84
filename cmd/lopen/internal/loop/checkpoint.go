package loop

import (
	"context"
	"fmt"
	"strings"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/plain"
)

// checkpoint makes a checkpoint, or only looks at the files if checkpoints are off, and returns
// the changes since the last time. On a full disk the run waits. If the store is busy for too
// long, only this checkpoint is left out. After any other error a warning is shown, and the
// run makes no more checkpoints.
func (r *runner) checkpoint(ctx context.Context, why checkpoint.Reason, unit string) (changes []files.Change, err error) {
	wanted := r.cfg.Checkpoint
	look := func(ctx context.Context) (err error) {
		if err := r.unpauseIfPaused(ctx); err != nil {
			return err
		}
		if wanted {
			_, changes, err = r.sess.Checkpoint(ctx, why, unit)
		} else {
			changes, err = r.sess.Look(ctx)
		}
		return err
	}
	for {
		err := look(ctx)
		if err == nil || ctx.Err() != nil {
			if over := r.sess.CheckpointsOver(); wanted && over > 0 {
				r.warnOnce("over", fmt.Sprintf("checkpoints take %d bytes more than checkpoint_bytes or a tenth of the free space allows, and all of them are needed: delete sessions or unpin checkpoints that are not, or set checkpoint_bytes", over))
			}
			return changes, ctx.Err()
		}
		if holdsFiles(lifecycle.ClassOf(err)) {
			err = r.waitStorage(ctx, err, look)
			return changes, err
		}
		if !wanted {
			r.filesUnknown = true
			r.warnOnce("files", fmt.Sprintf("which files change is not known: %v", err))
			return nil, nil
		}
		wanted = false
		r.noCheckpoint = append(r.noCheckpoint, unit)
		switch lifecycle.ClassOf(err) {
		case lifecycle.ClassBusy, lifecycle.ClassTransient:
			r.cfg.UI.Warn("no checkpoint %s %s: %v", why, unit, err)
		default:
			r.cfg.Checkpoint = false
			r.cfg.UI.Warn("no checkpoints in this run: %v", err)
		}
	}
}

// loadPast reads on a resume what earlier runs left. It warns of complete tasks whose files were
// changed since, but does not run them again. It records the changes of an attempt that a kill
// interrupted, so that they are not attributed to somebody else later.
func (r *runner) loadPast(ctx context.Context) (*lifecycle.Past, error) {
	past, err := r.sess.Past(ctx)
	if err != nil {
		r.cfg.UI.Warn("which files changed since is not known: %v", err)
	}
	r.since, r.killed = past.Files, past.Cut
	if a := past.Done; a != nil && a.Check.Command == r.check {
		r.green = green{unit: a.Task, n: a.Attempt}
	}
	r.loadFailures(past.Failed)
	r.lastStart = lastStartOf(past)
	switch {
	case past.Every > 0:
		r.cfg.UI.Warn("%s", everyChanged(past))
	case past.All:
		r.cfg.UI.Warn("every file that the tasks of this session changed is another one now: this may be another checkout")
	default:
		for _, c := range past.Changed {
			r.cfg.UI.Warn("changed since %s was done: %s; to run it again: lopen plan untick %s %s", c.Task, list(c.Paths), r.cfg.Module, plain.Quote(c.Task))
		}
	}
	return past, r.recordKilled(past.Cut)
}

// everyChanged is what is said where every file changed since the last run.
func everyChanged(past *lifecycle.Past) string {
	n := map[files.Kind]int{}
	for _, c := range past.Files {
		n[c.Kind]++
	}
	var how []string
	for _, x := range []struct {
		n    int
		what string
	}{{n[files.Modified], "have another content"}, {n[files.Mode], "have another mode"}, {n[files.Moved], "were moved"}, {n[files.Deleted], "are gone"}} {
		if x.n > 0 {
			how = append(how, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	return fmt.Sprintf("all %d files of the project changed since the last run (%s): this may be another checkout, or one with other line endings or modes", past.Every, strings.Join(how, ", "))
}

// loadFailures adds the failed attempts of earlier runs, for the prompts of this one.
func (r *runner) loadFailures(failed lifecycle.Failures) {
	for unit, attempts := range failed {
		for _, a := range attempts {
			r.noteFailure(unit, prompt.Failure{Attempt: a.Attempt, Failure: a.Failure, Output: a.Tail, Check: a.CheckTail})
		}
	}
}

// list returns a text with the first few, and the number of the others.
func list(all []string) string {
	const few = 5
	if len(all) > few {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:few], ", "), len(all)-few)
	}
	return strings.Join(all, ", ")
}

// before makes the checkpoint before a start of the command, and returns the changes since the
// last start. If somebody else may have made them, no session of the agent is continued.
func (r *runner) before(ctx context.Context, unit string) ([]files.Change, error) {
	changes, err := r.checkpoint(ctx, checkpoint.BeforeTask, unit)
	if err != nil {
		return nil, err
	}
	if err := r.holdChanged(ctx, changes); err != nil {
		return nil, err
	}
	others := len(changes) > 0 || r.filesUnknown
	if r.lastStart.then != record.Killed { // a killed attempt may have made the changes since the last look itself
		others = others || len(r.since) > 0
	}
	r.lastStart.touched = r.lastStart.touched || others
	changes = append(r.since, changes...)
	r.since = nil
	return changes, nil
}

// listChanged writes the files of LOPEN_CHANGED_FILES and of LOPEN_DIFF_FILE. The latter is
// empty, because the task has changed nothing yet.
func (r *runner) listChanged(changes []files.Change) error {
	var lines strings.Builder
	for _, c := range changes {
		lines.WriteString(c.Path + "\n")
	}
	f, path, err := r.dir.Write("changed", "", []byte(lines.String()))
	if err != nil {
		return fmt.Errorf("list what changed: %w", err)
	}
	r.given.changed = path
	if err := f.Close(); err != nil {
		return err
	}
	if f, r.given.diff, err = r.dir.Write("diff", ".patch", nil); err != nil {
		return fmt.Errorf("list what changed: %w", err)
	}
	return f.Close()
}

// after makes the checkpoint after a start of the command. If a task changed no file, it fails
// if a change is required, and otherwise a warning names it.
func (r *runner) after(ctx context.Context, unit string, out *outcome) error {
	changes, err := r.checkpoint(ctx, checkpoint.AfterTask, unit)
	if err != nil {
		return err
	}
	r.at.changes, out.changed = changes, len(changes) > 0 || r.filesUnknown
	if out.weigh().then != record.Done || len(changes) > 0 {
		return nil
	}
	if r.cfg.RequireChange {
		out.red = "no file was changed (require_change)"
		return nil
	}
	r.unchanged = append(r.unchanged, unit)
	r.cfg.UI.Warn("%s changed no file", r.name(unit))
	return nil
}

// checkpointInterrupted makes the checkpoint after an interrupted command. Without it the changes
// of the command could not be distinguished from those of others.
func (r *runner) checkpointInterrupted(ctx context.Context, unit string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if r.cfg.Checkpoint {
		_, changes, err := r.sess.Checkpoint(ctx, checkpoint.AfterTask, unit)
		if err == nil {
			r.at.changes = changes
			return
		}
		r.cfg.UI.Warn("no checkpoint after %s, which was interrupted: %v", unit, err)
	}
	changes, err := r.sess.Look(ctx)
	if err != nil {
		r.cfg.UI.Warn("which files the interrupted command changed is not known: %v", err)
	}
	r.at.changes = changes
}

// FileChanges returns changes in the form that the journal has. more is the number of changes
// beyond [record.MaxFileChanges].
func FileChanges(changes []files.Change) (all []record.FileChange, more int) {
	if len(changes) > record.MaxFileChanges {
		changes, more = changes[:record.MaxFileChanges], len(changes)-record.MaxFileChanges
	}
	for _, c := range changes {
		_, unstored := c.Unstored()
		all = append(all, record.FileChange{Path: strings.ToValidUTF8(c.Path, "\ufffd"), Change: string(c.Kind), From: strings.ToValidUTF8(c.From, "\ufffd"), Before: c.Old.Content(), After: c.New.Content(), Unstored: unstored})
	}
	return all, more
}
