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
// be the one that is held. One that was removed is taken again; where somebody else was
// faster, or the file is another one, nothing is written and the error has class fenced.
type ModuleLock struct {
	store  *Store
	module string

	mu   sync.Mutex
	lock *writer.Lock // Guarded by mu.
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
// and takes it again where the file was removed.
func (s *Store) keepModule(module string) error {
	held, ok := s.held.Load(module)
	if !ok {
		return nil
	}
	l := held.(*ModuleLock) //nolint:forcetypeassert // nothing else is stored there
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.check()
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	lost := l.lock
	if err := l.take(); err != nil {
		l.lock = lost
		return heldByAnother("lock module", filepath.Join(s.Path(), moduleLock(module)), err)
	}
	_ = lost.Unlock() // of a file that nobody can find any more
	s.opts.Logger.Warn().Str("path", filepath.Join(s.Path(), moduleLock(module))).Msg("the module's lock file was removed; the lock was taken again")
	return nil
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
