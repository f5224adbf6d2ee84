package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/commit"
	"github.com/lopen-dev/lopen/lifecycle/decisions"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/output"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// committing returns the options of the committer of a session.
func (s *Store) committing(id session.ID) commit.Options {
	p := &s.opts.Policy
	return commit.Options{
		Logger: actors.SessionLog(s.opts.Logger, id), Now: s.opts.Now, Owner: writer.OwnerOf(os.Getpid(), s.opts.Command),
		Interval: p.Interval, Iterations: p.Iterations, Retention: p.Retention, JournalBytes: p.JournalBytes, Compression: p.Compression,
		MaxRecord: s.maxRecord, Segment: s.segment, Reserve: s.reserve, Place: place{s, id},
	}
}

// committer takes the lease of a session and resumes it.
func (s *Store) committer(id session.ID, event record.Event) (*commit.Committer, error) {
	held, err := s.hold(id, false)
	if err != nil {
		return nil, err
	}
	return commit.Open(held, event, s.committing(id))
}

// hold takes the lease of a session, loads the session, and removes what its last holder left
// behind. It quarantines a damaged session. A session that was edited outside is an error
// unless edited is set.
func (s *Store) hold(id session.ID, edited bool) (held *commit.Held, err error) {
	dir, err := s.sessionDir(id)
	if err != nil {
		return nil, err
	}
	held = &commit.Held{Dir: dir}
	if held.Lease, err = s.lease(sessionsDir, id); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	if held.Contents, err = s.loadHeld(dir, id, held.Lease, edited); err == nil {
		err = clean(dir)
	}
	if err != nil {
		return nil, errors.Join(err, held.Close()) // an edited session, or one of a newer version, is not changed
	}
	s.logFindings(id, held.Contents)
	return held, nil
}

// clean removes the requests to the last holder and its temporary files.
func clean(dir writer.FS) error {
	for _, request := range []string{pauseFile, wakeFile} {
		if err := dir.Remove(request); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return writer.NewError("remove", filepath.Join(dir.Name(), request), writer.NotCommitted, err)
		}
	}
	for _, name := range []string{".", history.Dir, output.Dir} {
		if err := writer.RemoveTemps(dir, name, func(of string) bool { return of != metaFile }); err != nil {
			return err
		}
	}
	return nil
}

// logFindings logs faults and broken rules that do not prevent the session from being opened.
func (s *Store) logFindings(id session.ID, ld *folder.Contents) {
	log := s.Logger(id)
	for _, f := range ld.Log.Faults {
		switch {
		case f.Seq == 0:
			log.Warn().Stringer("fault", f).Msg("part of the journal is damaged, and nothing is lost by it")
		case f.Kind != journal.Settled:
			log.Warn().Stringer("fault", f).Msg("part of the journal is not applied; it stays in its file")
		}
	}
	for _, f := range ld.Findings() {
		level := zerolog.WarnLevel
		if f.Severity == session.SeverityWarning { // for example of the plan; reading the plan reports it
			level = zerolog.InfoLevel
		}
		log.WithLevel(level).Stringer("rule", f).Str("repair", f.Repair).Msg("a rule is broken")
	}
}

// A place implements [commit.Options] Place: what the committer of a session may do with its
// store.
type place struct {
	*Store
	id session.ID
}

func (p place) Root() writer.FS { return p.root() }

func (p place) KeepModule() (taken bool, err error) {
	if cause, fenced := p.fences.Load(p.id); fenced {
		return false, &Error{Op: "save session", Path: p.full(), Class: writer.ClassFenced, Err: cause.(error)} //nolint:forcetypeassert // nothing else is stored there
	}
	return p.keepModule(p.id.Module)
}

func (p place) Restore() error {
	if err := p.layout(); err != nil {
		return err
	}
	_, err := p.KeepModule()
	return err
}

func (p place) Recreate(another func(session.Mark) error, build func() error) error {
	lock, err := p.lockCleared(context.Background())
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }()
	if err := p.moveRemains(another); err != nil {
		return err
	}
	if err := p.reserveID(p.id); err != nil { // the counters were removed as well
		return err
	}
	if err := build(); err != nil {
		return err
	}
	p.refreshLatest()
	return nil
}

// moveRemains moves what is left of the removed session to corrupted/. A session of the same
// ID that another process made meanwhile, held or not, stays where it is.
func (p place) moveRemains(another func(session.Mark) error) error {
	dir, err := p.sessionDir(p.id)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	lease, err := writer.TryLock(dir, leaseFile, writer.OwnerOf(os.Getpid(), p.opts.Command))
	if err != nil {
		return heldByAnother("make session again", p.full(), err)
	}
	defer func() { _ = lease.Unlock() }()
	if ld, err := folder.Load(dir, p.id); err == nil {
		if err := another(ld.At); err != nil {
			return err
		}
	}
	_, err = p.moveToCorrupted(p.id, quarantineNote{Reason: "what was left when the session's folder was removed while it ran", Remains: true})
	return err
}

func (p place) Retake(lost error, same func(session.Mark) error) (*commit.Held, error) {
	dir, err := p.sessionDir(p.id)
	if err != nil {
		return nil, errors.Join(lost, err)
	}
	defer dir.Close()
	if owner, err := p.Holder(p.id); err == nil && owner != nil {
		return nil, heldByAnother("take lease again", p.full(), &BusyError{Path: p.full(), Owner: *owner})
	}
	if ld, err := folder.Load(dir, p.id); err == nil { // before hold changes anything
		if err := same(ld.At); err != nil {
			return nil, err
		}
	}
	held, err := p.hold(p.id, false)
	if err != nil {
		return nil, heldByAnother("take lease again", p.full(), err)
	}
	return held, nil
}

// full returns the path of the session's folder.
func (p place) full() string { return filepath.Join(p.Path(), folder.Path(p.id)) }

// A ModuleLock is held by the run of a module until Unlock. Before each commit of a
// session of the module, and before the store writes the module's plan, the held file is
// compared with the one of that name. If the file was removed or replaced, the lock is taken
// again. If another process holds it by then, nothing is written and the error has class
// fenced.
type ModuleLock struct {
	store  *Store
	module string

	mu       sync.Mutex
	lock     *writer.Lock // Guarded by mu.
	released bool         // Unlock was called. Guarded by mu.
}

func moduleLock(module string) string { return modulesDir + "/" + module + "/.lock" }

// LockModule takes the lock of a module. A run of the module holds it throughout; another
// command takes it for a moment to change the plan. A [*BusyError] names the holder.
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

// take takes the lock. The caller holds mu, or has the only reference to l.
func (l *ModuleLock) take() (err error) {
	s := l.store
	if err := s.layout(); err != nil {
		return err
	}
	if err := writer.MkdirDurable(s.root(), modulesDir+"/"+l.module); err != nil {
		return fmt.Errorf("lock module: %w", err)
	}
	l.lock, err = writer.TryLock(s.root(), moduleLock(l.module), writer.OwnerOf(os.Getpid(), s.opts.Command))
	return err
}

// Unlock releases the lock. It is idempotent. If another process took the lock meanwhile,
// this store's sessions of the module stay fenced.
func (l *ModuleLock) Unlock() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released = true
	if err := l.check(); err == nil || errors.Is(err, fs.ErrNotExist) {
		l.store.held.CompareAndDelete(l.module, l)
	}
	return l.lock.Unlock()
}

// check returns nil if the held file still has its name. The caller holds mu.
func (l *ModuleLock) check() error {
	return l.lock.Check(l.store.project, Dir+"/"+moduleLock(l.module))
}

// keepModule returns nil if this store does not use the lock of a module or still holds it.
// If the file was removed, or replaced by one that is not held, keepModule takes the lock
// again, and taken is true. A command that takes the lock for a moment leaves such a file
// behind; its change of the plan is seen when the plan is read next.
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
	_ = lost.Unlock() // its file has no name any more
	s.opts.Logger.Warn().Str("path", path).Msg("the module's lock file was removed or replaced; the lock was taken again")
	return true, nil
}

// heldByAnother turns a busy error into one of class fenced: another process took the lock
// that this one held, so this one must stop writing. Other errors are unchanged.
func heldByAnother(op, path string, err error) error {
	if !errors.Is(err, ErrBusy) {
		return err
	}
	return &Error{Op: op, Path: path, Class: writer.ClassFenced, Err: fmt.Errorf("it was removed and taken by another process: %w", err)}
}

// ModuleFree returns a [*BusyError] if the lock of a module is held. It takes no lock and
// makes no file, so the answer may be outdated at once.
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

// PlanPath returns the path of a module's plan below the project's folder.
func PlanPath(module string) string { return Dir + "/" + modulesDir + "/" + module + "/plan.md" }

// Plan reads a module's plan. The error wraps fs.ErrNotExist if there is none.
func (s *Store) Plan(module string) (*plan.Plan, error) { return s.ReloadPlan(module, nil) }

// Modules returns the modules that have a folder, sorted. They need not have a plan.
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

// ReloadPlan reads a module's plan again. It returns base, which was read before, if the
// file has not changed. See plan.Load.
func (s *Store) ReloadPlan(module string, base *plan.Plan) (*plan.Plan, error) {
	dir, err := s.moduleDir(module)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return plan.Load(dir, "plan.md", base)
}

// CreatePlan writes a new plan of a module, durably. It never overwrites an existing plan;
// the error then wraps fs.ErrExist.
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

// EditPlan changes a module's plan, durably. base is the plan as the caller knows it. Edits
// by others since then stay; if they conflict, the error is a *plan.ConflictError. See
// plan.Apply. It waits for another lopen that edits the plan at this moment, at most ten
// seconds; the error is then a [*BusyError].
func (s *Store) EditPlan(module string, base *plan.Plan, change plan.Change) (p *plan.Plan, err error) {
	err = s.inModule(module, func(dir writer.FS) error {
		if _, err := s.keepModule(module); err != nil {
			return fmt.Errorf("edit plan: %w", err)
		}
		p, err = decisions.Edit(dir, writer.OwnerOf(os.Getpid(), s.opts.Command), base, change)
		return err
	})
	return p, err
}

// DecidePlan changes a module's plan for a person, durably, and notes what that decides. It
// needs no lock of the module: a run takes what was noted before its next task. See
// [decisions.Decide].
func (s *Store) DecidePlan(module string, c decisions.Change) (before, after *plan.Plan, err error) {
	err = s.inModule(module, func(dir writer.FS) error {
		before, after, err = decisions.Decide(dir, writer.OwnerOf(os.Getpid(), s.opts.Command), s.opts.Now, c)
		return err
	})
	return before, after, err
}

// Decisions returns what was decided about a module's tasks by commands and is not in the
// State of a session yet. A caller that compares it with the plan reads the plan first.
func (s *Store) Decisions(module string) (all []tasks.Decision, err error) {
	err = s.inModule(module, func(dir writer.FS) error { all, err = decisions.Read(dir); return err })
	return all, err
}

// ForgetDecisions removes decisions that a State has durably, but those about certain tasks. The
// caller holds the lock of the module.
func (s *Store) ForgetDecisions(module string, taken []tasks.Decision, but []string) error {
	return s.inModule(module, func(dir writer.FS) error {
		return decisions.Forget(dir, writer.OwnerOf(os.Getpid(), s.opts.Command), taken, but)
	})
}

// inModule calls fn with the folder of a module.
func (s *Store) inModule(module string, fn func(dir writer.FS) error) error {
	dir, err := s.moduleDir(module)
	if err != nil {
		return err
	}
	defer dir.Close()
	return fn(dir)
}

func (s *Store) moduleDir(module string) (writer.FS, error) {
	if err := session.ValidateModule(module); err != nil {
		return nil, &Error{Op: "open plan", Path: module, Class: writer.ClassInvalid, Err: err}
	}
	return writer.OpenDir(s.root(), modulesDir+"/"+module)
}

// nothing is the FS of an unsaved store, with the path of its folder. Reading returns
// fs.ErrNotExist, and writing errors.ErrUnsupported.
type nothing string

func (n nothing) missing(op, name string) error {
	return &fs.PathError{Op: op, Path: filepath.Join(string(n), name), Err: fs.ErrNotExist}
}

func (n nothing) refuse(op, name string) error {
	return &fs.PathError{Op: op, Path: filepath.Join(string(n), name), Err: errUnsaved}
}

var errUnsaved = fmt.Errorf("nothing is saved here: %w", errors.ErrUnsupported)

// OpenFile refuses to create a file, and finds none.
func (n nothing) OpenFile(name string, flag int, _ fs.FileMode) (writer.File, error) {
	if flag&os.O_CREATE != 0 {
		return nil, n.refuse("open", name)
	}
	return nil, n.missing("open", name)
}

func (n nothing) Mkdir(name string, _ fs.FileMode) error { return n.refuse("mkdir", name) }
func (n nothing) Rename(name, _ string) error            { return n.missing("rename", name) }
func (n nothing) Remove(name string) error               { return n.missing("remove", name) }
func (n nothing) RemoveAll(string) error                 { return nil }
func (n nothing) Link(name, _ string) error              { return n.missing("link", name) }
func (n nothing) Symlink(_, name string) error           { return n.refuse("symlink", name) }
func (n nothing) Readlink(name string) (string, error)   { return "", n.missing("readlink", name) }
func (n nothing) Chmod(name string, _ fs.FileMode) error { return n.missing("chmod", name) }
func (n nothing) Lstat(name string) (fs.FileInfo, error) { return nil, n.missing("lstat", name) }
func (n nothing) Stat(name string) (fs.FileInfo, error)  { return nil, n.missing("stat", name) }
func (n nothing) Mount(name string) (uint64, error)      { return 0, n.missing("lstat", name) }
func (nothing) Volume(string) string                     { return "" }
func (n nothing) ReadDir(string) ([]fs.DirEntry, error)  { return nil, nil }
func (n nothing) SyncDir(name string) error              { return n.missing("sync", name) }
func (n nothing) Sub(name string) (writer.FS, error)     { return nil, n.missing("open", name) }
func (n nothing) Flock(name string, _ int) writer.Flock  { return noFlock{n.missing("lock", name)} }
func (n nothing) Name() string                           { return string(n) }
func (n nothing) Close() error                           { return nil }

// noFlock is a lock on a missing file: each call but Close returns the error.
type noFlock struct{ err error }

func (f noFlock) TryLock() (bool, error)     { return false, f.err }
func (f noFlock) TryRLock() (bool, error)    { return false, f.err }
func (f noFlock) Unlock() error              { return f.err }
func (f noFlock) Stat() (fs.FileInfo, error) { return nil, f.err }
func (f noFlock) Close() error               { return nil }

// absent returns the error for an argument that is nil and may not be.
func absent(op, of, argument string) error {
	return &Error{Op: op, Path: of, Class: writer.ClassInvalid, Err: errors.New("the " + argument + " is nil")}
}

// openIn is Open for what has to close the session within a context.
func (s *Store) openIn(ctx context.Context, id session.ID) (*Session, error) {
	if ctx == nil {
		return nil, absent("open session", id.String(), "context")
	}
	return s.Open(id)
}
