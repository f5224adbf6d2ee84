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
	// Done is the last attempt that completed a task by a check, and the task is complete
	// still; nil for none.
	Done *session.AttemptRecord
	// Last is the last attempt on record, nil where there is none. Used are the tokens of
	// all attempts in its agent's session.
	Last *session.AttemptRecord
	Used session.Totals
	// Failed has the last failed attempts of each unit that is not complete.
	Failed Failures
}

// MaxFailures bounds the attempts that Failures has of a unit.
const MaxFailures = 3

// Failures are, by unit, the last attempts that failed since the unit was done last, the
// newest at the end.
type Failures map[string][]session.AttemptRecord

// Recorded reads Done, Last, Used and Failed of a Past from the log of st's session. It needs no lock.
func (s *Store) Recorded(st *session.State) (*Past, error) {
	p := &Past{}
	_, _, err := s.leftBehind(st, p)
	return p, err
}

func (f Failures) add(attempts []session.AttemptRecord) {
	for _, a := range attempts {
		switch a.Then {
		case session.Failed:
			f[a.Task] = append(f[a.Task], a)
			f[a.Task] = slices.Delete(f[a.Task], 0, max(len(f[a.Task])-MaxFailures, 0))
		case session.Done:
			delete(f, a.Task)
		}
	}
}

// open leaves the units that are not complete.
func (f Failures) open(st *session.State) {
	for unit := range f {
		if t, ok := st.Task(unit); !ok || t.State == session.TaskComplete {
			delete(f, unit)
		}
	}
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
	p := &Past{}
	left, by, err := s.store.leftBehind(s.State(), p)
	if err != nil {
		return p, fmt.Errorf("look back at session %s: %w", s.id, err)
	}
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	begun, now, err := s.lookAround(ctx, p)
	if err != nil {
		return p, err
	}
	cut := s.State().ActiveTask() != ""
	if begun == nil && cut {
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
		is, known, err := now(path)
		if err != nil {
			return p, err
		}
		if !known || is.Content() == f.After {
			continue
		}
		if begun != nil {
			was, known, err := begun.Find(path)
			if err != nil {
				return p, err
			}
			if !known || was.Content() == f.After {
				continue
			}
		} else if cut { // nobody can tell
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
// puts the attempts into p.
func (s *Store) leftBehind(st *session.State, p *Past) (left map[string]session.FileChange, by map[string]string, err error) {
	left, by, p.Failed = map[string]session.FileChange{}, map[string]string{}, Failures{}
	err = s.Log(st.ID(), 0, func(r session.Record) error {
		for _, a := range r.Attempts {
			for _, f := range a.Files {
				if f.From != "" {
					delete(left, f.From)
				}
				left[f.Path], by[f.Path] = f, a.Task
			}
			if p.Last == nil || p.Last.AgentSession != a.AgentSession {
				p.Used = session.Totals{}
			}
			p.Used.InputTokens += a.Input
			p.Used.OutputTokens += a.Output
			p.Used.CachedTokens += a.Cached
			p.Last = &a
			if t, ok := st.Task(a.Task); ok && a.Then == session.Done && t.State == session.TaskComplete && a.Check != nil {
				p.Done = &a
			}
		}
		p.Failed.add(r.Attempts)
		return nil
	})
	p.Failed.open(st)
	return left, by, err
}

// lookAround puts into p what changed since the session last saw the files, and since the
// attempt began that a kill cut off. begun is the files as they were then, nil where no
// attempt was cut off or no checkpoint tells, and now finds what is at a path. The caller
// holds mu.
func (s *Session) lookAround(ctx context.Context, p *Past) (begun *checkpoint.Tree, now func(string) (*files.Fingerprint, bool, error), err error) {
	k := &s.kept
	if err := s.recall(); err != nil {
		return nil, nil, err
	}
	if k.last == nil { // the session has no checkpoint
		p.Files, err = s.look(ctx)
		return nil, func(path string) (*files.Fingerprint, bool, error) {
			return k.seen.Find(path), k.seen.Covers(path), nil
		}, err
	}
	meta := s.store.meta(s.id, s.State(), *s.mark.Load(), k.last)
	meta.Reason = checkpoint.Manual
	_, tree, err := k.store.Look(ctx, meta)
	if err != nil {
		return nil, nil, err
	}
	p.Files = s.sees(tree)
	s.told.Store(false)
	began, err := s.cutOff()
	if err != nil || began == nil {
		return nil, tree.Find, err
	}
	begun = k.store.Tree(began.Root)
	p.Cut, err = checkpoint.Diff(begun, tree)
	return begun, tree.Find, err
}

// cutOff returns the checkpoint before the attempt that a kill cut off, nil where none
// was or it is not there any more. The caller holds mu.
func (s *Session) cutOff() (*checkpoint.Entry, error) {
	unit, last := s.State().ActiveTask(), s.kept.last
	if unit == "" || last.Task != unit {
		return nil, nil
	}
	if last.Reason == checkpoint.AfterTask && last.Parent > 0 { // killed before the attempt was on record
		before, err := s.kept.store.At(last.Parent)
		if err != nil && !errors.Is(err, checkpoint.ErrNotFound) {
			return nil, err
		}
		last = before
	}
	if last == nil || last.Reason != checkpoint.BeforeTask || last.Task != unit || last.Removed != "" {
		return nil, nil
	}
	return last, nil
}

// changeTo is a change to what a path is now, of which it is not known what it was.
func changeTo(path string, is *files.Fingerprint) files.Change {
	if is == nil {
		return files.Change{Kind: files.Deleted, Path: path}
	}
	return files.Change{Kind: files.Modified, Path: path, New: is}
}
