package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// beforeUnsaved is the counter before the first ID of an unsaved store: no store on a disk
// gets there.
const beforeUnsaved = 1_000_000_000

// OpenUnsaved opens a project for sessions of which nothing is saved. It needs no .lopen,
// reads none and makes none. No file is opened for writing, so that it works on a full
// disk and on one that is mounted read-only.
//
// The State and the pauses of a session are as with files. No store finds it again: Open,
// Latest and Fork return ErrNotFound, also of a session that is open, and so does reading
// its messages. What Append, AppendEvent and Record accept is checked and
// dropped. Look compares the project's files with what the same session saw of them.
// What writes a file of the store fails with errors.ErrUnsupported: a checkpoint, a plan,
// output, the lock of a module. IDs count from 1,000,000,001 on.
func OpenUnsaved(project string, opts Options) (*Store, error) {
	project, err := filepath.Abs(project)
	if err != nil {
		return nil, fmt.Errorf("open project: %w", err)
	}
	pfs, err := writer.OpenFS(project)
	if err != nil {
		return nil, fmt.Errorf("open project: %w", err)
	}
	return newStore(pfs, nothing(filepath.Join(pfs.Name(), Dir)), opts), nil
}

// saves says whether the store keeps files.
func (s *Store) saves() bool {
	_, unsaved := s.root().(nothing)
	return !unsaved
}

// createUnsaved is Create in a store that keeps nothing.
func (s *Store) createUnsaved(module string) (*Session, error) {
	now := s.opts.Now()
	id, err := session.NewID(module, now, beforeUnsaved+s.unsaved.Add(1))
	if err != nil {
		return nil, &Error{Op: "create session", Path: module, Class: writer.ClassInvalid, Err: err}
	}
	st, err := session.New(id, now)
	if err != nil {
		return nil, err
	}
	mark := &atomic.Pointer[session.Mark]{}
	mark.Store(&session.Mark{})
	return s.run(st, &discard{}, mark)
}

// discard is the Committer of a session of which nothing is kept: it acknowledges what the
// actor hands over and drops it.
type discard struct{ seq uint64 } // Owned by the session's actor.

func (d *discard) Commit(actors.Batch) (actors.Committed, error) {
	d.seq++
	return actors.Committed{Seq: d.seq}, nil
}

func (d *discard) Publication(bool) func() error { return nil }
func (d *discard) Published(error)               {}
func (d *discard) Check() error                  { return nil }
func (d *discard) Recover() error                { return nil }
func (d *discard) Close() error                  { return nil }

// nothing is a folder of that path that has no file and takes none: a reader finds
// fs.ErrNotExist, a writer gets errors.ErrUnsupported.
type nothing string

func (n nothing) missing(op, name string) error {
	return &fs.PathError{Op: op, Path: filepath.Join(string(n), name), Err: fs.ErrNotExist}
}

func (n nothing) refuse(op, name string) error {
	return &fs.PathError{Op: op, Path: filepath.Join(string(n), name), Err: errUnsaved}
}

var errUnsaved = fmt.Errorf("nothing is saved here: %w", errors.ErrUnsupported)

// OpenFile refuses to make a file, and finds none.
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
func (n nothing) ReadDir(string) ([]fs.DirEntry, error)  { return nil, nil }
func (n nothing) SyncDir(name string) error              { return n.missing("sync", name) }
func (n nothing) Sub(name string) (writer.FS, error)     { return nil, n.missing("open", name) }
func (n nothing) Flock(name string, _ int) writer.Flock  { return noFlock{n.missing("lock", name)} }
func (n nothing) Name() string                           { return string(n) }
func (n nothing) Close() error                           { return nil }

// noFlock is the lock on a file that is not there: each call returns the error.
type noFlock struct{ err error }

func (f noFlock) TryLock() (bool, error)     { return false, f.err }
func (f noFlock) TryRLock() (bool, error)    { return false, f.err }
func (f noFlock) Unlock() error              { return f.err }
func (f noFlock) Stat() (fs.FileInfo, error) { return nil, f.err }
func (f noFlock) Close() error               { return nil }
