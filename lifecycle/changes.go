package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer"
)

// seenFile is the file in the session's folder with the snapshot that Look last took. It
// is derived from the project's files.
const seenFile = "files"

func (s *Session) seenPath() string { return Dir + "/" + s.path(seenFile) }

// Look returns which of the project's files changed since the last Look or Checkpoint of
// the session, which may have been in an earlier process. It does not store contents.
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
		k.seen.Mounts = k.last.Mounts
	}
	tree, err := s.workTree()
	if err != nil {
		return nil, err
	}
	w := s.State().Header().Worktree
	opts := files.Options{Outside: s.store.outside(ctx, w), Repository: s.store.repository(w)}
	if k.seen != nil {
		opts = opts.Since(k.seen, s.State().ActiveTask() == "")
	}
	now, err := files.Take(ctx, tree, k.seen, opts)
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
	if err := files.Remember(s.store.project, s.seenPath(), now, s.store.opts.Memory, s.path(seenFile)); err != nil {
		k.saved = nil
		s.log.Warn().Err(err).Msg("the next holder will not know which files changed")
	}
	return changes, nil
}

// orLost returns err, or the pause that explains it. When a file is missing, the whole folder
// of the session may be gone; Sync then makes the writer find that out.
func (s *Session) orLost(ctx context.Context, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		if lost := s.Sync(ctx); lost != nil {
			return lost
		}
	}
	return err
}

// workTree returns the folder in whose files the session works. The caller holds mu.
func (s *Session) workTree() (_ writer.FS, err error) {
	w := s.State().Header().Worktree
	if w == nil {
		return s.store.project, nil
	}
	if s.files.folder == nil {
		s.files.folder, err = s.store.openTree(w)
	}
	return s.files.folder, err
}

// recall loads what the session last saw of the project's files, unless it is loaded. The
// caller holds mu.
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
	old, known, err := files.Recall(s.store.project, s.seenPath(), s.store.opts.Memory, s.path(seenFile))
	last, lerr := k.store.whole(k.last)
	if lerr != nil {
		return lerr
	}
	switch {
	case err == nil && known && (last == nil || old.At.After(last.At)):
		k.seen, k.saved = old, old
	case last != nil && last.Removed == "":
		k.tree = k.store.Tree(last.Root)
	case err == nil && !known:
		k.seen = old // its contents are compared with what is read
	}
	return nil
}

// sees makes a tree what the session last saw, and returns the changes since what it saw
// before. If that is not known, it returns none. The caller holds mu.
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

// changesAt returns the changes of a checkpoint that was just made. The caller holds mu.
func (s *Session) changesAt(e *checkpoint.Entry) ([]files.Change, error) {
	if e.Only == nil {
		return s.sees(s.files.store.Tree(e.Root)), nil
	}
	return s.files.store.Changes(e)
}

// whole returns the newest checkpoint of the whole tree on the line that ends with e; nil if there is
// none.
func (c *Checkpoints) whole(e *checkpoint.Entry) (_ *checkpoint.Entry, err error) {
	for e != nil && e.Only != nil && err == nil {
		if e, err = c.At(e.Parent); errors.Is(err, checkpoint.ErrNotFound) {
			return nil, nil
		}
	}
	return e, err
}

// flat returns a tree as a snapshot for Look. The snapshot lacks what would let Look skip the
// reading of unchanged files.
func flat(t *checkpoint.Tree) (*files.Snapshot, error) {
	s := &files.Snapshot{}
	for f, err := range t.All() {
		if err != nil {
			return nil, err
		}
		s.Files = append(s.Files, *f)
	}
	var err error
	if s.Skipped, err = t.Skipped(); err == nil {
		s.Unstable, err = t.Unstable()
	}
	return s, err
}

// A Past is what a resumed loop has to know of earlier holders of the session.
type Past struct {
	// Changed are the complete tasks with files that changed after the task. All says that
	// every file of every complete task changed.
	Changed []ChangedTask
	All     bool
	// Files are the changes that Look returns. Every is the number of files that were seen last if
	// each of them changed since, and there were several; else 0.
	Files []files.Change
	Every int
	// Cut are the changes since the begin of the attempt that a kill interrupted. The
	// attempt may have made them, so they are not in Changed. The log does not have them
	// yet.
	Cut []files.Change
	// Done is the last attempt that completed a task with a check, if the task is still
	// complete; else nil.
	Done *record.Attempt
	// Last is the last attempt in the log, or nil. Used are the tokens and the cost of all attempts in
	// the agent's session of Last.
	Last *record.Attempt
	Used session.Totals
	// Failed has the last failed attempts of each unit that is not complete.
	Failed Failures
	// Touched has the paths that attempts at each unit that is not done, or whose commit is
	// pending, changed since it was begun anew, without those of Cut. Begun has HEAD before
	// the first of these attempts.
	Touched map[string][]string
	Begun   map[string]string
	// Left has the paths whose content is what the last attempt that changed them left.
	Left map[string]bool
}

// MaxFailures bounds the number of attempts per unit in Failures.
const MaxFailures = 3

// Failures maps each unit to its last failed attempts since it was last done, the newest at
// the end.
type Failures map[string][]record.Attempt

// Recorded returns a Past with Done, Last, Used and Failed from the log of st's session. It
// takes no lock.
func (s *Store) Recorded(st *session.State) (*Past, error) {
	if st == nil {
		return nil, absent("read changes", s.Path(), "state")
	}
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

// open deletes the units that are complete or gone.
func (f Failures) open(st *session.State) {
	maps.DeleteFunc(f, func(unit string, _ []record.Attempt) bool {
		t, ok := st.Task(unit)
		return !ok || t.State == session.TaskComplete
	})
}

// A ChangedTask is a complete task with files that changed after it.
type ChangedTask struct {
	Task  string // ID
	Paths []string
}

// Past reads the session's log once and compares the files as the tasks left them with the
// files as they are. A file with another content belongs to the task that changed it last.
// With an error the Past has what could be read; if only the files cannot be read, it has
// what the log says.
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
	cut := begun == nil && s.State().ActiveTask() != "" // without a checkpoint it is not known who made the changes
	if cut {
		p.Cut = p.Files
	}
	if len(p.Cut) > 0 {
		p.Every = 0 // it was the attempt
	}
	paths := map[string][]string{}
	differ, whole := 0, 0
	for path, f := range left {
		t, ok := s.State().Task(by[path])
		if !ok || t.State != session.TaskComplete {
			continue // the task runs again, or a rewind undid it
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
	p.Left = asLeft(p.Touched, left, now)
	p.Changed = changedTasks(paths)
	p.All = whole > 1 && differ == whole
	return p, nil
}

// asLeft returns the touched paths whose content is as the last change by a task left it. What
// was moved away, of which left has nothing, is as it was left if there is nothing now.
func asLeft(touched map[string][]string, left map[string]record.FileChange, now func(string) (*files.Fingerprint, bool, error)) map[string]bool {
	same := map[string]bool{}
	for _, paths := range touched {
		for _, path := range paths {
			if is, known, err := now(path); err == nil && known && is.Content() == left[path].After {
				same[path] = true
			}
		}
	}
	return same
}

// changedTasks returns the tasks with their paths, both sorted.
func changedTasks(paths map[string][]string) (all []ChangedTask) {
	for _, id := range slices.Sorted(maps.Keys(paths)) {
		slices.Sort(paths[id])
		all = append(all, ChangedTask{id, paths[id]})
	}
	return all
}

// cut adds a file to Cut unless it is there.
func (p *Past) cut(path string, is *files.Fingerprint) {
	if !slices.ContainsFunc(p.Cut, func(c files.Change) bool { return c.Path == path }) {
		p.Cut = append(p.Cut, changeTo(path, is))
	}
}

// changedAfter reports whether a file has another content than the one that a task left. With
// begun it looks at the file as it was when the active task began.
func changedAfter(left, path string, begun *checkpoint.Tree, now func(string) (*files.Fingerprint, bool, error)) (is *files.Fingerprint, changed bool, err error) {
	is, known, err := now(path)
	if err != nil || !known || is.Content() == left || begun == nil {
		return is, err == nil && known && is.Content() != left, err
	}
	was, known, err := begun.Find(path)
	return is, err == nil && known && was.Content() != left, err
}

// leftBehind reads the log. It returns for each path the last change by a task (left) and
// that task (by), and puts the attempts into p.
func (s *Store) leftBehind(st *session.State, p *Past) (left map[string]record.FileChange, by map[string]string, err error) {
	left, by, p.Failed = map[string]record.FileChange{}, map[string]string{}, Failures{}
	p.Touched, p.Begun = map[string][]string{}, map[string]string{}
	ended := map[string]bool{}
	err = s.Log(st.ID(), 0, func(r record.Record) error {
		for _, a := range r.Attempts {
			if _, begun := p.Begun[a.Task]; !begun || ended[a.Task] {
				p.Begun[a.Task], p.Touched[a.Task] = a.Before, nil
			}
			ended[a.Task] = a.Then == record.Done
			for _, f := range a.Files {
				if f.Unstored != "" {
					continue // no content is known, and git ignores it
				}
				p.Touched[a.Task] = append(p.Touched[a.Task], f.Path)
				if f.From != "" {
					p.Touched[a.Task] = append(p.Touched[a.Task], f.From)
					delete(left, f.From)
				}
				left[f.Path], by[f.Path] = f, a.Task
			}
			if p.Last == nil || p.Last.AgentSession != a.AgentSession {
				p.Used = session.Totals{}
			}
			addUse(&p.Used, &a)
			p.Last = &a
			if t, ok := st.Task(a.Task); ok && a.Then == record.Done && t.State == session.TaskComplete && a.Check != nil {
				p.Done = &a
			}
		}
		p.Failed.add(r.Attempts)
		return nil
	})
	p.Failed.open(st)
	pending := ""
	if c := st.Header().Commits; c != nil {
		pending = c.Pending
	}
	maps.DeleteFunc(p.Touched, func(unit string, _ []string) bool { return ended[unit] && unit != pending })
	return left, by, err
}

// addUse adds what an attempt used.
func addUse(t *session.Totals, a *record.Attempt) {
	t.InputTokens += a.Input
	t.OutputTokens += a.Output
	t.CachedTokens += a.Cached
	t.CostUSD += a.CostUSD
}

// lookAround sets p.Files, and p.Cut if a kill interrupted an attempt. begun is the tree at the
// begin of that attempt; it is nil if there was none or its checkpoint is missing. now returns
// the present file of a path. The caller holds mu.
func (s *Session) lookAround(ctx context.Context, p *Past) (begun *checkpoint.Tree, now func(string) (*files.Fingerprint, bool, error), err error) {
	k := &s.files
	if err := s.recall(); err != nil {
		return nil, nil, err
	}
	seen := k.seen.Count()
	if last, _ := k.store.whole(k.last); last != nil && k.tree != nil {
		seen = last.Files
	}
	defer func() { p.Every = files.Every(seen, p.Files) }()
	if k.last == nil { // the session has no checkpoint
		p.Files, err = s.look(ctx)
		return nil, func(path string) (*files.Fingerprint, bool, error) {
			return k.seen.Find(path), k.seen.Covers(path), nil
		}, err
	}
	meta := s.store.meta(ctx, s.id, s.State(), s.mark.Load().Mark, k.last)
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

// cutOff returns the checkpoint before the attempt that a kill interrupted. It returns nil if
// there was no such attempt or the checkpoint was removed. The caller holds mu.
func (s *Session) cutOff() (*checkpoint.Entry, error) {
	unit, last := s.State().ActiveTask(), s.files.last
	if unit == "" || last.Task != unit {
		return nil, nil
	}
	if last.Reason == checkpoint.AfterTask && last.Parent > 0 { // the kill came before the attempt was recorded
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

// changeTo returns the change of a path to what it is now, without what it was before.
func changeTo(path string, is *files.Fingerprint) files.Change {
	if is == nil {
		return files.Change{Kind: files.Deleted, Path: path}
	}
	return files.Change{Kind: files.Modified, Path: path, New: is}
}

// Checkpoint stores the project's files while there is no session, as [Session.Checkpoint] does for one: durably,
// with the reason [checkpoint.Manual]. Its entry names no session and no task, so that it is on no session's line:
// any session may go back to its files, and goes on without it.
//
// only is the caller's own list of files, see [Session.CheckpointOf]; nil is the whole tree.
func (s *Store) Checkpoint(ctx context.Context, only []string, pin bool) (e *checkpoint.Entry, err error) {
	meta := checkpoint.Meta{At: s.opts.Now().UTC(), Reason: checkpoint.Manual, Only: only}
	if !s.saves() {
		return &checkpoint.Entry{Meta: meta}, nil
	}
	cps, err := s.makeCheckpoints(nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cps.release(&s.opts.Logger)) }()
	meta.Git = s.git(ctx, nil)
	e, err = cps.Create(ctx, meta)
	if err == nil && pin {
		err = cps.Pin(ctx, e.ID, true)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint of no session: %w", err)
	}
	s.opts.Logger.Info().Uint64("number", e.Number).Stringer("checkpoint", e.ID).Msg("checkpoint made without a session")
	return e, nil
}
