//go:build linux || darwin

package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// during does something in the middle of reading one file, at the first n readings.
func during(name string, n int32, do func()) Options {
	var times atomic.Int32
	return Options{Hash: func(ctx context.Context, p string, r io.Reader) (blob.Hash, int64, error) {
		if p == name && times.Add(1) <= n {
			first := make([]byte, 1)
			_, _ = io.ReadFull(r, first)
			do()
			r = io.MultiReader(bytes.NewReader(first), r)
		}
		return sum(ctx, p, r)
	}}
}

// Files change, vanish and become something else while they are read.
func TestChangedWhileRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		times int32
		do    func(x tree)
		want  string // the content recorded, "-" for none
		skips []Skip
	}{
		"once":       {1, func(x tree) { x.write("f", "other") }, "other", nil},
		"grown":      {1, func(x tree) { x.write("f", strings.Repeat("long", 1000)) }, strings.Repeat("long", 1000), nil},
		"every time": {1000, func(x tree) { appendTo(x, "f") }, "-", []Skip{{Path: "f", Reason: Unstable}}},
		"vanished":   {1, func(x tree) { appendTo(x, "f"); _ = os.Remove(x.path("f")) }, "-", nil},
		"folder":     {1, func(x tree) { appendTo(x, "f"); _ = os.Remove(x.path("f")); _ = os.Mkdir(x.path("f"), 0o755) }, "folder", nil},
		"link":       {1, func(x tree) { appendTo(x, "f"); _ = os.Remove(x.path("f")); _ = os.Symlink("g", x.path("f")) }, "link", nil},
		"fifo":       {1, func(x tree) { appendTo(x, "f"); _ = os.Remove(x.path("f")); fifo(x, "f") }, "-", []Skip{{Path: "f", Reason: Special}}},
		"mode":       {1, func(x tree) { _ = os.Chmod(x.path("f"), 0o600) }, "first", nil},
		"put back":   {1, func(x tree) { putBack(x, "f", "secnd") }, "secnd", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTree(t)
			x.write("f", "first")
			x.write("g", "g")
			s, err := Take(t.Context(), x.root, nil, during("f", tt.times, func() { tt.do(x) }))
			require.NoError(t, err)
			require.Empty(t, s.Unstable)
			require.ElementsMatch(t, tt.skips, s.Skipped)
			require.NotNil(t, s.Find("g"))
			f := s.Find("f")
			switch tt.want {
			case "-":
				require.Nil(t, f)
				return
			case "folder":
				require.True(t, f.Mode.IsDir())
				return
			case "link":
				require.Equal(t, "g", f.Target)
				return
			}
			want, _, _ := sum(t.Context(), "", strings.NewReader(tt.want))
			require.Equal(t, want, f.Hash)
			info, err := os.Lstat(x.path("f"))
			require.NoError(t, err)
			require.Equal(t, info.Size(), f.Size)
			require.Equal(t, info.Mode(), f.Mode)
		})
	}
}

func appendTo(x tree, name string) {
	f, err := os.OpenFile(x.path(name), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(x.t, err)
	_, _ = f.WriteString("more")
	_ = f.Close()
}

// putBack changes a content within its size and puts the modification time back:
// the change time shows it, once the clock has ticked.
func putBack(x tree, name, content string) {
	before, err := os.Lstat(x.path(name))
	require.NoError(x.t, err)
	for {
		require.NoError(x.t, os.WriteFile(x.path(name), []byte(content), 0o644))
		require.NoError(x.t, os.Chtimes(x.path(name), time.Time{}, before.ModTime()))
		after, err := os.Lstat(x.path(name))
		require.NoError(x.t, err)
		if statOf(after).chgTime != statOf(before).chgTime || statOf(after).chgTime == 0 {
			return
		}
	}
}

// Whoever puts the size and the modification time back cannot put the change time back.
func TestTimePutBack(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.write("f", "first")
	base := x.take(nil, Options{now: func() time.Time { return time.Now().Add(time.Hour) }})
	putBack(x, "f", "secnd")
	changes := Compare(base, x.take(base, Options{}))
	require.Len(t, changes, 1)
	require.Equal(t, Modified, changes[0].Kind)
}

// A folder that became a symlink after it was looked at is not gone into.
func TestFolderSwapped(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	require.NoError(t, os.Symlink(".", x.path("link")))
	top, _, err := openTop(x.root)
	require.NoError(t, err)
	defer top.close()
	require.IsType(t, fdFolder(0), top)
	_, err = top.open("link", "link")
	require.Equal(t, writer.ClassInvalid, writer.ClassOf(err))
}

// What stands is not read, and costs no more than what its stat says.
func TestReadsOnlyWhatMayDiffer(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	for _, name := range []string{"a", "b", "d/c", "d/e"} {
		x.write(name, name)
	}
	later := func() time.Time { return time.Now().Add(time.Hour) }
	base := x.take(nil, Options{now: later})
	var read atomic.Int32
	opts := Options{now: later, tick: func() int64 { return math.MaxInt64 }, Hash: func(ctx context.Context, p string, r io.Reader) (blob.Hash, int64, error) {
		read.Add(1)
		return sum(ctx, p, r)
	}}
	again := x.take(base, opts)
	require.Zero(t, read.Load())
	require.Equal(t, base.Files, again.Files)
	x.write("b", "longer")
	require.NoError(t, os.Remove(x.path("d/c")))
	x.write("d/new", "new")
	require.Equal(t, []string{"a", "b", "d/e", "d/new"}, paths(x.take(again, opts)))
	require.EqualValues(t, 2, read.Load())
}

func TestBounds(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.write("big", "12345")
	x.write("small", "1234")
	_, err := Take(t.Context(), x.root, nil, Options{MaxFiles: 1})
	require.ErrorIs(t, err, ErrTooMany)
	s, err := Take(t.Context(), x.root, nil, Options{MaxFiles: 1, MaxBytes: 4})
	require.NoError(t, err)
	require.Len(t, s.Skipped, 1)
	require.NotZero(t, s.Skipped[0].State)
	require.Equal(t, []Skip{{Path: "big", Reason: TooLarge, State: s.Skipped[0].State}}, s.Skipped)

	full := x.take(nil, Options{MaxFiles: 2})
	require.Empty(t, Compare(full, s), "what was skipped was not deleted")
	require.Empty(t, Compare(s, full), "nor created")

	x = newTree(t)
	deep := strings.Repeat("d/", maxDepth+1)
	x.write(deep+"f", "x")
	s, err = Take(t.Context(), x.root, nil, Options{})
	require.NoError(t, err)
	require.Equal(t, []Skip{{Path: path.Clean(deep), Reason: TooDeep}}, s.Skipped)
}

func TestPaths(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	for _, name := range []string{"a/b/c", "a/d", "ab", "e"} {
		x.write(name, name)
	}
	require.NoError(t, os.Symlink("a", x.path("link")))
	s := x.take(nil, Options{Paths: []string{"a/b", "a/./", "link", "gone", "ab/below"}})
	require.Equal(t, []string{"a", "ab/below", "gone", "link"}, s.Paths)
	require.Equal(t, []string{"a/b/c", "a/d", "link"}, paths(s), "each once, the link as a link")
	require.Empty(t, Compare(x.take(nil, Options{}), s), "what it is not of was not deleted")

	s, err := Take(t.Context(), x.root, nil, Options{Paths: []string{"link/d"}})
	require.NoError(t, err)
	require.Equal(t, []Skip{{Path: "link/d", Reason: Symlinked}}, s.Skipped)
	for _, bad := range []string{"", "/a", "..", "a/../../b", "a\x00", ".git", "a/.lopen/x"} {
		_, err := Take(t.Context(), x.root, nil, Options{Paths: []string{bad}})
		require.ErrorIs(t, err, writer.ErrInvalid, bad)
	}
	require.Nil(t, x.take(nil, Options{Paths: []string{"a", "."}}).Paths)
}

// No link leads anywhere, and what is no file is named.
func TestSpecial(t *testing.T) {
	t.Parallel()
	x, outside := newTree(t), newTree(t)
	outside.write("secret", "secret")
	require.NoError(t, os.Symlink(outside.dir, x.path("out")))
	require.NoError(t, os.Symlink(outside.path("secret"), x.path("file")))
	fifo(x, "pipe")
	s, err := Take(t.Context(), x.root, nil, Options{})
	require.NoError(t, err)
	require.Equal(t, []Skip{{Path: "pipe", Reason: Special}}, s.Skipped)
	require.Equal(t, []string{"file", "out"}, paths(s))
	require.Equal(t, outside.dir, s.Find("out").Target)

	// One that takes a folder's place after it was listed.
	x = newTree(t)
	x.write("d/f", "inside")
	require.NoError(t, os.MkdirAll(outside.path("d"), 0o755))
	outside.write("f", "outside")
	s, err = Take(t.Context(), swapFS{x.root, func() {
		_ = os.Rename(x.path("d"), x.path("moved"))
		_ = os.Symlink(outside.dir, x.path("d"))
	}}, nil, Options{})
	require.NoError(t, err)
	require.Nil(t, s.Find("d/f"))
	require.Equal(t, []string{"d", "moved/f"}, paths(s), "each once, where it is now")
	require.Equal(t, outside.dir, s.Find("d").Target)
}

// swapFS does something before a file is opened for reading.
type swapFS struct {
	writer.FS
	swap func()
}

func (s swapFS) Lstat(name string) (fs.FileInfo, error) {
	if name == "d/f" {
		s.swap()
	}
	return s.FS.Lstat(name)
}

// failFS fails reading.
type failFS struct {
	writer.FS
	err error
}

func (f failFS) OpenFile(name string, flag int, perm fs.FileMode) (writer.File, error) {
	if name == "bad" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: f.err}
	}
	return f.FS.OpenFile(name, flag, perm)
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.write("bad", "bad")
	x.write("good", "good")
	full := x.take(nil, Options{})
	s, err := Take(t.Context(), failFS{x.root, syscall.EACCES}, nil, Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"good"}, paths(s))
	require.Equal(t, Unreadable, s.Skipped[0].Reason)
	require.Contains(t, s.Skipped[0].Err, "permission denied")
	require.Empty(t, Compare(full, s))
	again, err := Decode(s.Encode())
	require.NoError(t, err)
	require.Equal(t, s.Skipped, again.Skipped)
}

// Errors of who keeps the contents end it, as the context does.
func TestEnds(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.write("f", "f")
	full := errors.New("disk full")
	_, err := Take(t.Context(), x.root, nil, Options{Hash: func(context.Context, string, io.Reader) (blob.Hash, int64, error) { return blob.Hash{}, 0, full }})
	require.ErrorIs(t, err, full)
	require.ErrorContains(t, err, "hash f")
	ctx, cancel := context.WithCancel(t.Context())
	_, err = Take(ctx, x.root, nil, during("f", 1, cancel))
	require.ErrorIs(t, err, context.Canceled)
}

// A simulated disk has no descriptors: the other implementation finds the same.
func TestOnAnyFS(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	root := disk.FS()
	for _, dir := range []string{"d", "d/empty", "d/ignored", ".git"} {
		require.NoError(t, root.Mkdir(dir, 0o755))
	}
	for name, content := range map[string]string{"a": "a", "d/b": "b", "d/ignored/c": "c", ".gitignore": "ignored/\n", ".git/config": "x"} {
		require.NoError(t, writer.ReplaceFile(root, name, []byte(content), 0o644))
	}
	require.NoError(t, root.Symlink("a", "d/link"))
	s, err := Take(t.Context(), root, nil, Options{})
	require.NoError(t, err)
	require.Empty(t, s.Skipped)
	require.Equal(t, []string{".gitignore", "a", "d/b", "d/link"}, paths(s))
	require.Equal(t, []string{"d", "d/empty"}, folders(s))
	require.NoError(t, Remember(root, "kept/files.bin", s, nil, ""))
	again, err := load(root, "kept/files.bin")
	require.NoError(t, err)
	require.Equal(t, s.Files, again.Files)
	require.True(t, s.At.Equal(again.At))
}
func fifo(x tree, name string) { require.NoError(x.t, unix.Mkfifo(x.path(name), 0o600)) }

// Only leaves out before anything is read, and with it empty folders.
func TestOnly(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	for _, name := range []string{"a.go", "a.md", "dir/b.go", "dir/b.md", "fifo.go/x"} {
		x.write(name, name)
	}
	require.NoError(t, os.Mkdir(x.path("empty.go"), 0o700))
	fifo(x, "fifo.md")
	s := x.take(nil, Options{
		Only: func(path string) bool { return strings.HasSuffix(path, ".go") },
		Hash: func(ctx context.Context, path string, r io.Reader) (blob.Hash, int64, error) {
			require.Equal(t, ".go", path[len(path)-3:])
			return sum(ctx, path, r)
		},
	})
	require.Equal(t, []string{"a.go", "dir/b.go"}, paths(s))
	require.False(t, s.Settled())
	s.At = s.At.Add(granularity + time.Second)
	require.True(t, s.Settled())
	require.True(t, (&Snapshot{At: s.At}).Settled())
}
