package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
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
