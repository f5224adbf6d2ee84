package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A Past is what a resumed loop has to know of the holders before.
type Past struct {
	// Changed are the complete tasks some of whose files are not any more what they
	// left behind. All says that not one file is as it was, which a list would not
	// make clearer.
	Changed []ChangedTask
	All     bool
	// Files are the changes that Look returns.
	Files []files.Change
	// Cut are the changes since the attempt began that a kill cut off; it may have made
	// them, so that they are not in Changed. They are not on record yet.
	Cut []files.Change
	// Failed has the last failed attempt of each unit that is not complete.
	Failed map[string]session.AttemptRecord
}

// A ChangedTask is a complete task with files that somebody changed since.
type ChangedTask struct {
	Task  string // ID
	Paths []string
}

// Past reads the session's log once and compares what its tasks left behind with the
// files as they are: content that differs belongs to the task that changed it last. With
// an error the Past has what could be read: of the log, where the files are in the way.
func (s *Session) Past(ctx context.Context) (*Past, error) {
	p := &Past{Failed: map[string]session.AttemptRecord{}}
	left, by, err := s.leftBehind(p)
	if err != nil {
		return p, fmt.Errorf("look back at session %s: %w", s.id, err)
	}
	s.kept.mu.Lock()
	begun, err := s.cutOff()
	if err == nil {
		p.Files, err = s.look(ctx)
	}
	now := s.kept.seen
	s.kept.mu.Unlock()
	if err != nil {
		return p, err
	}
	cut := s.State().ActiveTask() != ""
	if begun != nil {
		p.Cut = checkpoint.Diff(begun, now)
	} else if cut {
		p.Cut = p.Files
	}
	paths := map[string][]string{}
	differ, whole := 0, 0
	for path, f := range left {
		t, ok := s.State().Task(by[path])
		if !ok || t.State != session.TaskComplete {
			continue // it runs again, or a rewind took it back
		}
		whole++
		is := now.Find(path)
		switch {
		case is.Content() == f.After:
			continue
		case begun != nil && begun.Find(path).Content() == f.After:
			continue
		case cut && begun == nil: // nobody can tell
			if !slices.ContainsFunc(p.Cut, func(c files.Change) bool { return c.Path == path }) {
				p.Cut = append(p.Cut, changeTo(path, is))
			}
			continue
		}
		differ++
		paths[t.ID] = append(paths[t.ID], path)
	}
	for id, all := range paths {
		slices.Sort(all)
		p.Changed = append(p.Changed, ChangedTask{id, all})
	}
	slices.SortFunc(p.Changed, func(a, b ChangedTask) int { return strings.Compare(a.Task, b.Task) })
	p.All = whole > 1 && differ == whole
	return p, nil
}

// leftBehind reads from the log what each path was left as, and by which task, and
// puts failed attempts into p.
func (s *Session) leftBehind(p *Past) (left map[string]session.FileChange, by map[string]string, err error) {
	left, by = map[string]session.FileChange{}, map[string]string{}
	err = s.store.Log(s.id, 0, func(r session.Record) error {
		for _, a := range r.Attempts {
			for _, f := range a.Files {
				if f.From != "" {
					delete(left, f.From)
				}
				left[f.Path], by[f.Path] = f, a.Task
			}
			switch {
			case a.Failure != "":
				p.Failed[a.Task] = a
			case a.Then == session.Done:
				delete(p.Failed, a.Task)
			}
		}
		return nil
	})
	for unit := range p.Failed {
		if t, ok := s.State().Task(unit); !ok || t.State == session.TaskComplete {
			delete(p.Failed, unit)
		}
	}
	return left, by, err
}

// cutOff returns the files as they were when the attempt began that a kill cut off,
// nil where none was or where no checkpoint tells. The caller holds mu.
func (s *Session) cutOff() (*files.Snapshot, error) {
	unit := s.State().ActiveTask()
	if unit == "" || s.mark.Load().Checkpoint == "" {
		return nil, nil
	}
	if err := errors.Join(s.recall(), s.openCheckpoints()); err != nil {
		return nil, err
	}
	last := s.kept.last
	if last != nil && last.Reason == checkpoint.AfterTask && last.ID > 1 { // killed before the attempt was on record
		before, err := s.kept.store.Load(last.ID - 1)
		if err != nil && !errors.Is(err, checkpoint.ErrNotFound) && !errors.Is(err, ErrCorrupt) {
			return nil, err
		}
		last = before
	}
	if last == nil || last.Reason != checkpoint.BeforeTask || last.Task != unit {
		return nil, nil
	}
	return last.Files, nil
}

// changeTo is a change to what a path is now, of which it is not known what it was.
func changeTo(path string, is *files.Fingerprint) files.Change {
	if is == nil {
		return files.Change{Kind: files.Deleted, Path: path}
	}
	return files.Change{Kind: files.Modified, Path: path, New: is}
}
