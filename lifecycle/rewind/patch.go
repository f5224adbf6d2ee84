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

// maxUnpatched bounds how many files Patch names whose patch finds no room.
const maxUnpatched = 1000

// Patch returns what a task has changed so far: from the checkpoint before its first
// attempt to the files as they are, as [checkpoint.Store.Patch] has it. Attempts belong to
// the task as long as the session's checkpoints are of no other one. It is at most limit
// bytes long, and names of those files whose patch finds no room. It stores nothing. Of a task
// that is complete it ends with the files as they were after its last attempt. The error
// wraps [checkpoint.ErrNotFound] where the newest checkpoint is not the one before an
// attempt at the task, and of a complete one where none was made after it.
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
		meta := p.Meta()
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

// lastOf is the checkpoint at which a task's patch ends, if it is complete, or else the one
// before the attempt at it that is under way.
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

// firstOf is the checkpoint before the first of a task's attempts, of which last is the
// newest checkpoint.
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

// patches are those of some changes, one after the other, in at most limit bytes.
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
