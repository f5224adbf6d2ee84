package writer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A fault is what happens to one call. With the zero value the call succeeds.
type fault struct {
	err  error
	done bool // the call is carried out although it fails, as when an answer got lost
}

// faultFS records the calls to a real folder and fails those that decide picks.
type faultFS struct {
	FS
	decide func(n int, call string) fault // n counts from 1; nil fails nothing
	chunk  int                            // most bytes that one Write writes; 0: all, <0: none

	mu    sync.Mutex
	calls []string
	files []*faultFile
}

// faultFile counts the calls that must not be made twice.
type faultFile struct {
	File
	fs            *faultFS
	name          string
	syncs, closes int
}

var random = regexp.MustCompile(`-[A-Z2-7]{26}$`) // what rand.Text appends

func plainName(name string) string { return random.ReplaceAllString(name, "-*") }

func (f *faultFS) do(op, name string, fn func() error) error {
	call := op + " " + plainName(name)
	f.mu.Lock()
	f.calls = append(f.calls, call)
	n := len(f.calls)
	f.mu.Unlock()
	var x fault
	if f.decide != nil {
		x = f.decide(n, call)
	}
	if x.err == nil {
		return fn()
	}
	if x.done {
		_ = fn()
	}
	if op == "rename" || op == "link" || op == "symlink" {
		return &os.LinkError{Op: op, Old: "temp", New: name, Err: x.err}
	}
	return &fs.PathError{Op: op, Path: name, Err: x.err}
}

func (f *faultFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	var file *faultFile
	err := f.do("open", name, func() error {
		inner, err := f.FS.OpenFile(name, flag, perm)
		if err != nil {
			return err
		}
		file = &faultFile{File: inner, fs: f, name: name}
		f.mu.Lock()
		f.files = append(f.files, file)
		f.mu.Unlock()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return file, nil
}

func (f *faultFS) Mkdir(name string, perm fs.FileMode) error {
	return f.do("mkdir", name, func() error { return f.FS.Mkdir(name, perm) })
}

func (f *faultFS) Rename(oldname, newname string) error {
	return f.do("rename", newname, func() error { return f.FS.Rename(oldname, newname) })
}

func (f *faultFS) Remove(name string) error {
	return f.do("remove", name, func() error { return f.FS.Remove(name) })
}

func (f *faultFS) Link(oldname, newname string) error {
	return f.do("link", newname, func() error { return f.FS.Link(oldname, newname) })
}

func (f *faultFS) Symlink(target, name string) error {
	return f.do("symlink", name, func() error { return f.FS.Symlink(target, name) })
}

func (f *faultFS) Readlink(name string) (target string, err error) {
	err = f.do("readlink", name, func() (err error) {
		target, err = f.FS.Readlink(name)
		return err
	})
	return target, err
}

func (f *faultFS) Lstat(name string) (info fs.FileInfo, err error) {
	err = f.do("lstat", name, func() (err error) {
		info, err = f.FS.Lstat(name)
		return err
	})
	return info, err
}

func (f *faultFS) ReadDir(name string) (entries []fs.DirEntry, err error) {
	err = f.do("readdir", name, func() (err error) {
		entries, err = f.FS.ReadDir(name)
		return err
	})
	return entries, err
}

func (f *faultFS) SyncDir(name string) error {
	return f.do("syncdir", name, func() error { return f.FS.SyncDir(name) })
}

func (f *faultFile) Read(p []byte) (n int, err error) {
	err = f.fs.do("read", f.name, func() (err error) {
		n, err = f.File.Read(p)
		return err
	})
	return n, err
}

func (f *faultFile) Write(p []byte) (n int, err error) {
	switch {
	case f.fs.chunk < 0:
		p = nil
	case f.fs.chunk > 0:
		p = p[:min(len(p), f.fs.chunk)]
	}
	err = f.fs.do("write", f.name, func() (err error) {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

func (f *faultFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.fs.do("write", f.name, func() (err error) {
		n, err = f.File.WriteAt(p, off)
		return err
	})
	return n, err
}

func (f *faultFile) Datasync() error {
	f.syncs++
	return f.fs.do("sync", f.name, f.File.Datasync)
}

func (f *faultFile) Chmod(mode fs.FileMode) error {
	return f.fs.do("chmod", f.name, func() error { return f.File.Chmod(mode) })
}

func (f *faultFile) Sync() error {
	f.syncs++
	return f.fs.do("sync", f.name, f.File.Sync)
}

// Close closes even when it reports an error, as the kernel does.
func (f *faultFile) Close() error {
	f.closes++
	var cerr error
	err := f.fs.do("close", f.name, func() error {
		cerr = f.File.Close()
		return cerr
	})
	if cerr == nil && err != nil {
		_ = f.File.Close()
	}
	return err
}

// never checks what holds after every call: each opened file was closed once and
// synced at most once, whatever failed.
func (f *faultFS) never(t require.TestingT) {
	for _, file := range f.files {
		require.Equal(t, 1, file.closes, "closes of %s", plainName(file.name))
		require.LessOrEqual(t, file.syncs, 1, "syncs of %s", plainName(file.name))
	}
}

func (f *faultFS) count(call string) (n int) {
	for _, c := range f.calls {
		if c == call {
			n++
		}
	}
	return n
}

// failNth fails one call.
func failNth(k int, x fault) func(int, string) fault {
	return func(n int, _ string) fault {
		if n == k {
			return x
		}
		return fault{}
	}
}

// failCalls fails the calls of these names, every time.
func failCalls(m map[string]fault) func(int, string) fault {
	return func(_ int, call string) fault { return m[call] }
}

func openTemp(t testing.TB) FS {
	t.Helper()
	dir, err := OpenFS(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dir.Close()) })
	return dir
}

func put(t require.TestingT, dir FS, name, content string) {
	require.NoError(t, os.WriteFile(filepath.Join(dir.Name(), name), []byte(content), 0o600))
}

func get(t require.TestingT, dir FS, name string) string {
	data, err := os.ReadFile(filepath.Join(dir.Name(), name))
	require.NoError(t, err)
	return string(data)
}

func names(t require.TestingT, dir FS) []string {
	entries, err := os.ReadDir(dir.Name())
	require.NoError(t, err)
	list := []string{}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func noTemps(t require.TestingT, dir FS) {
	require.False(t, slices.ContainsFunc(names(t, dir), func(n string) bool { return strings.HasPrefix(n, tempPrefix) }), "a temporary file is left: %v", names(t, dir))
}

// failed checks an error's outcome and class, and that its message names the
// file's path and the OS error.
func failed(t require.TestingT, err error, path string, outcome Outcome, errno syscall.Errno) {
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, outcome, e.Outcome, "outcome of %v", err)
	require.Equal(t, classes[errno], e.Class, "class of %v", err)
	require.Equal(t, path, e.Path)
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, errno.Error())
	require.True(t, errors.Is(err, errno), "%v does not wrap %v", err, errno)
}

// classes repeats the package's own table on purpose, so that a slip there fails a test.
var classes = map[syscall.Errno]Class{
	syscall.ENOSPC: ClassNoSpace, syscall.EDQUOT: ClassNoSpace,
	syscall.EIO: ClassDevice, syscall.EACCES: ClassDenied,
	syscall.EINTR: ClassTransient, syscall.EMFILE: ClassTransient,
}

var storageErrnos = []syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EDQUOT, syscall.EACCES}
