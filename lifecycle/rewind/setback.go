package rewind

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// SetBack plans a rewind of the files to what they were before a failed task's first attempt
// since another task of the session or a rewind. why is a reason to leave all files as they
// are, or "": the repository's HEAD or branch moved, a task of another session is being worked
// on, a path is contested, or a checkpoint is missing. The caller runs the rewind only if why
// is "" and the Result has changes.
func (p *Planner) SetBack(ctx context.Context, task string) (r *session.Rewinding, would Result, why string, err error) {
	first, err := p.firstBefore(task)
	switch {
	case err != nil:
		return nil, Result{}, "", err
	case first == nil:
		return nil, Result{}, "no checkpoint was made before its attempts", nil
	case first.Removed != "":
		return nil, Result{}, "the checkpoint before its first attempt was removed: " + first.Removed, nil
	}
	if r, would, err = p.preview(ctx, first.ID, Options{Files: true}, task); err != nil {
		return nil, Result{}, "", err
	}
	return r, would, would.refused(), nil
}

// firstBefore returns the checkpoint before the first attempt of a task since another task of
// the session or a rewind, or nil. Checkpoints that a person made are ignored. The result may
// be a removed checkpoint.
func (p *Planner) firstBefore(task string) (first *checkpoint.Entry, err error) {
	if p.Last == nil {
		return nil, nil
	}
	for n := p.Last.Number; n > 0; {
		e, err := p.Chain.At(n)
		if errors.Is(err, checkpoint.ErrNotFound) { // a damaged entry may have been of another task
			return first, nil
		}
		if err != nil {
			return nil, err
		}
		switch {
		case e.Reason == checkpoint.Manual:
		case e.Task != task, e.Reason != checkpoint.BeforeTask && e.Reason != checkpoint.AfterTask:
			return first, nil
		case e.Reason == checkpoint.BeforeTask:
			first = e
		}
		n = e.Parent
	}
	return first, nil
}

// refused returns why the files of a failed task are not set back, or "" if they are.
func (r *Result) refused() string {
	if r.Later {
		return "git's HEAD or branch is another one than before its first attempt"
	}
	if len(r.others) > 0 {
		return "another task is at work: " + strings.Join(r.others, ", ")
	}
	var contested []string
	for _, k := range r.Retained {
		if k.Why == checkpoint.Contested {
			contested = append(contested, k.Path)
		}
	}
	switch n := len(contested); {
	case n > 1:
		return fmt.Sprintf("%s and %d more: %s", contested[0], n-1, checkpoint.Contested)
	case n == 1:
		return fmt.Sprintf("%s: %s", contested[0], checkpoint.Contested)
	}
	return ""
}
