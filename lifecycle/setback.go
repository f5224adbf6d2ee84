package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// SetBack brings the files that a failed task changed back to what they were before the
// first of its attempts that no other task of the session and no rewind came after. It is a
// [Session.Rewind] of the files, but for three things: undo goes back to where it went
// before, the tree as the task left it stays until the session is pruned (see
// [Store.FailedTrees]), and there are reasons to leave all files as they are. why is such a
// reason, "" for none: the repository's HEAD or branch moved, the task of another session is
// at work, a path is contested, or a checkpoint is missing. A task that changed nothing has
// no Rewound.Before.
//
// After an error that wraps [checkpoint.ErrUnchanged] the files are as they were. After
// another one the rewind has begun: the next Open finishes it, and a second SetBack is refused.
func (s *Session) SetBack(ctx context.Context, task string) (done Rewound, why string, err error) {
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	done, why, err = s.setBack(ctx, task)
	if err != nil && s.mark.Load().Rewinding == nil && !errors.Is(err, checkpoint.ErrUnchanged) {
		err = fmt.Errorf("%w: %w", checkpoint.ErrUnchanged, err)
	}
	if err != nil {
		err = fmt.Errorf("set back the files of %s: %w", task, err)
	}
	return done, why, err
}

func (s *Session) setBack(ctx context.Context, task string) (Rewound, string, error) {
	if r := s.mark.Load().Rewinding; r != nil {
		return Rewound{}, "", errors.New(howToFinish(r))
	}
	if err := s.openCheckpoints(); err != nil {
		return Rewound{}, "", err
	}
	first, err := s.firstBefore(task)
	switch {
	case err != nil:
		return Rewound{}, "", err
	case first == nil:
		return Rewound{}, "no checkpoint was made before its attempts", nil
	case first.Removed != "":
		return Rewound{}, "the checkpoint before its first attempt was removed: " + first.Removed, nil
	}
	r, would, err := s.planner().preview(ctx, first.ID, RewindOptions{Files: true})
	if err != nil {
		return Rewound{}, "", err
	}
	if why := would.refused(); why != "" || len(would.Changes) == 0 {
		return would, why, nil
	}
	r.Task = task
	done, err := s.carryOut(ctx, r, would)
	return done, "", err
}

// firstBefore is the checkpoint before the first attempt of a task that nothing else of the
// session came after but what a person keeps by hand; nil for none. It may be one that was
// removed. The caller holds mu.
func (s *Session) firstBefore(task string) (first *checkpoint.Entry, err error) {
	if s.kept.last == nil {
		return nil, nil
	}
	for n := s.kept.last.Number; n > 0; {
		e, err := s.kept.store.At(n)
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
func (r *Rewound) refused() string {
	if r.Later {
		return "git's HEAD or branch is another one than before its first attempt"
	}
	if len(r.others) > 0 {
		return "another task is at work: " + strings.Join(r.others, ", ")
	}
	var contested []string
	for _, k := range r.Kept {
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

// maxWhy bounds a reason that is put on record, in bytes.
const maxWhy = 1 << 10

// NotSetBack puts on record why the files of a failed task stay as it left them. The text
// is redacted, and cut at 1 KiB.
func (s *Session) NotSetBack(task, why string) error {
	why = s.Redact(why)
	why = strings.ToValidUTF8(why[:min(len(why), maxWhy)], "")
	return s.append(actors.Entry{Ops: []session.Op{{Name: session.OpNotSetBack, Task: task, To: why}}})
}

// FailedTrees are the numbers of those of some entries that have the tree of a failed task
// whose files were set back. They stay, whatever checkpoints take, until their session is
// pruned or deleted. A session is there as long as its folder is.
func (s *Store) FailedTrees(all []*checkpoint.Entry) (map[uint64]bool, error) {
	failed := map[uint64]bool{}
	folders, err := s.folders(sessionsDir)
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		there := func(f folder) bool { return f.name == e.Session }
		if e.SetBack() && e.Removed == "" && slices.ContainsFunc(folders, there) {
			failed[e.Number] = true
		}
	}
	return failed, nil
}

// neededByFailed are the numbers of the entries that it takes to bring back what failed
// tasks left: their trees, what they were set back to, and what came of that.
func (s *Store) neededByFailed(all []*checkpoint.Entry) (map[uint64]bool, error) {
	failed, err := s.FailedTrees(all)
	if err != nil {
		return nil, err
	}
	needed := map[uint64]bool{}
	for _, e := range all {
		switch {
		case failed[e.Number]:
			needed[e.Number], needed[e.Target] = true, true
		case e.Reason == checkpoint.AfterRewind && failed[e.Parent]:
			needed[e.Number] = true
		}
	}
	return needed, nil
}
