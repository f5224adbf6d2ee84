package lifecycle

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
)

func TestHeads(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	sessions := filepath.Join(top, "sessions")
	require.NoError(t, os.MkdirAll(filepath.Join(sessions, "a", "folder"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(sessions, "a", "state.json"), []byte("0123456789"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(top, "outside"), []byte("secret"), 0o600))
	require.NoError(t, os.Symlink("state.json", filepath.Join(sessions, "a", "link")))
	require.NoError(t, os.Symlink("a", filepath.Join(sessions, "b")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(sessions, "a", "fifo"), 0o600))
	dir, err := writer.OpenFS(sessions)
	require.NoError(t, err)
	defer dir.Close()
	h := openHeads(dir)
	defer h.close()

	buf := make([]byte, 4)
	n, ok := h.read("a/state.json", buf)
	if !ok {
		t.Skip("no openat2 here")
	}
	require.Equal(t, "0123", string(buf[:n]))
	for _, name := range []string{"a/link", "b/state.json", "../outside", "a/../../outside", "a/fifo", "a/folder", "a/none", filepath.Join(top, "outside")} {
		_, ok := h.read(name, buf)
		require.False(t, ok, name)
	}
}

func TestHeadsOfAFolderThatMoved(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	path := filepath.Join(top, "sessions")
	require.NoError(t, os.Mkdir(path, 0o700))
	dir, err := writer.OpenFS(path)
	require.NoError(t, err)
	defer dir.Close()
	require.NoError(t, os.Rename(path, filepath.Join(top, "moved")))
	require.Nil(t, openHeads(dir).File)
	require.NoError(t, os.Mkdir(path, 0o700))
	require.Nil(t, openHeads(dir).File, "another folder has its name now")
}
