package lifecycle

import (
	"context"
	"fmt"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
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
