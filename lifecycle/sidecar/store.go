package sidecar

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/writer"
)

// The names in .lopen, and in the side-car.
const (
	repoDir     = "sidecar.git"
	manifestDir = "transactions"
	lockName    = manifestDir + "/.lock"
	mainRef     = "refs/heads/main"
	branches    = "refs/heads/lopen"
	email       = "lopen@localhost"
	filePerm    = 0o600
	maxPacked   = 16 << 20 // of packed-refs, in bytes
)

// Options of a Store.
type Options struct {
	// Scratch is a folder for what git gets for one command. It is made if it is missing.
	Scratch string
	// Alive reports whether a session exists; the transaction of another one is over.
	Alive func(session string) bool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// A Store is the transactions of one .lopen folder.
type Store struct {
	opts Options
	root writer.FS // .lopen
	repo writer.FS // the side-car; nil until it is opened

	patience time.Duration // of a start of git; tests have less

	main   string            // the tip of main that merged was read from
	merged map[string]string // by transaction, its commit on main
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
	return &Store{opts: opts, root: root, patience: patience}, nil
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
	if err := writer.MkdirDurable(s.root, manifestDir); err != nil {
		return nil, err
	}
	l, err := writer.LockWait(ctx, s.root, lockName, writer.Self("lopen transaction"))
	if err != nil {
		return nil, fmt.Errorf("lock the transactions: %w", err)
	}
	return func() { _ = l.Unlock() }, nil // what was written is durable, whatever it returns
}

// make makes the side-car where it is missing. HEAD is made last: without it there is none.
func (s *Store) make() error {
	if err := s.open(); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, dir := range []string{"", "objects", "objects/pack", "objects/info", "refs", "refs/heads", branches} {
		if err := writer.MkdirDurable(s.root, path.Join(repoDir, dir)); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{"config": "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tlogAllRefUpdates = false\n[gc]\n\tauto = 0\n", "HEAD": "ref: " + mainRef + "\n"} {
		if err := writer.ReplaceFile(s.root, path.Join(repoDir, name), []byte(text), filePerm); err != nil {
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

// sound returns an error for a folder that is not like the one that make makes. Git writes into
// objects, so nothing there may lead elsewhere.
func sound(repo writer.FS) error {
	bad := func(name, why string) error {
		return &writer.Error{Op: "open the side-car", Path: filepath.Join(repo.Name(), name), Class: writer.ClassCorrupt, Err: fmt.Errorf("%s; %s", why, wayOut)}
	}
	if _, err := repo.Lstat("HEAD"); err != nil {
		return err
	}
	for _, name := range []string{"objects", "objects/pack", "refs", "refs/heads"} {
		if info, err := repo.Lstat(name); err != nil || !info.IsDir() {
			return bad(name, "it is no folder")
		}
	}
	objects, err := repo.ReadDir("objects")
	if err != nil {
		return err
	}
	for _, e := range objects {
		if !e.IsDir() {
			return bad("objects/"+e.Name(), "it is no folder")
		}
	}
	if _, err := repo.Lstat("objects/info/alternates"); err == nil {
		return bad("objects/info/alternates", "objects from elsewhere are not used")
	}
	return nil
}

// branchOf returns the name of a transaction's branch.
func branchOf(id string) string { return "lopen/session-" + id }

// ref returns the commit that a reference names, "" if there is no such reference.
func (s *Store) ref(name string) (string, error) {
	text, err := writer.ReadFile(s.repo, name, 4<<10)
	if err == nil {
		return s.oid(name, strings.TrimSpace(string(text)))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	packed, err := writer.ReadFile(s.repo, "packed-refs", maxPacked)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for line := range bytes.Lines(packed) {
		if oid, of, _ := strings.Cut(strings.TrimSpace(string(line)), " "); of == name {
			return s.oid(name, oid)
		}
	}
	return "", nil
}

// oid checks the name of an object.
func (s *Store) oid(ref, text string) (string, error) {
	if len(text) != 40 || strings.Trim(text, "0123456789abcdef") != "" {
		return "", &writer.Error{Op: "read a branch of the side-car", Path: filepath.Join(s.repo.Name(), ref), Class: writer.ClassCorrupt, Err: fmt.Errorf("it names no commit; %s", wayOut)}
	}
	return text, nil
}

// unlocked returns an error if another git has locked a reference, or left its lock behind.
func (s *Store) unlocked(ref string) error {
	for _, name := range []string{ref + ".lock", "packed-refs.lock"} {
		if _, err := s.repo.Lstat(name); err == nil {
			return &writer.Error{Op: "write to the side-car", Path: filepath.Join(s.repo.Name(), name), Class: writer.ClassBusy,
				Err: errors.New("another git works in the side-car, or left its lock when it was killed: when none runs, remove this file")}
		}
	}
	return nil
}

// setRef points a reference to a commit whose pack is in objects/pack. When it returns nil, both
// are durable. The caller holds the lock.
func (s *Store) setRef(name, oid string) error {
	if err := s.unlocked(name); err != nil {
		return err
	}
	if err := s.repo.SyncDir("objects/pack"); err != nil {
		return writer.NewError("sync the side-car", filepath.Join(s.repo.Name(), "objects/pack"), writer.NotCommitted, err)
	}
	if err := writer.MkdirDurable(s.repo, path.Dir(name)); err != nil {
		return err
	}
	return writer.ReplaceFile(s.repo, name, []byte(oid+"\n"), filePerm)
}
