package lifecycle_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// What is released is read again, and nothing is forgotten with it: neither what was
// last seen of the files nor whose work they are.
func TestRelease(t *testing.T) {
	t.Parallel()
	store, err := lifecycle.InitOn(crashfs.New(crashfs.Ext4).FS(), simOptions)
	require.NoError(t, err)
	sess, ids := agentWorked(t, store, "auth")
	dir := store.Project()
	put(t, dir, "mine", "1")
	changes, err := sess.Look(t.Context())
	require.NoError(t, err)
	require.Len(t, changes, 1)

	require.NoError(t, sess.Release())
	put(t, dir, "also", "1")
	changes, err = sess.Look(t.Context())
	require.NoError(t, err)
	require.Len(t, changes, 1, "since the last look, not since the last checkpoint")
	require.Equal(t, "also", changes[0].Path)

	require.NoError(t, sess.Release())
	put(t, dir, "third", "1")
	_, changes, err = sess.Checkpoint(t.Context(), checkpoint.BeforeTask, "t")
	require.NoError(t, err)
	require.Len(t, changes, 1)

	require.NoError(t, sess.Release())
	dry := both
	dry.DryRun = true
	would, err := sess.Rewind(t.Context(), ids[0], dry)
	require.NoError(t, err)
	did, err := sess.Rewind(t.Context(), ids[0], both)
	require.NoError(t, err)
	require.Equal(t, would.Changes, did.Changes)
	require.Equal(t, "0", got(t, dir, "a"))
	require.Equal(t, "1", got(t, dir, "mine"), "it is not the loop's")
	require.NoError(t, sess.Release())
	require.NoError(t, sess.Release(), "nothing is held")
	require.NoError(t, store.Close(t.Context()))
}

// A call of Release during a task does not cut the task off.
func TestReleaseWithinATask(t *testing.T) {
	t.Parallel()
	store, err := lifecycle.InitOn(crashfs.New(crashfs.Ext4).FS(), simOptions)
	require.NoError(t, err)
	sess := create(t, store, "sim")
	_, _, err = sess.Checkpoint(t.Context(), checkpoint.BeforeTask, "t")
	require.NoError(t, err)
	require.NoError(t, sess.Release())
	e, _, err := sess.Checkpoint(t.Context(), checkpoint.AfterTask, "t")
	require.NoError(t, err)
	require.Len(t, e.By, 1)
	require.False(t, e.Contested())
	require.NoError(t, store.Close(t.Context()))
}

// A look that finds nothing new writes nothing: a loop looks before and after every
// task.
func TestLookWritesOnce(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, _ := agentWorked(t, store, "auth")
	look := func() (changes, writes int) {
		disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
			if op.N > 0 && strings.HasSuffix(filepath.Dir(op.Name), sess.ID().String()) && strings.Contains(op.Name, "files") {
				writes++
			}
			return crashfs.Fault{}
		}))
		defer disk.SetHook(nil)
		found, err := sess.Look(t.Context())
		require.NoError(t, err)
		return len(found), writes
	}
	changes, writes := look()
	require.Zero(t, changes+writes, "the checkpoint knows it")
	put(t, store.Project(), "a", "mine")
	changes, writes = look()
	require.Equal(t, 1, changes)
	require.NotZero(t, writes)
	changes, writes = look()
	require.Zero(t, changes+writes)
	require.NoError(t, sess.Release())
	changes, writes = look()
	require.Zero(t, changes+writes)
	require.NoError(t, store.Close(t.Context()))
}

// While a tree cannot be read nobody knows which contents it needs: none is removed.
func TestUnreadTreeKeepsAllContents(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, _ := agentWorked(t, store, "auth")
	require.NoError(t, sess.Close(t.Context()))
	other := made(t, store, "other")
	for name := range blobFiles(t, store) {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		data[len(data)/3] ^= 1
		require.NoError(t, os.Chmod(name, 0o600))
		write(t, name, string(data))
	}
	before := blobFiles(t, store)
	require.NotEmpty(t, before)
	_, err := store.Delete(t.Context(), other)
	require.NoError(t, err)
	require.Equal(t, before, blobFiles(t, store))
}
