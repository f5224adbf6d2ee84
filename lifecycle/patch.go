package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// maxUnpatched bounds how many files Patch names whose patch finds no room.
const maxUnpatched = 1000

// Patch returns what a task has changed so far: from the checkpoint before its first
// attempt to the files as they are, as [checkpoint.Store.Patch] has it. Attempts belong to
// the task as long as the session's checkpoints are of no other one. It is at most limit
// bytes long, and names of those files whose patch finds no room. Nothing is kept, and what
// Look and Checkpoint return is not changed by it. Of a task that is complete it ends with
// the files as they were after its last attempt. The error wraps [checkpoint.ErrNotFound]
// where the newest checkpoint is not the one before an attempt at the task, and of a
// complete one where none was made after it.
func (s *Session) Patch(ctx context.Context, task string, limit int) ([]byte, error) {
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	text, err := s.patch(ctx, task, limit)
	if err != nil {
		return nil, fmt.Errorf("patch of %s: %w", task, err)
	}
	return text, nil
}

// patch is Patch. The caller holds mu.
func (s *Session) patch(ctx context.Context, task string, limit int) ([]byte, error) {
	if err := s.recall(); err != nil {
		return nil, err
	}
	k := &s.kept
	last, err := s.lastOf(task)
	if err != nil {
		return nil, err
	}
	first := last
	for e := last; e.Parent > 0; {
		before, err := k.store.At(e.Parent)
		if errors.Is(err, checkpoint.ErrNotFound) || err == nil && (before.Task != task || before.Session != first.Session) {
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
	now := k.store.Tree(last.Root)
	if last.Reason == checkpoint.BeforeTask {
		meta := s.store.meta(s.id, s.State(), *s.mark.Load(), last)
		meta.Reason, meta.Task = checkpoint.AfterTask, task
		if _, now, err = k.store.Look(ctx, meta); err != nil {
			return nil, err
		}
	}
	changes, err := checkpoint.Diff(k.store.Tree(first.Root), now)
	if err != nil {
		return nil, err
	}
	var text, names bytes.Buffer
	more := 0
	for _, c := range changes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		one, err := k.store.Patch(c.Old, c.New)
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

// lastOf is the checkpoint at which a task's patch ends, if it is complete, or else the one
// before the attempt at it that is under way. The caller holds mu.
func (s *Session) lastOf(task string) (*checkpoint.Entry, error) {
	last := s.kept.last
	if last != nil && last.Task == task && last.Reason == checkpoint.BeforeTask {
		return last, nil
	}
	if t, ok := s.State().Task(task); !ok || t.State != session.TaskComplete || last == nil {
		return nil, fmt.Errorf("no checkpoint was made before it: %w", checkpoint.ErrNotFound)
	}
	for last.Task != task || last.Reason != checkpoint.AfterTask {
		var err error
		if last, err = s.kept.store.At(last.Parent); err != nil {
			return nil, err
		}
	}
	return last, nil
}
