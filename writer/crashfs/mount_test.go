package crashfs

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/mount"
)

// A mount point of a disk is told from its folder, and is neither renamed, replaced nor removed.
func TestMount(t *testing.T) {
	t.Parallel()
	d := New(Ext4)
	dir := sessionOn(t, d)
	require.NoError(t, d.Mount("in/s/history", true))
	found, err := mount.Find(dir, "in")
	require.NoError(t, err)
	require.Equal(t, "in/s/history", found)
	sub, err := dir.Sub("in/s/history")
	require.NoError(t, err)
	is, err := mount.Point(sub, "1")
	require.NoError(t, err)
	require.False(t, is, "it is on the same mount")
	require.ErrorIs(t, dir.Rename("in/s/history", "aside/x"), syscall.EBUSY)
	require.ErrorIs(t, dir.Remove("in/s/history"), syscall.EBUSY)
	require.ErrorIs(t, dir.RemoveAll("in"), mount.ErrMounted)
	_, err = dir.Lstat("in/s/history/1")
	require.NoError(t, err)
	require.NoError(t, d.Mount("in/s/history", false))
	require.NoError(t, dir.RemoveAll("in"))
}

// A folder that is moved by a copy stays if something is mounted in it.
func TestMoveFolderWithAMount(t *testing.T) {
	t.Parallel()
	d := New(Ext4)
	dir := sessionOn(t, d)
	require.NoError(t, d.Mount("in/s/history", true))
	require.ErrorIs(t, writer.MoveFolder(dir, "in/s", "aside/s"), mount.ErrMounted)
	require.NoError(t, d.Mount("in/s/history", false))
	require.NoError(t, whole(t, dir, "in/s"))
	require.NoError(t, writer.MoveFolder(dir, "in/s", "aside/s"))
	require.NoError(t, whole(t, dir, "aside/s"))
}
