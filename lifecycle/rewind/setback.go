package rewind

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// SetBack plans a rewind of the files to what they were before the first of a failed task's
// attempts that no other task of the session and no rewind came after. why is a reason to
// leave all files as they are, "" for none: the repository's HEAD or branch moved, the task
// of another session is at work, a path is contested, or a checkpoint is missing. There is
// nothing to run where why is set or the Result has no changes.
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
	if r, would, err = p.Preview(ctx, first.ID, Options{Files: true}); err != nil {
		return nil, Result{}, "", err
	}
	r.Task = task
	return r, would, would.refused(), nil
}

// firstBefore is the checkpoint before the first attempt of a task that nothing else of the
// session came after but what a person keeps by hand; nil for none. It may be one that was
// removed.
func (p *Planner) firstBefore(task string) (first *checkpoint.Entry, err error) {
	if p.Last == nil {
		return nil, nil
	}
	for n := p.Last.Number; n > 0; {
		e, err := p.Chain.At(n)
		if errors.Is(err, checkpoint.ErrNotFound) { // a damaged line: nobody knows whose it was
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

// refused says why the files of a failed task are not set back as planned, "" where they are.
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
