package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// seenFile is what Look last saw, in the session's folder. It is derived from the
// project's files.
const seenFile = "files"

func (s *Session) seenPath() string { return Dir + "/" + s.path(seenFile) }

// Look says which of the project's files changed since the last Look or Checkpoint
// of the session, also by an earlier process. Nothing is kept of their contents.
func (s *Session) Look(ctx context.Context) ([]files.Change, error) {
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	changes, err := s.look(ctx)
	return changes, s.orLost(ctx, err)
}

// look is Look. The caller holds mu.
func (s *Session) look(ctx context.Context) ([]files.Change, error) {
	if err := s.recall(); err != nil {
		return nil, err
	}
	k := &s.kept
	if k.seen == nil && k.tree != nil {
		var err error
		if k.seen, err = flat(k.tree); err != nil {
			return nil, err
		}
	}
	now, err := files.Take(ctx, s.store.project, k.seen, files.Options{})
	if err != nil {
		return nil, fmt.Errorf("look at the files of session %s: %w", s.id, err)
	}
	var changes []files.Change
	if k.seen != nil {
		if k.seen == k.saved && k.seen.Settled() && k.seen.Equal(now) {
			return nil, nil
		}
		changes = files.Compare(k.seen, now)
	}
	k.tree, k.seen, k.saved = nil, now, now
	s.told.Store(false)
	if !s.store.saves() {
		return changes, nil
	}
	if err := files.Save(s.store.project, s.seenPath(), now); err != nil {
		k.saved = nil
		s.log.Warn().Err(err).Msg("the next holder will not know which files changed")
	}
	return changes, nil
}

// recall finds out what the session last saw of the project's files, unless it is
// known. The caller holds mu.
func (s *Session) recall() error {
	k := &s.kept
	if k.seen != nil || k.tree != nil {
		return nil
	}
	if s.mark.Load().Checkpoint != "" {
		if err := s.openCheckpoints(); err != nil {
			return err
		}
	}
	if old, err := files.Load(s.store.project, s.seenPath()); err == nil && (k.last == nil || old.At.After(k.last.At)) {
		k.seen, k.saved = old, old
	} else if k.last != nil && k.last.Removed == "" {
		k.tree = k.store.Tree(k.last.Root)
	}
	return nil
}

// sees notes a tree as what the session last saw and returns what changed since it saw
// the files before. What cannot be told is left out. The caller holds mu.
func (s *Session) sees(now *checkpoint.Tree) (changes []files.Change) {
	k := &s.kept
	var err error
	switch {
	case k.tree != nil:
		changes, err = checkpoint.Diff(k.tree, now)
	case k.seen != nil:
		changes = files.Compare(k.seen, k.store.Seen())
	}
	if err != nil {
		s.log.Warn().Err(err).Msg("which files changed since the last checkpoint is not known")
	}
	k.tree, k.seen, k.saved = now, k.store.Seen(), k.store.Seen()
	return changes
}

// flat is a tree as Look knows the files, without what spares it reading them.
func flat(t *checkpoint.Tree) (*files.Snapshot, error) {
	s := &files.Snapshot{}
	for f, err := range t.All() {
		if err != nil {
			return nil, err
		}
		s.Files = append(s.Files, *f)
	}
	skipped, err := t.Skipped()
	s.Skipped = skipped
	return s, err
}

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
