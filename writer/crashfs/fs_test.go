package crashfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
)

func TestErrors(t *testing.T) {
	d := New(Ext4)
	dir := d.FS()
	putFile(t, dir, "file", "x")
	require.NoError(t, dir.Mkdir("full", 0o700))
	require.NoError(t, dir.Mkdir("full/sub", 0o700))
	require.NoError(t, dir.Mkdir("empty", 0o700))
	require.NoError(t, dir.Symlink("file", "link"))
	require.NoError(t, dir.Symlink("../out", "out"))
	require.NoError(t, dir.Symlink("loop", "loop"))
	require.NoError(t, dir.Symlink("/etc", "abs"))
	open := func(name string, flag int) error {
		_, err := dir.OpenFile(name, flag, 0o600)
		return err
	}
	stat := func(name string) error {
		_, err := dir.Stat(name)
		return err
	}
	tests := []struct {
		name string
		err  error
		want error
	}{
		{"open missing", open("none", os.O_RDONLY), syscall.ENOENT},
		{"open in missing", open("none/a", os.O_CREATE|os.O_WRONLY), syscall.ENOENT},
		{"open in file", open("file/a", os.O_CREATE|os.O_WRONLY), syscall.ENOTDIR},
		{"open exclusive", open("file", os.O_CREATE|os.O_EXCL|os.O_WRONLY), syscall.EEXIST},
		{"open symlink", open("link", os.O_RDONLY), syscall.ELOOP},
		{"open folder", open("full", os.O_WRONLY), syscall.EISDIR},
		{"long name", open(strings.Repeat("x", 256), os.O_CREATE|os.O_WRONLY), syscall.ENAMETOOLONG},
		{"dotdot", open("full/../file", os.O_RDONLY), syscall.EINVAL},
		{"absolute", open("/file", os.O_RDONLY), syscall.EINVAL},
		{"empty", open("", os.O_RDONLY), syscall.ENOENT},
		{"stat out", stat("out"), syscall.EINVAL},
		{"stat absolute link", stat("abs/x"), syscall.EINVAL},
		{"stat loop", stat("loop"), syscall.ELOOP},
		{"mkdir", dir.Mkdir("file", 0o700), syscall.EEXIST},
		{"remove full", dir.Remove("full"), syscall.ENOTEMPTY},
		{"remove missing", dir.Remove("none"), syscall.ENOENT},
		{"remove root", dir.Remove("."), syscall.EINVAL},
		{"removeall missing", dir.RemoveAll("none"), nil},
		{"rename missing", dir.Rename("none", "a"), syscall.ENOENT},
		{"rename over full", dir.Rename("empty", "full"), syscall.ENOTEMPTY},
		{"rename folder over file", dir.Rename("empty", "file"), syscall.ENOTDIR},
		{"rename file over folder", dir.Rename("file", "empty"), syscall.EISDIR},
		{"rename into itself", dir.Rename("full", "full/sub/x"), syscall.EINVAL},
		{"rename to itself", dir.Rename("file", "file"), nil},
		{"link missing", dir.Link("none", "a"), syscall.ENOENT},
		{"link taken", dir.Link("file", "full"), syscall.EEXIST},
		{"link folder", dir.Link("full", "a"), syscall.EPERM},
		{"symlink taken", dir.Symlink("x", "file"), syscall.EEXIST},
		{"syncdir of file", dir.SyncDir("file"), syscall.ENOTDIR},
		{"syncdir missing", dir.SyncDir("none"), syscall.ENOENT},
	}
	for _, tt := range tests {
		if tt.want == nil {
			require.NoError(t, tt.err, tt.name)
			continue
		}
		require.ErrorIs(t, tt.err, tt.want, tt.name)
		var pe *fs.PathError
		var le *os.LinkError
		require.True(t, errors.As(tt.err, &pe) || errors.As(tt.err, &le), tt.name)
	}
	_, err := dir.ReadDir("file")
	require.ErrorIs(t, err, syscall.ENOTDIR)
	_, err = dir.Sub("file")
	require.ErrorIs(t, err, syscall.ENOTDIR)
	_, err = dir.Readlink("file")
	require.ErrorIs(t, err, syscall.EINVAL)
	target, err := dir.Readlink("link")
	require.NoError(t, err)
	require.Equal(t, "file", target)
	info, err := dir.Stat("link")
	require.NoError(t, err)
	require.Equal(t, int64(1), info.Size())
	require.Equal(t, []string{"abs", "empty", "file", "full", "link", "loop", "out"}, names(t, dir, "."))
	require.NoError(t, dir.Rename("full", "empty"))
	require.NoError(t, dir.RemoveAll("empty"))
	require.Equal(t, []string{"abs", "file", "link", "loop", "out"}, names(t, dir, "."))
}

func TestHandles(t *testing.T) {
	d := New(Ext4)
	dir := d.FS()
	f := open(t, dir, "a", os.O_CREATE|os.O_WRONLY)
	_, err := f.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.EBADF)
	require.NoError(t, dir.Remove("a"))
	putFile(t, dir, "a", "new")
	_, err = f.Write([]byte("nowhere"))
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.Equal(t, "new", read(t, dir, "a"))
	info, err := f.Stat()
	require.NoError(t, err)
	require.Equal(t, int64(7), info.Size())
	there, err := dir.Lstat("a")
	require.NoError(t, err)
	require.False(t, writer.SameFile(info, there))
	require.Equal(t, fs.FileMode(0o600), there.Mode())
	require.True(t, there.ModTime().After(d.time(0)))
	require.NoError(t, f.Close())
	for _, err := range []error{f.Close(), f.Sync(), f.Datasync(), f.Chmod(0o600)} {
		require.ErrorIs(t, err, os.ErrClosed)
	}
	_, err = f.Write(nil)
	require.ErrorIs(t, err, os.ErrClosed)
	f = open(t, dir, "a", os.O_RDONLY)
	_, err = f.Write([]byte("x"))
	require.ErrorIs(t, err, syscall.EBADF)
	require.NoError(t, dir.Link("a", "b"))
	other, err := dir.Lstat("b")
	require.NoError(t, err)
	require.True(t, writer.SameFile(there, other))
	require.NoError(t, dir.Close())
	require.ErrorIs(t, dir.Mkdir("x", 0o700), os.ErrClosed)
	require.ErrorIs(t, dir.SyncDir("."), os.ErrClosed)
}

// ReadAt reads at an offset, whatever the file's own is, and says where it ends.
func TestReadAt(t *testing.T) {
	d := New(Ext4)
	putSynced(t, d.FS(), "a", "0123456789")
	f := open(t, d.FS(), "a", os.O_RDONLY)
	b := make([]byte, 4)
	n, err := f.ReadAt(b, 3)
	require.NoError(t, err)
	require.Equal(t, "3456", string(b[:n]))
	n, err = f.ReadAt(b, 8)
	require.Equal(t, io.EOF, err)
	require.Equal(t, "89", string(b[:n]))
	_, err = f.ReadAt(b, 10)
	require.Equal(t, io.EOF, err)
	_, err = f.ReadAt(b, -1)
	require.ErrorIs(t, err, syscall.EINVAL)
	n, err = f.Read(b)
	require.NoError(t, err)
	require.Equal(t, "0123", string(b[:n]))
	d.SetHook(func(Op) Fault { return Fault{Err: syscall.EIO} })
	_, err = f.ReadAt(b, 0)
	require.ErrorIs(t, err, syscall.EIO)
}

// A mode is synced with the file, not by Datasync.
func TestChmod(t *testing.T) {
	d := New(Ext4)
	putSynced(t, d.FS(), "a", "")
	f := open(t, d.FS(), "a", os.O_WRONLY)
	require.NoError(t, f.Chmod(0o644))
	mode := func(d *Disk) fs.FileMode {
		info, err := d.FS().Stat("a")
		require.NoError(t, err)
		return info.Mode()
	}
	require.NoError(t, f.Datasync())
	require.Equal(t, fs.FileMode(0o644), mode(d))
	require.Equal(t, fs.FileMode(0o600), mode(nothing(d)))
	require.Equal(t, fs.FileMode(0o644), mode(all(t, d)))
	require.NoError(t, f.Sync())
	require.Equal(t, fs.FileMode(0o644), mode(nothing(d)))
}

func TestSubFollowsRename(t *testing.T) {
	d := New(Ext4)
	dir := d.FS()
	require.Equal(t, "/sim", dir.Name())
	require.NoError(t, dir.Mkdir("x", 0o700))
	sub, err := dir.Sub("x")
	require.NoError(t, err)
	require.Equal(t, "/sim/x", sub.Name())
	require.NoError(t, dir.Rename("x", "y"))
	putFile(t, sub, "a", "1")
	require.Equal(t, "1", read(t, dir, "y/a"))
	require.NoError(t, dir.RemoveAll("y"))
	require.NoError(t, dir.Mkdir("x", 0o700))
	require.ErrorIs(t, sub.Mkdir("z", 0o700), syscall.ENOENT)
	_, err = sub.Stat(".")
	require.ErrorIs(t, err, syscall.ENOENT)
	require.NoError(t, dir.SyncDir("."))
	require.ErrorIs(t, sub.SyncDir("."), syscall.ENOENT)
}

func TestFlock(t *testing.T) {
	d := New(Ext4)
	dir := d.FS()
	_, err := dir.Flock("lock", os.O_RDWR).TryLock()
	require.ErrorIs(t, err, fs.ErrNotExist)
	putFile(t, dir, "lock", "")
	a, b := dir.Flock("lock", os.O_RDWR), dir.Flock("lock", os.O_RDONLY)
	try := func(want bool, fn func() (bool, error)) {
		t.Helper()
		ok, err := fn()
		require.NoError(t, err)
		require.Equal(t, want, ok)
	}
	try(true, a.TryLock)
	try(true, a.TryLock)
	try(false, b.TryLock)
	try(false, b.TryRLock)
	s := d.Snapshot().FS().Flock("lock", os.O_RDWR)
	try(true, s.TryLock)
	require.NoError(t, a.Close())
	try(true, b.TryRLock)
	try(true, a.TryRLock)
	try(false, a.TryLock)
	require.NoError(t, b.Unlock())
	try(true, a.TryLock)
	try(false, b.TryRLock)
	try(true, a.TryRLock)
	try(true, b.TryRLock)
	info, err := a.Stat()
	require.NoError(t, err)
	require.NoError(t, a.Unlock())
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	there, err := a.Stat()
	require.NoError(t, err)
	require.True(t, writer.SameFile(info, there))
	require.Empty(t, d.locks)

	// A lock is on the file, not on the name.
	try(true, a.TryLock)
	require.NoError(t, dir.Remove("lock"))
	putFile(t, dir, "lock", "")
	try(true, b.TryLock)
}

func TestConcurrentUse(t *testing.T) {
	d := New(Ext4)
	dir := d.FS()
	d.SetHook(func(Op) Fault { d.Snapshot(); return Fault{} })
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for n := range 50 {
				name := fmt.Sprintf("%d-%d", g, n%3)
				_ = writer.ReplaceFile(dir, name, []byte(name), 0o600)
				s := d.Snapshot()
				for _, v := range s.Variants(nil, 2)[:1] {
					s.Crash(v)
				}
			}
		})
	}
	wg.Wait()
	for g := range 4 {
		for n := range 3 {
			name := fmt.Sprintf("%d-%d", g, n)
			require.Equal(t, name, read(t, nothing(d).FS(), name))
		}
	}
}

// Names fold, and each is kept as it was made, also by what takes its place.
func TestFolding(t *testing.T) {
	d := New(Folding)
	dir := d.FS()
	require.NoError(t, dir.Mkdir("Dir", 0o700))
	putFile(t, dir, "dir/File", "one")
	_, err := dir.OpenFile("DIR/file", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	require.ErrorIs(t, err, syscall.EEXIST)
	require.ErrorIs(t, dir.Mkdir("DIR", 0o700), syscall.EEXIST)
	require.Equal(t, "one", read(t, dir, "DIR/fILE"))
	one, err := dir.Lstat("DIR/file")
	require.NoError(t, err)
	other, err := dir.Lstat("Dir/File")
	require.NoError(t, err)
	require.True(t, writer.SameFile(one, other))
	require.NoError(t, dir.Rename("Dir/File", "Dir/FILE"))
	require.Equal(t, []string{"File"}, names(t, dir, "Dir"), "one name of one file")
	putFile(t, dir, "new", "two")
	require.NoError(t, dir.Rename("new", "dir/FILE"))
	require.Equal(t, []string{"File"}, names(t, dir, "Dir"))
	require.Equal(t, "two", read(t, dir, "dir/file"))
	require.NoError(t, dir.Remove("dir/FILE"))
	require.Equal(t, []string{}, names(t, dir, "Dir"))
	require.NoError(t, dir.RemoveAll("DIR"))
	require.Equal(t, []string{}, names(t, dir, "."))
}

// A folder's mode is durable when the folder was synced.
func TestFolderModes(t *testing.T) {
	d := New(Ext4)
	dir := d.FS()
	require.NoError(t, dir.Mkdir("a", 0o700))
	require.NoError(t, dir.SyncDir("."))
	mode := func(d *Disk) fs.FileMode {
		info, err := d.FS().Lstat("a")
		require.NoError(t, err)
		return info.Mode().Perm()
	}
	require.ErrorIs(t, dir.Chmod("none", 0o500), syscall.ENOENT)
	require.NoError(t, dir.Chmod("a", 0o500))
	require.Equal(t, fs.FileMode(0o500), mode(d))
	require.Equal(t, fs.FileMode(0o700), mode(nothing(d)))
	require.Equal(t, fs.FileMode(0o500), mode(all(t, d)))
	require.NoError(t, dir.SyncDir("a"))
	require.Equal(t, fs.FileMode(0o500), mode(nothing(d)))
}
