//go:build unix

package writer_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
)

// ways returns the same folder opened in each way: by its path, which may use openat2, with
// Sub, and with OpenToList.
func ways(t *testing.T, parent string) map[string]writer.FS {
	t.Helper()
	byPath, err := writer.OpenFS(filepath.Join(parent, "in"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, byPath.Close()) })
	above, err := writer.OpenFS(parent)
	require.NoError(t, err)
	defer above.Close()
	beneath, err := above.Sub("in")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, beneath.Close()) })
	listed, err := writer.OpenToList(above, "in")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listed.Close()) })
	return map[string]writer.FS{"by path": byPath, "beneath": beneath, "to list": listed}
}

func TestReadHead(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	in := filepath.Join(top, "in")
	require.NoError(t, os.MkdirAll(filepath.Join(in, "a", "folder"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(in, "a", "file"), []byte("0123456789"), 0o600))
	written := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	require.NoError(t, os.Chtimes(filepath.Join(in, "a", "file"), written, written))
	require.NoError(t, os.WriteFile(filepath.Join(in, "a", "empty"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(top, "outside"), []byte("secret"), 0o600))
	require.NoError(t, os.Symlink("file", filepath.Join(in, "a", "link")))
	require.NoError(t, os.Symlink("..", filepath.Join(in, "up")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(in, "a", "fifo"), 0o600))
	for way, dir := range ways(t, top) {
		buf := make([]byte, 4)
		n, modified, err := writer.ReadHead(dir, "a/file", buf)
		require.NoError(t, err, way)
		require.True(t, modified.Equal(written), way)
		require.Equal(t, "0123", string(buf[:n]), way)
		n, _, err = writer.ReadHead(dir, "a/file", make([]byte, 20))
		require.NoError(t, err, way)
		require.Equal(t, 10, n, way)
		n, _, err = writer.ReadHead(dir, "a/empty", buf)
		require.NoError(t, err, way)
		require.Zero(t, n, way)
		_, _, err = writer.ReadHead(dir, "a/none", buf)
		require.ErrorIs(t, err, fs.ErrNotExist, way)
		for _, name := range []string{"a/link", "up/outside", "../outside", "a/../../outside", "a/fifo", "a/folder", filepath.Join(top, "outside")} {
			_, _, err = writer.ReadHead(dir, name, buf)
			require.Error(t, err, "%s: %s", way, name)
		}
	}
}

func TestLocked(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	in := filepath.Join(top, "in")
	require.NoError(t, os.Mkdir(in, 0o700))
	require.NoError(t, os.Symlink("lock", filepath.Join(in, "link")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(in, "fifo"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(in, "one"), nil, 0o600))
	require.NoError(t, os.Link(filepath.Join(in, "one"), filepath.Join(in, "two")))
	for way, dir := range ways(t, top) {
		look := func(want ...any) {
			held, ever, err := writer.Locked(dir, "lock-"+way)
			require.Equal(t, want, []any{held, ever, err}, way)
		}
		look(false, false, nil)
		lock, err := writer.TryLock(dir, "lock-"+way, writer.OwnerOf(os.Getpid(), "test"))
		require.NoError(t, err)
		look(true, true, nil)
		require.NoError(t, lock.Unlock())
		look(false, true, nil)
		for _, name := range []string{"link", "fifo", "two"} {
			_, _, err := writer.Locked(dir, name)
			require.ErrorIs(t, err, writer.ErrInvalid, "%s: %s", way, name)
		}
	}
}

// The Info of a listed entry is that of the file in the folder that was listed, even when
// another folder has its name since.
func TestReadDirStaysInside(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	in := filepath.Join(top, "in")
	require.NoError(t, os.MkdirAll(filepath.Join(in, "a"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(in, "a", "file"), []byte("inside"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(top, "other"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(top, "other", "a"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(top, "other", "a", "file"), []byte("x"), 0o600))
	require.NoError(t, os.Symlink("a", filepath.Join(in, "link")))
	all := ways(t, top)
	listed := map[string]fs.DirEntry{}
	for way, dir := range all {
		entries, err := dir.ReadDir("a")
		require.NoError(t, err, way)
		require.Len(t, entries, 1, way)
		listed[way] = entries[0]
		_, err = dir.ReadDir("link")
		require.ErrorIs(t, err, writer.ErrInvalid, way)
		_, err = dir.ReadDir("../other")
		require.Error(t, err, way)
	}
	require.NoError(t, os.Rename(in, filepath.Join(top, "moved")))
	require.NoError(t, os.Rename(filepath.Join(top, "other"), in))
	for way, e := range listed {
		info, err := e.Info()
		require.NoError(t, err, way)
		require.EqualValues(t, len("inside"), info.Size(), way)
	}
}
