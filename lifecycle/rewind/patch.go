package rewind

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// maxUnpatched bounds the number of files that Patch only names because their patches do not
// fit.
const maxUnpatched = 1000

// Patch returns what a task has changed so far, in the format of [checkpoint.Store.Patch]: from
// the checkpoint before its first attempt to the files as they are. For a complete task it
// ends with the files as they were after its last attempt. The attempts are those without a
// checkpoint of another task in between. The result has at most limit bytes; files whose
// patches do not fit are only named. Patch stores nothing. The error wraps
// [checkpoint.ErrNotFound] if the newest checkpoint is not the one before an attempt at the
// task or, for a complete task, if there is none after it.
func (p *Planner) Patch(ctx context.Context, task string, limit int) ([]byte, error) {
	last, err := p.lastOf(task)
	if err != nil {
		return nil, err
	}
	first, err := p.firstOf(last)
	if err != nil {
		return nil, err
	}
	now := p.Chain.Tree(last.Root)
	if last.Reason == checkpoint.BeforeTask {
		meta := p.Meta(ctx)
		meta.Reason, meta.Task = checkpoint.AfterTask, task
		if _, now, err = p.Chain.Look(ctx, meta); err != nil {
			return nil, err
		}
	}
	changes, err := checkpoint.Diff(p.Chain.Tree(first.Root), now)
	if err != nil {
		return nil, err
	}
	return p.patches(ctx, changes, limit)
}

// lastOf returns the checkpoint after a task, if the task is complete, or else the one before
// the attempt in progress.
func (p *Planner) lastOf(task string) (*checkpoint.Entry, error) {
	last := p.Last
	if last != nil && last.Task == task && last.Reason == checkpoint.BeforeTask {
		return last, nil
	}
	if t, ok := p.State().Task(task); !ok || t.State != session.TaskComplete || last == nil {
		return nil, fmt.Errorf("no checkpoint was made before it: %w", checkpoint.ErrNotFound)
	}
	for last.Task != task || last.Reason != checkpoint.AfterTask {
		var err error
		if last, err = p.Chain.At(last.Parent); err != nil {
			return nil, err
		}
	}
	return last, nil
}

// firstOf returns the checkpoint before the first of a task's attempts. last is the newest
// checkpoint of the task.
func (p *Planner) firstOf(last *checkpoint.Entry) (*checkpoint.Entry, error) {
	first := last
	for e := last; e.Parent > 0; {
		before, err := p.Chain.At(e.Parent)
		if errors.Is(err, checkpoint.ErrNotFound) || err == nil && (before.Task != last.Task || before.Session != last.Session) {
			break
		}
		if err != nil {
			return nil, err
		}
		if e = before; e.Reason == checkpoint.BeforeTask && e.Removed == "" {
			first = e
		}
	}
	if first.Reason != checkpoint.BeforeTask {
		return nil, fmt.Errorf("the checkpoint before it was removed: %w", checkpoint.ErrNotFound)
	}
	return first, nil
}

// patches returns the patches of changes, one after the other, in at most limit bytes.
func (p *Planner) patches(ctx context.Context, changes []files.Change, limit int) ([]byte, error) {
	var text, names bytes.Buffer
	more := 0
	for _, c := range changes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		one, err := p.Chain.Patch(c.Old, c.New)
		if err != nil {
			return nil, err
		}
		if text.Len()+len(one) <= limit {
			text.WriteString(one)
		} else if more++; more <= maxUnpatched {
			fmt.Fprintf(&names, "%s %q\n", c.Kind, c.Path)
		}
	}
	if more == 0 {
		return text.Bytes(), nil
	}
	note := fmt.Sprintf("Cut: %d more files changed, whose patches do not fit into %d bytes:\n%s", more, limit, names.Bytes())
	note = note[:min(len(note), limit)]
	text.Truncate(min(text.Len(), limit-len(note)))
	text.WriteString(note)
	return text.Bytes(), nil
}
