package sidecar

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/private"
)

// The names in .lopen, and in the side-car.
const (
	repoDir     = "sidecar.git"
	incoming    = "incoming" // what git writes, until it has succeeded
	manifestDir = "transactions"
	lockName    = manifestDir + "/.lock"
	mainRef     = "refs/heads/main"
	email       = "lopen@localhost"
	filePerm    = 0o600
	maxPacked   = 16 << 20 // of packed-refs, in bytes
)

// abandoned is the age of a lock file that a git which was killed has left behind.
const abandoned = time.Hour

// Options of a Store.
type Options struct {
	// Scratch makes an empty folder for one start of git, outside of .lopen, where an agent that
	// is confined to the project cannot change it, and returns what removes it.
	Scratch func() (dir string, remove func(), err error)
	// Git is the program; "" means the one that is first in PATH at each start.
	Git string
	// Alive reports whether a session exists; the transaction of another one is over.
	Alive func(session string) bool
	// Patience bounds a start of git, with as much again as the contents need at 4 MiB a second; 0
	// means half a minute.
	Patience time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// A Store is the transactions of one .lopen folder.
type Store struct {
	opts Options
	root writer.FS // .lopen
	repo writer.FS // the side-car; nil until it is opened

	hung error // of the git that did not end

	main   string            // the tip of main that merged was read from
	merged map[string]string // by transaction, its commit on main
	left   []string          // of Left
}

// Open opens the transactions of a .lopen folder, which may have none. Close it after use.
func Open(lopen string, opts Options) (*Store, error) {
	root, err := writer.OpenFS(lopen)
	if err != nil {
		return nil, err
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	opts.Git = cmp.Or(opts.Git, "git")
	opts.Patience = cmp.Or(opts.Patience, patience)
	return &Store{opts: opts, root: root}, nil
}

// Close closes the folders.
func (s *Store) Close() error {
	err := s.root.Close()
	if s.repo != nil {
		err = errors.Join(err, s.repo.Close())
	}
	return err
}

// lock excludes other writers until the function that it returns is called.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	if err := private.Make(s.root, manifestDir); err != nil {
		return nil, err
	}
	l, err := writer.LockWait(ctx, s.root, lockName, writer.OwnerOf(os.Getpid(), "lopen transaction"))
	if err != nil {
		return nil, fmt.Errorf("lock the transactions: %w", err)
	}
	return func() { _ = l.Unlock() }, nil // what was written is durable, whatever it returns
}

// make makes the side-car where it is missing. HEAD is made last: without it there is none.
func (s *Store) make() error {
	err := s.open()
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := private.Make(s.root, repoDir); err != nil {
		return err
	}
	for _, dir := range []string{"objects", "objects/pack", "refs", "refs/heads"} {
		if err := writer.MkdirDurable(s.root, path.Join(repoDir, dir)); err != nil {
			return err
		}
	}
	own := "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tsharedRepository = 0600\n\tlogAllRefUpdates = false\n[gc]\n\tauto = 0\n"
	for _, f := range [][2]string{{"config", own}, {"HEAD", "ref: " + mainRef + "\n"}} {
		if err := writer.ReplaceFile(s.root, path.Join(repoDir, f[0]), []byte(f[1]), filePerm); err != nil {
			return err
		}
	}
	return s.open()
}

// open opens the side-car. The error wraps fs.ErrNotExist if there is none.
func (s *Store) open() error {
	if s.repo != nil {
		return nil
	}
	repo, err := writer.OpenDir(s.root, repoDir)
	if err == nil {
		if err = sound(repo); err != nil {
			_ = repo.Close()
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no side-car %s: %w (%w); lopen transaction commit --remake makes it again from the checkpoints", filepath.Join(s.root.Name(), repoDir), folder.ErrNotFound, fs.ErrNotExist)
	}
	if err == nil {
		s.repo = repo
	}
	return err
}

// sound returns an error for a folder that is not like the one that make makes: its objects may
// not come from elsewhere.
func sound(repo writer.FS) error {
	if _, err := repo.Lstat("HEAD"); err != nil {
		return err
	}
	objects, err := repo.ReadDir("objects")
	if err != nil {
		return err
	}
	for _, e := range objects {
		if !e.IsDir() {
			return damaged(repo, "objects/"+e.Name(), "it is no folder")
		}
	}
	if _, err := repo.Lstat("objects/info/alternates"); err == nil {
		return damaged(repo, "objects/info/alternates", "objects from elsewhere are not used")
	}
	return nil
}

// damaged returns the error of a file of the side-car that nothing can be done with.
func damaged(repo writer.FS, name, why string) error {
	return &writer.Error{Op: "read the side-car", Path: filepath.Join(repo.Name(), name), Class: writer.ClassCorrupt, Err: errors.New(why + "; " + wayOut)}
}

// branchOf returns the name of a transaction's branch, and refOf that of its reference.
func branchOf(id string) string { return "lopen/session-" + id }
func refOf(id string) string    { return "refs/heads/" + branchOf(id) }

// ref returns the commit that a reference names, "" if there is no such reference.
func (s *Store) ref(name string) (string, error) {
	text, err := writer.ReadFile(s.repo, name, 4<<10)
	if err == nil {
		return s.oid(name, text)
	}
	if errors.Is(err, fs.ErrNotExist) {
		text, err = writer.ReadFile(s.repo, "packed-refs", maxPacked)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for line := range bytes.Lines(text) {
		if oid, of, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" ")); string(of) == name {
			return s.oid(name, oid)
		}
	}
	return "", nil
}

// oid checks the name of an object, which a file or git told.
func (s *Store) oid(of string, text []byte) (string, error) {
	oid := strings.TrimSpace(string(text))
	if len(oid) != 40 || strings.Trim(oid, "0123456789abcdef") != "" {
		return "", damaged(s.repo, of, "it names no object")
	}
	return oid, nil
}

// unlocked returns an error if another git has locked a reference. A lock file that is too old
// for that is removed.
func (s *Store) unlocked(ref string) error {
	for _, name := range []string{ref + ".lock", "packed-refs.lock"} {
		info, err := s.repo.Lstat(name)
		if err == nil && time.Since(info.ModTime()) > abandoned {
			err = s.repo.Remove(name)
		} else if err == nil {
			err = errors.New("another git works in the side-car, or left its lock when it was killed: when none runs, remove this file")
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &writer.Error{Op: "write to the side-car", Path: filepath.Join(s.repo.Name(), name), Class: writer.ClassBusy, Err: err}
		}
	}
	return nil
}

// setRef points a reference to a commit that is durable, durably. The caller holds the lock.
func (s *Store) setRef(name, oid string) error {
	if err := s.unlocked(name); err != nil {
		return err
	}
	if err := writer.MkdirDurable(s.repo, path.Dir(name)); err != nil {
		return err
	}
	return writer.ReplaceFile(s.repo, name, []byte(oid+"\n"), filePerm)
}
