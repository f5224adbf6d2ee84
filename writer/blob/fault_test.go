package blob

import (
	"context"
	"io"
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

	"github.com/lopen-dev/lopen/writer"
)

// A fault is what happens to one call. With the zero value the call succeeds.
type fault struct {
	err  error
	done bool // the call is carried out although it fails, as when an answer got lost
}

// faultFS records the calls to a real folder and fails those that decide picks.
type faultFS struct {
	writer.FS
	decide func(n int, call string) fault // n counts from 1; nil fails nothing
	chunk  int                            // most bytes that one Write writes; 0: all, <0: none

	mu    sync.Mutex
	calls []string
	files []*faultFile
}

// faultFile counts the calls that must not be made twice.
type faultFile struct {
	writer.File
	fs            *faultFS
	name          string
	syncs, closes int
}

type faultFlock struct {
	writer.Flock
	fs   *faultFS
	name string
}

var (
	random   = regexp.MustCompile(`-[A-Z2-7]{26}$`) // what writer.TempName appends
	packName = regexp.MustCompile(`[0-9a-f]{16}-[A-Z2-7]{26}\.pack$`)
)

func (f *faultFS) do(op, name string, fn func() error) error {
	call := op + " " + packName.ReplaceAllString(random.ReplaceAllString(name, "-*"), "*.pack")
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
	if op == "rename" {
		return &os.LinkError{Op: op, Old: "temp", New: name, Err: x.err}
	}
	return &fs.PathError{Op: op, Path: name, Err: x.err}
}

func (f *faultFS) OpenFile(name string, flag int, perm fs.FileMode) (writer.File, error) {
	var file *faultFile
	err := f.do("open", name, func() error {
		inner, err := f.FS.OpenFile(name, flag, perm)
		if err != nil {
			return err
		}
		file = &faultFile{File: inner, fs: f, name: name}
		return nil
	})
	if err != nil {
		if file != nil {
			_ = file.File.Close() // the answer got lost, so the caller cannot close the file
		}
		return nil, err
	}
	f.mu.Lock()
	f.files = append(f.files, file)
	f.mu.Unlock()
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

func (f *faultFS) Flock(name string, flag int) writer.Flock {
	return &faultFlock{Flock: f.FS.Flock(name, flag), fs: f, name: name}
}

func (l *faultFlock) TryLock() (ok bool, err error) { return l.try("flock", l.Flock.TryLock) }
func (l *faultFlock) TryRLock() (ok bool, err error) {
	return l.try("rflock", l.Flock.TryRLock)
}

func (l *faultFlock) try(op string, fn func() (bool, error)) (ok bool, err error) {
	err = l.fs.do(op, l.name, func() (err error) {
		ok, err = fn()
		return err
	})
	if err != nil {
		_ = l.Flock.Close() // a failed flock holds no lock
		return false, err
	}
	return ok, nil
}

func (l *faultFlock) Stat() (info fs.FileInfo, err error) {
	err = l.fs.do("fstat", l.name, func() (err error) {
		info, err = l.Flock.Stat()
		return err
	})
	return info, err
}

// Close closes even when it reports an error, as the kernel does.
func (l *faultFlock) Close() error {
	cerr := l.Flock.Close()
	return l.fs.do("unlock", l.name, func() error { return cerr })
}

func (f *faultFile) Read(p []byte) (n int, err error) {
	err = f.fs.do("read", f.name, func() (err error) {
		n, err = f.File.Read(p)
		return err
	})
	return n, err
}

func (f *faultFile) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.fs.do("read", f.name, func() (err error) {
		n, err = f.File.ReadAt(p, off)
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

func (f *faultFile) Sync() error {
	f.syncs++
	return f.fs.do("sync", f.name, f.File.Sync)
}

func (f *faultFile) Stat() (info fs.FileInfo, err error) {
	err = f.fs.do("fstat", f.name, func() (err error) {
		info, err = f.File.Stat()
		return err
	})
	return info, err
}

// Close closes even when it reports an error, as the kernel does.
func (f *faultFile) Close() error {
	f.closes++
	cerr := f.File.Close()
	return f.fs.do("close", f.name, func() error { return cerr })
}

// never checks what holds after every call: each opened file was closed once and
// synced at most once, whatever failed.
func (f *faultFS) never(t require.TestingT) {
	for _, file := range f.files {
		require.Equal(t, 1, file.closes, "closes of %s", file.name)
		require.LessOrEqual(t, file.syncs, 1, "syncs of %s", file.name)
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

// failFrom fails every call from the k-th on, as if the process was killed there.
func failFrom(k int, err error) func(int, string) fault {
	return func(n int, _ string) fault {
		if n >= k {
			return fault{err: err}
		}
		return fault{}
	}
}

// failCalls fails the calls of these names, every time.
func failCalls(m map[string]fault) func(int, string) fault {
	return func(_ int, call string) fault { return m[call] }
}

// classes repeats the table of package writer on purpose, so that a slip there fails a test.
var classes = map[syscall.Errno]writer.Class{
	syscall.ENOSPC: writer.ClassNoSpace, syscall.EDQUOT: writer.ClassNoSpace,
	syscall.EIO: writer.ClassDevice, syscall.ESTALE: writer.ClassDevice,
	syscall.EACCES: writer.ClassDenied, syscall.EROFS: writer.ClassDenied,
	syscall.EINTR: writer.ClassTransient, syscall.EMFILE: writer.ClassTransient, syscall.ENOMEM: writer.ClassTransient,
}

func openDir(t testing.TB, path string) writer.FS {
	t.Helper()
	dir, err := writer.OpenFS(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dir.Close()) })
	return dir
}

func openTemp(t testing.TB) writer.FS {
	t.Helper()
	return openDir(t, t.TempDir())
}

// loose returns a Store that makes no packs.
func loose(dir writer.FS) *Store { return NewPacking(dir, -1) }

// put stores a content with a new Hold.
func put(t testing.TB, s *Store, content string) Hash {
	t.Helper()
	h := hold(t, s)
	b := h.Batch()
	sum, size, err := b.Put(strings.NewReader(content), Hash{})
	require.NoError(t, err)
	require.EqualValues(t, len(content), size)
	require.Equal(t, hashOf(content), sum)
	require.NoError(t, b.Commit())
	require.NoError(t, h.Release())
	return sum
}

// put stores a content without a lock, because the lock's calls have their own tests.
func (s *Store) put(r io.Reader) (Hash, int64, error) {
	b := (&Hold{Reading: Reading{s: s}, fl: noLock{}}).Batch()
	defer b.Discard()
	sum, size, err := b.Put(r, Hash{})
	if err == nil {
		err = b.Commit()
	}
	return sum, size, err
}

type noLock struct{ writer.Flock }

func hold(t testing.TB, s *Store) *Hold {
	t.Helper()
	h, err := s.Hold(context.Background())
	require.NoError(t, err)
	return h
}

// plant writes a blob's file without the Store.
func plant(t testing.TB, dir writer.FS, h Hash, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(dir.Name(), h.shard()), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir.Name(), h.name()), []byte(content), 0o600))
}

// tree lists the files below a folder, with their contents.
func tree(t testing.TB, dir writer.FS) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir.Name(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir.Name(), path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		files[filepath.ToSlash(rel)] = string(data)
		if e.Name() == lockName {
			files[filepath.ToSlash(rel)] = "" // the record of the last sweep is not compared
		}
		return err
	}))
	return files
}

func temps(t testing.TB, dir writer.FS) (list []string) {
	t.Helper()
	for name := range tree(t, dir) {
		if strings.HasPrefix(filepath.Base(name), ".tmp-") {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// list returns the objects that All yields.
func list(t testing.TB, s *Store) (all []Hash) {
	t.Helper()
	for h, err := range s.All() {
		require.NoError(t, err)
		all = append(all, h)
	}
	return all
}
