package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// seenFile is what Look last saw, in the session's folder. It is derived from the
// project's files.
const seenFile = "files"

func (s *Session) seenPath() string { return Dir + "/" + s.path(seenFile) }

// Look says which of the project's files changed since the last Look or Checkpoint
// of the session, also by an earlier process. Their contents are not stored.
func (s *Session) Look(ctx context.Context) ([]files.Change, error) {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	changes, err := s.look(ctx)
	return changes, s.orLost(ctx, err)
}

// look is Look. The caller holds mu.
func (s *Session) look(ctx context.Context) ([]files.Change, error) {
	if err := s.recall(); err != nil {
		return nil, err
	}
	k := &s.files
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
	s.recorded.Store(false)
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
	k := &s.files
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
// the files before. What is not known is left out. The caller holds mu.
func (s *Session) sees(now *checkpoint.Tree) (changes []files.Change) {
	k := &s.files
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

// Patch returns what a task has changed so far: see [rewind.Planner.Patch]. What Look and
// Checkpoint return is not changed by it.
func (s *Session) Patch(ctx context.Context, task string, limit int) ([]byte, error) {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	err := s.recall()
	var text []byte
	if err == nil {
		text, err = s.planner().Patch(ctx, task, limit)
	}
	if err != nil {
		return nil, fmt.Errorf("patch of %s: %w", task, err)
	}
	return text, nil
}

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
	Done *record.Attempt
	// Last is the last attempt on record, nil where there is none. Used are the tokens of
	// all attempts in its agent's session.
	Last *record.Attempt
	Used session.Totals
	// Failed has the last failed attempts of each unit that is not complete.
	Failed Failures
}

// MaxFailures bounds the attempts that Failures has of a unit.
const MaxFailures = 3

// Failures are, by unit, the last attempts that failed since the unit was done last, the
// newest at the end.
type Failures map[string][]record.Attempt

// Recorded reads Done, Last, Used and Failed of a Past from the log of st's session. It needs no lock.
func (s *Store) Recorded(st *session.State) (*Past, error) {
	p := &Past{}
	_, _, err := s.leftBehind(st, p)
	return p, err
}

func (f Failures) add(attempts []record.Attempt) {
	for _, a := range attempts {
		switch a.Then {
		case record.Failed:
			f[a.Task] = append(f[a.Task], a)
			f[a.Task] = slices.Delete(f[a.Task], 0, max(len(f[a.Task])-MaxFailures, 0))
		case record.Done:
			delete(f, a.Task)
		}
	}
}

// open leaves the units that are not complete.
func (f Failures) open(st *session.State) {
	maps.DeleteFunc(f, func(unit string, _ []record.Attempt) bool {
		t, ok := st.Task(unit)
		return !ok || t.State == session.TaskComplete
	})
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
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	begun, now, err := s.lookAround(ctx, p)
	if err != nil {
		return p, err
	}
	cut := begun == nil && s.State().ActiveTask() != "" // nobody knows whose the changes are
	if cut {
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
		is, changed, err := changedAfter(f.After, path, begun, now)
		switch {
		case err != nil:
			return p, err
		case changed && cut:
			p.cut(path, is)
		case changed:
			differ++
			paths[t.ID] = append(paths[t.ID], path)
		}
	}
	p.Changed = changedTasks(paths)
	p.All = whole > 1 && differ == whole
	return p, nil
}

// changedTasks are the tasks and paths in order.
func changedTasks(paths map[string][]string) (all []ChangedTask) {
	for _, id := range slices.Sorted(maps.Keys(paths)) {
		slices.Sort(paths[id])
		all = append(all, ChangedTask{id, paths[id]})
	}
	return all
}

// cut adds a file to those of the attempt that was cut off.
func (p *Past) cut(path string, is *files.Fingerprint) {
	if !slices.ContainsFunc(p.Cut, func(c files.Change) bool { return c.Path == path }) {
		p.Cut = append(p.Cut, changeTo(path, is))
	}
}

// changedAfter says whether a file has another content than a task left, and had when the
// active task began, as far as begun is there to tell.
func changedAfter(left, path string, begun *checkpoint.Tree, now func(string) (*files.Fingerprint, bool, error)) (is *files.Fingerprint, changed bool, err error) {
	is, known, err := now(path)
	if err != nil || !known || is.Content() == left || begun == nil {
		return is, err == nil && known && is.Content() != left, err
	}
	was, known, err := begun.Find(path)
	return is, err == nil && known && was.Content() != left, err
}

// leftBehind reads from the log what each path was left as, and by which task, and
// puts the attempts into p.
func (s *Store) leftBehind(st *session.State, p *Past) (left map[string]record.FileChange, by map[string]string, err error) {
	left, by, p.Failed = map[string]record.FileChange{}, map[string]string{}, Failures{}
	err = s.Log(st.ID(), 0, func(r record.Record) error {
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
			if t, ok := st.Task(a.Task); ok && a.Then == record.Done && t.State == session.TaskComplete && a.Check != nil {
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
	k := &s.files
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
	s.recorded.Store(false)
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
	unit, last := s.State().ActiveTask(), s.files.last
	if unit == "" || last.Task != unit {
		return nil, nil
	}
	if last.Reason == checkpoint.AfterTask && last.Parent > 0 { // killed before the attempt was on record
		before, err := s.files.store.At(last.Parent)
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
