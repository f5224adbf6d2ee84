//go:build unix

package process

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// What stands in the place of the lock's file and is no file of its own is refused: nothing
// is written through a link, and a FIFO hangs nobody.
func TestOnlyAFileOfItsOwnIsALock(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	at := func(name string) string { return filepath.Join(dir.Name(), name) }
	require.NoError(t, os.WriteFile(at("precious"), []byte("precious"), 0o600))
	require.NoError(t, os.Link(at("precious"), at("hard link")))
	require.NoError(t, os.Symlink("precious", at("symlink")))
	require.NoError(t, os.Symlink("missing", at("dangling")))
	require.NoError(t, os.Mkdir(at("folder"), 0o700))
	require.NoError(t, syscall.Mkfifo(at("fifo"), 0o600))
	for _, name := range []string{"hard link", "symlink", "dangling", "folder", "fifo"} {
		for what, call := range map[string]func() error{
			"hold": func() error { _, err := Hold(dir, name); return err },
			"find": func() error { _, err := FindOrphan(dir, name); return err },
			"end":  func() error { _, err := ReadEnded(dir, name); return err },
		} {
			if what == "end" && name == "hard link" {
				continue // which is only read
			}
			err := call()
			require.ErrorIs(t, err, writer.ErrInvalid, "%s: %s", what, name)
			require.ErrorContains(t, err, at(name))
		}
	}
	data, err := os.ReadFile(at("precious"))
	require.NoError(t, err)
	require.Equal(t, "precious", string(data))
	require.NoFileExists(t, at("missing"))
}

// A simulated disk has no files that a command could inherit.
func TestNothingIsInheritedFromASimulatedDisk(t *testing.T) {
	t.Parallel()
	dir := crashfs.New(crashfs.Ext4).FS()
	_, err := Hold(dir, childName)
	require.ErrorIs(t, err, writer.ErrInvalid)
	o, err := FindOrphan(dir, childName)
	require.NoError(t, err)
	require.Nil(t, o)
	e, err := ReadEnded(dir, childName)
	require.NoError(t, err)
	require.Nil(t, e)
}
