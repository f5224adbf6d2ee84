//go:build unix

package open

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A named pipe is refused at once: opening it would wait for its other end.
func TestWithin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := os.Stat(Within(dir))
	require.NoError(t, err)
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err = os.OpenRoot(Within(pipe))
	require.ErrorIs(t, err, syscall.ENOTDIR)
}

func TestKind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link, pipe, socket := filepath.Join(dir, "f"), filepath.Join(dir, "l"), filepath.Join(dir, "p"), filepath.Join(dir, "s")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Symlink(file, link))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	defer l.Close()
	for name, want := range map[string]string{
		file: "a file", link: "a symlink", pipe: "a named pipe", socket: "a socket", dir: "a folder", os.DevNull: "a device",
	} {
		info, err := os.Lstat(name)
		require.NoError(t, err)
		require.Equal(t, want, Kind(info.Mode()), name)
	}
}
