package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer"
)

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
	l.lock, err = writer.TryLock(s.root(), moduleLock(l.module), writer.Self(s.opts.Command))
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
// plan.Apply.
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
