//go:build unix

package documents_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/writer/documents"
)

// Nothing that somebody puts in a file's place is waited for, or leads outside.
func TestDocumentsAreFilesInside(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(at("file"), []byte("text"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	require.NoError(t, os.Symlink("file", at("inner")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret"), at("outer")))
	require.NoError(t, syscall.Mkfifo(at("fifo"), 0o600))
	require.NoError(t, os.Symlink("fifo", at("to-fifo")))
	require.NoError(t, os.Symlink("/dev/zero", at("zero")))
	require.NoError(t, unix.Mknod(at("socket"), unix.S_IFSOCK|0o600, 0))
	require.NoError(t, os.WriteFile(at("sparse"), nil, 0o600))
	require.NoError(t, os.Truncate(at("sparse"), 1<<40))
	docs, err := documents.Open(dir)
	require.NoError(t, err)
	defer docs.Close()
	require.Equal(t, dir, docs.Name())
	for name, want := range map[string]string{
		"file": "", "inner": "", "outer": "escapes", "zero": "escapes", "fifo": "a named pipe", "to-fifo": "a named pipe",
		"socket": "a socket", ".": "a folder", "none": "no such file", "fifo/x": "not a directory", "../x": "invalid argument",
		"sparse": "more than the 1024 that are read",
	} {
		data, err := within(t, name, func() ([]byte, error) { return documents.Read(docs, name, 1024) })
		if want == "" {
			require.NoError(t, err, name)
			require.Equal(t, "text", string(data), name)
			continue
		}
		require.ErrorContains(t, err, want, name)
		if name != "../x" {
			var pe *fs.PathError
			require.ErrorAs(t, err, &pe, name)
		}
	}
	_, err = within(t, "folder", func() ([]byte, error) { _, err := documents.Open(at("fifo")); return nil, err })
	require.ErrorContains(t, err, "fifo: not a directory")
	for _, name := range []string{"fifo", "to-fifo", "zero", "."} {
		_, err := within(t, name, func() ([]byte, error) { return documents.ReadFile(at(name), 1024) })
		require.ErrorContains(t, err, at(name), name)
	}
}

// What stands at a name when it is opened may be another than what stood there when it
// was looked at: the open itself waits for nobody.
func TestAnOpenDoesNotWait(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(name, 0o600))
	_, err := within(t, "append", func() ([]byte, error) { _, err := documents.AppendFile(name); return nil, err })
	require.ErrorContains(t, err, "a named pipe")
	r, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	defer r.Close()
	_, err = within(t, "append", func() ([]byte, error) { _, err := documents.AppendFile(name); return nil, err })
	require.ErrorContains(t, err, "a named pipe", "whoever reads it")
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(filepath.Join(dir, "other"), link))
	_, err = documents.AppendFile(link)
	require.ErrorContains(t, err, "a symlink")
	require.NoFileExists(t, filepath.Join(dir, "other"))
	for range 2 {
		f, err := documents.AppendFile(filepath.Join(dir, "log"))
		require.NoError(t, err)
		_, err = f.WriteString("line\n")
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	data, err := os.ReadFile(filepath.Join(dir, "log"))
	require.NoError(t, err)
	require.Equal(t, "line\nline\n", string(data))
}

// within fails the test where fn waits for a FIFO.
func within(t *testing.T, what string, fn func() ([]byte, error)) (data []byte, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); data, err = fn() }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s hangs", what)
	}
	return data, err
}
