package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/commit"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/process"
)

// A ModuleLock is held by the run of a module until Unlock. Before each commit of a
// session of the module, and before the store writes its plan, the lock file must still
// be the one that is held. One that was removed or replaced is taken again; where
// somebody else holds it nothing is written and the error has class fenced.
type ModuleLock struct {
	store  *Store
	module string

	mu       sync.Mutex
	lock     *writer.Lock // Guarded by mu.
	released bool         // Unlock was called. Guarded by mu.
}

func moduleLock(module string) string { return modulesDir + "/" + module + "/.lock" }

// LockModule takes the lock that the one run of a module holds, and that a
// change of its plan by another command takes for a moment. A [*BusyError] names
// the holder.
func (s *Store) LockModule(module string) (*ModuleLock, error) {
	if err := session.ValidateModule(module); err != nil {
		return nil, &Error{Op: "lock module", Path: module, Class: writer.ClassInvalid, Err: err}
	}
	l := &ModuleLock{store: s, module: module}
	if err := l.take(); err != nil {
		return nil, err
	}
	s.held.Store(module, l)
	return l, nil
}

// take takes the lock file of that name. The caller holds mu, or is the only one.
func (l *ModuleLock) take() (err error) {
	s := l.store
	if err := s.layout(); err != nil {
		return err
	}
	if err := writer.MkdirDurable(s.root(), modulesDir+"/"+l.module); err != nil {
		return fmt.Errorf("lock module: %w", err)
	}
	l.lock, err = writer.TryLock(s.root(), moduleLock(l.module), writer.Self(s.opts.Command))
	return err
}

// Unlock lets go. It is idempotent. Where somebody else took the lock, this store's
// sessions of the module stay fenced.
func (l *ModuleLock) Unlock() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released = true
	if err := l.check(); err == nil || errors.Is(err, fs.ErrNotExist) {
		l.store.held.CompareAndDelete(l.module, l)
	}
	return l.lock.Unlock()
}

// check says whether the file of that name is the held one. The caller holds mu.
func (l *ModuleLock) check() error {
	return l.lock.Check(l.store.project, Dir+"/"+moduleLock(l.module))
}

// keepModule says whether this store still holds the lock of a module, if it took it,
// and takes it again where the file was removed, or replaced by one that nobody holds: a
// command that takes the lock for a moment leaves such a file behind, and what it did to
// the plan is seen when the plan is read next.
func (s *Store) keepModule(module string) (taken bool, err error) {
	held, ok := s.held.Load(module)
	if !ok {
		return false, nil
	}
	l := held.(*ModuleLock) //nolint:forcetypeassert // nothing else is stored there
	l.mu.Lock()
	defer l.mu.Unlock()
	path := filepath.Join(s.Path(), moduleLock(module))
	if l.released {
		return false, &Error{Op: "check lock", Path: path, Class: writer.ClassFenced, Err: errors.New("it was lost to another process")}
	}
	if err := l.check(); err == nil {
		return false, nil
	}
	lost := l.lock
	if err := l.take(); err != nil {
		l.lock = lost
		return false, heldByAnother("lock module", path, err)
	}
	_ = lost.Unlock() // of a file that nobody can find any more
	s.opts.Logger.Warn().Str("path", path).Msg("the module's lock file was removed or replaced; the lock was taken again")
	return true, nil
}

// heldByAnother gives an error its class where somebody else took what this process
// held: who lost it stops writing.
func heldByAnother(op, path string, err error) error {
	if !errors.Is(err, ErrBusy) {
		return err
	}
	return &Error{Op: op, Path: path, Class: writer.ClassFenced, Err: fmt.Errorf("it was removed and taken by another process: %w", err)}
}

// ModuleFree says with a [*BusyError] that somebody holds the lock of a module. It
// takes no lock and makes no file, so that the answer may be old when it comes.
func (s *Store) ModuleFree(module string) error {
	if err := session.ValidateModule(module); err != nil {
		return &Error{Op: "look at module", Path: module, Class: writer.ClassInvalid, Err: err}
	}
	owner, held, err := writer.Holder(s.root(), moduleLock(module))
	if err == nil && held {
		err = &BusyError{Path: filepath.Join(s.Path(), moduleLock(module)), Owner: owner}
	}
	return err
}

// PlanPath is where a module's plan lies below the project's folder.
func PlanPath(module string) string { return Dir + "/" + modulesDir + "/" + module + "/plan.md" }

// Plan reads a module's plan. errors.Is(err, fs.ErrNotExist) says that there is none.
func (s *Store) Plan(module string) (*plan.Plan, error) { return s.ReloadPlan(module, nil) }

// Modules returns the modules that have a folder, by name. Whether they have a plan
// [Store.Plan] says.
func (s *Store) Modules() ([]string, error) {
	entries, err := s.root().ReadDir(modulesDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list modules: %w", err)
	}
	var all []string
	for _, e := range entries {
		if e.IsDir() && session.ValidateModule(e.Name()) == nil {
			all = append(all, e.Name())
		}
	}
	slices.Sort(all)
	return all, nil
}

// ReloadPlan reads a module's plan of which base was read before: it is base
// itself while the file says the same. See plan.Load.
func (s *Store) ReloadPlan(module string, base *plan.Plan) (*plan.Plan, error) {
	dir, err := s.moduleDir(module)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return plan.Load(dir, "plan.md", base)
}

// CreatePlan writes a module's plan, durably. One that exists is never
// overwritten: errors.Is(err, fs.ErrExist).
func (s *Store) CreatePlan(module string, content []byte) error {
	if err := session.ValidateModule(module); err != nil {
		return &Error{Op: "create plan", Path: module, Class: writer.ClassInvalid, Err: err}
	}
	if err := s.layout(); err != nil {
		return err
	}
	if _, err := s.keepModule(module); err != nil {
		return fmt.Errorf("create plan: %w", err)
	}
	if err := writer.MkdirDurable(s.root(), modulesDir+"/"+module); err != nil {
		return fmt.Errorf("create plan: %w", err)
	}
	dir, err := s.moduleDir(module)
	if err != nil {
		return err
	}
	defer dir.Close()
	return plan.CreateFile(dir, "plan.md", content)
}

// EditPlan carries a change out on a module's plan, durably. base is the plan as
// the caller knows it; edits that came in between stay, or are a
// *plan.ConflictError. See plan.Apply.
func (s *Store) EditPlan(module string, base *plan.Plan, change plan.Change) (*plan.Plan, error) {
	dir, err := s.moduleDir(module)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if _, err := s.keepModule(module); err != nil {
		return nil, fmt.Errorf("edit plan: %w", err)
	}
	return plan.Apply(dir, "plan.md", base, change)
}

func (s *Store) moduleDir(module string) (writer.FS, error) {
	if err := session.ValidateModule(module); err != nil {
		return nil, &Error{Op: "open plan", Path: module, Class: writer.ClassInvalid, Err: err}
	}
	return writer.OpenDir(s.root(), modulesDir+"/"+module)
}

// HoldChild takes the lock that the next command inherits. It is nil where nothing is
// saved: no later holder looks for the command.
func (s *Session) HoldChild() (*process.Lock, error) {
	if !s.store.saves() {
		return nil, nil
	}
	return process.Hold(s.store.root(), s.path(childFile))
}

// ChildHeld says whether something still holds the lock that the last command inherited: the
// command, or a process that it left behind. The caller is about to start none.
func (s *Session) ChildHeld() (bool, error) {
	o, err := process.FindOrphan(s.store.root(), s.path(childFile))
	return o != nil || err != nil, err
}

// Orphan returns the command of a session that still holds its lock, or nil, also
// of one that was deleted since somebody listed it. The session may lie in corrupted/.
// The caller holds the session or its module, so that no run has it started; others ask
// [Store.Abandoned].
func (s *Store) Orphan(id session.ID) (*process.Orphan, error) {
	dir, err := writer.OpenDir(s.root(), s.folderOf(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for a command that outlived session %s: %w", id, err)
	}
	defer dir.Close()
	return process.FindOrphan(dir, childFile)
}

// Abandoned returns the command of a session that nobody holds, if it still works, or a
// process that it left behind, or nil. It makes no file and keeps no run from starting; anybody may call it.
func (s *Store) Abandoned(id session.ID) (*process.Orphan, error) {
	return repair.Abandoned(s.root(), s.folderOf(id)+"/")
}

// folderOf is where a session's files are: in sessions/, or in corrupted/ once it was
// moved there.
func (s *Store) folderOf(id session.ID) string {
	name := sessionsDir + "/" + id.String()
	if _, err := s.root().Lstat(name); errors.Is(err, fs.ErrNotExist) {
		if moved, ok := s.inCorrupted(id.String()); ok {
			return moved.Where
		}
	}
	return name
}

// CommandEnded is how the command of the last attempt ended, nil where nobody knows. The
// caller holds the session, and nothing holds the command's lock any more. What is written
// down of an attempt whose outcome the State has is not returned.
func (s *Session) CommandEnded() (*process.Ended, error) {
	e, err := process.ReadEnded(s.store.root(), s.path(childFile))
	if err != nil || e == nil || e.Iteration != s.State().NumIterations()+1 {
		return nil, err
	}
	return e, nil
}

const (
	// wakePatience is how long RequestWake gives the holder to answer.
	wakePatience = 3 * time.Second
	wakePoll     = 20 * time.Millisecond
)

// WakeRequested says whether another process asked this session to end its wait. It is
// true once for each request, and asking is the answer to it: call it only while waiting.
func (s *Session) WakeRequested() bool { return s.store.root().Remove(s.path(wakeFile)) == nil }

// RequestWake asks the holder of a session to end its wait. The boolean says that it does;
// it is false where nobody holds the session, or its holder does not wait, which takes three
// seconds to find out unless a task is in progress.
func (s *Store) RequestWake(ctx context.Context, id session.ID) (woken bool, err error) {
	owner, err := s.Holder(id)
	if err != nil || owner == nil {
		return false, err
	}
	st, _, err := s.Read(id)
	if err != nil || st.ActiveTask() != "" {
		return false, err
	}
	name, err := s.request(id, wakeFile)
	if err != nil {
		return false, fmt.Errorf("ask session %s to end its wait: %w", id, err)
	}
	ctx, cancel := context.WithTimeout(ctx, wakePatience)
	defer cancel()
	tick := time.NewTicker(wakePoll)
	defer tick.Stop()
	for {
		if _, err := s.root().Lstat(name); errors.Is(err, fs.ErrNotExist) {
			s.Logger(id).Info().Msg("wait ended on request")
			return true, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done(): // one that cannot be taken back was met at the last moment
			return errors.Is(s.root().Remove(name), fs.ErrNotExist), nil
		}
	}
}

// Preflight looks at what a run needs of the store before it begins: that it can
// be written, that it belongs to this user alone, and that there is room. It
// returns what is not so.
func (s *Store) Preflight() []repair.Check {
	all := []repair.Check{repair.Writing(s.root()), repair.Modes(s.root()), repair.Space(s.root(), commit.LowSpace)}
	return slices.DeleteFunc(all, func(f repair.Check) bool { return f.Mend == "" })
}

// Doctor looks at what a store stands on: the file system, how long an fsync
// takes on it, free space, permissions, locks, and every session. It writes one
// temporary file and removes it.
func (s *Store) Doctor(ctx context.Context) []repair.Check {
	all := []repair.Check{repair.FileSystem(s.root()), repair.Sync(s.root()), repair.Space(s.root(), commit.LowSpace), repair.Modes(s.root()), s.checkLock(ctx), s.checkReserve()}
	all = append(all, s.checkBytes(), s.checkCheckpoints())
	all = append(all, s.checkSessions()...)
	all = append(all, repair.Unfinished(s.root(), s.opts.Now())...)
	return append(all, s.checkCorrupted()...)
}

// checkCorrupted names the damaged sessions from which none was recovered.
func (s *Store) checkCorrupted() (all []repair.Check) {
	lost, err := s.Quarantined()
	if err != nil {
		return []repair.Check{repair.Failed(corruptedDir, err)}
	}
	for _, i := range lost {
		if o, err := s.Abandoned(i.ID); err == nil && o != nil {
			all = append(all, repair.Orphaned(i.ID, o))
		}
		all = append(all, repair.Check{Name: i.ID.String(), Found: i.Err.Error(), Mend: "lopen session recover " + i.ID.String()})
	}
	return all
}

// checkBytes says where the bytes are, as du counts them.
func (s *Store) checkBytes() repair.Check {
	var parts []string
	for _, name := range []string{sessionsDir, checkpointsDir, blobsDir, trashDir, corruptedDir, "cache"} {
		if n := s.diskBytes(name, false); n > 0 {
			parts = append(parts, fmt.Sprintf("%s %.1f MiB", name, float64(n)/(1<<20)))
		}
	}
	return repair.Check{Name: "bytes", Found: strings.Join(parts, ", ")}
}

// checkCheckpoints says what the checkpoints take, to the byte.
func (s *Store) checkCheckpoints() repair.Check {
	f := repair.Check{Name: "checkpoints"}
	u, err := s.CheckpointUsage()
	if err != nil {
		return repair.Failed(f.Name, err)
	}
	f.Found = fmt.Sprintf("%d, in %d bytes of contents and %d bytes of their chain", u.Checkpoints, u.Blobs, u.Chain)
	if u.Unneeded > 0 {
		f.Found += fmt.Sprintf("; %d bytes of the contents are of none of them, in packs that are at least half needed or wait for the next prune", u.Unneeded)
	}
	return f
}

func (s *Store) checkLock(ctx context.Context) repair.Check {
	f := repair.Check{Name: "store lock", Found: "free"}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	lock, err := s.lock(ctx)
	if err != nil {
		f.Found, f.Problem, f.Mend = err.Error(), true, "wait for the holder, or end it"
		return f
	}
	if err := lock.Unlock(); err != nil {
		return repair.Failed(f.Name, err)
	}
	return f
}

func (s *Store) checkReserve() repair.Check {
	f := repair.Check{Name: "reserve", Found: fmt.Sprintf("%d MiB, given up on a full disk for one more save", commit.ReserveBytes>>20)}
	if !s.reserve.Whole() {
		f.Found, f.Mend = "none: a full disk stops saving at once", "it is made when a session is opened and there is room"
	}
	return f
}

// checkSessions names what is not as it should be; the rest is one line.
func (s *Store) checkSessions() []repair.Check {
	folders, err := s.folders(sessionsDir)
	if err != nil {
		return []repair.Check{repair.Failed("sessions", err)}
	}
	slices.SortFunc(folders, func(a, b sessionFolder) int { return strings.Compare(a.name, b.name) })
	var all []repair.Report
	for _, f := range folders {
		if r, err := s.Verify(f.id); err == nil { // or it was removed meanwhile
			all = append(all, r)
		}
	}
	return repair.Sessions(all)
}
