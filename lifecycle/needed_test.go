package lifecycle_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// cutInRewind rewinds to a checkpoint and returns the disk as it was when the file "gone" was
// about to come back.
func cutInRewind(t *testing.T, disk *crashfs.Disk, sess *lifecycle.Session, to checkpoint.ID, opts rewind.Options) *crashfs.Disk {
	t.Helper()
	var cut *crashfs.Disk
	disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
		if cut == nil && op.Call == "rename" && op.Name == "gone" {
			cut = disk.Snapshot()
		}
		return crashfs.Fault{}
	}))
	_, err := sess.Rewind(t.Context(), to, opts)
	disk.SetHook(nil)
	require.NoError(t, err)
	require.NotNil(t, cut)
	return cut
}

// The objects that an interrupted rewind needs stay when the session that made it is deleted.
func TestDeletionLeavesWhatARewindNeeds(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, ids := agentWorked(t, store, "sim")
	require.NoError(t, sess.Close(t.Context()))
	other, err := store.Create(t.Context(), "other")
	require.NoError(t, err)
	_, _, err = other.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	cut := cutInRewind(t, disk, other, ids[0], rewind.Options{Files: true, Force: true})
	after := content(t, store)
	require.NoError(t, store.Close(t.Context()))

	store, err = lifecycle.OpenOn(cut.FS(), simOptions)
	require.NoError(t, err)
	require.NotEqual(t, after, content(t, store))
	_, err = store.Delete(t.Context(), sess.ID())
	require.NoError(t, err)
	other, err = store.Open(other.ID())
	require.NoError(t, err)
	require.Equal(t, after, content(t, store), "it is finished")
	_, err = other.Undo(t.Context(), rewind.Options{Files: true})
	require.NoError(t, err)
	require.NoError(t, store.Close(t.Context()))
}

// An interrupted rewind is given up if the objects that it needs are gone.
func TestRewindIsGivenUpWithoutItsObjects(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, ids := agentWorked(t, store, "sim")
	cut := cutInRewind(t, disk, sess, ids[0], both)
	require.NoError(t, store.Close(t.Context()))
	require.NoError(t, cut.FS().RemoveAll(".lopen/blobs/packs"))
	store, err = lifecycle.OpenOn(cut.FS(), simOptions)
	require.NoError(t, err)
	sess, err = store.Open(sess.ID())
	require.NoError(t, err)
	_, _, err = sess.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	require.NoError(t, store.Close(t.Context()))
}

// Whatever the limit, a session finds what its undo goes back to, also after a rewind that
// was given up, and what a rewind needs that is to be finished.
func TestLimitLeavesWhatRewindsOfOthersNeed(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, ids := agentWorked(t, store, "sim")
	_, err = sess.Rewind(t.Context(), ids[1], both)
	require.NoError(t, err)
	ended := cps(t, store)
	undo := ended[len(ended)-2]
	require.Equal(t, checkpoint.BeforeRewind, undo.Reason)
	put(t, store.Project(), "mine", "1")
	_, _, err = sess.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	put(t, store.Project(), "mine", "1, changed") // no other checkpoint has the tree of the last one
	disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
		if op.N > 0 && op.Call == "create" && strings.Contains(op.Name, ".lopen-rewind-") {
			return crashfs.Fault{Err: syscall.ENOSPC}
		}
		return crashfs.Fault{}
	}))
	_, err = sess.Rewind(t.Context(), ids[0], rewind.Options{Files: true, Force: true})
	disk.SetHook(nil)
	require.ErrorIs(t, err, checkpoint.ErrUnchanged)
	all := cps(t, store)
	last := all[len(all)-1]
	require.Equal(t, checkpoint.BeforeRewind, last.Reason, "given up")
	require.NoError(t, store.Close(t.Context()))

	night := func() (left []uint64) {
		opts := simOptions
		opts.Policy.CheckpointBytes = 1
		store, err := lifecycle.OpenOn(disk.FS(), opts)
		require.NoError(t, err)
		other, err := store.Create(t.Context(), "other")
		require.NoError(t, err)
		for i := range 4 {
			put(t, store.Project(), "b", fmt.Sprint(i))
			_, _, err := other.Checkpoint(t.Context(), checkpoint.Manual, "")
			require.NoError(t, err)
		}
		for _, e := range cps(t, store) {
			if e.Session == sess.ID().String() {
				left = append(left, e.Number)
			}
		}
		require.NoError(t, store.Close(t.Context()))
		return left
	}
	// From the target of the one that may have been begun on.
	require.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 7, 8}[:last.Number], night())

	store, err = lifecycle.OpenOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, err = store.Open(sess.ID())
	require.NoError(t, err)
	put(t, store.Project(), "mine", "2")
	_, _, err = sess.Checkpoint(t.Context(), checkpoint.Manual, "") // it continues
	require.NoError(t, err)
	require.NoError(t, store.Close(t.Context()))
	left := night()
	require.Contains(t, left, undo.Number)
	require.Contains(t, left, undo.Target)
	require.NotContains(t, left, last.Number-1)
	store, err = lifecycle.OpenOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, err = store.Open(sess.ID())
	require.NoError(t, err)
	_, err = sess.Undo(t.Context(), both)
	require.NoError(t, err)
	require.Equal(t, 2, done(sess.State()))
	require.NoError(t, store.Close(t.Context()))
}

// If the target is removed while a rewind makes its first checkpoint, the rewind has not begun.
func TestTargetIsRemovedBeforeTheRewindBegins(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, ids := agentWorked(t, store, "sim")
	all, err := store.Checkpoints(nil)
	require.NoError(t, err)
	put(t, store.Project(), "mine", "1")
	was := content(t, store)
	removed := false
	disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if !removed && op.N > 0 && op.Call == "rename" && strings.Contains(op.Name, "blobs/packs") {
			removed = true
			_, err := all.Forget(t.Context(), "a test", func(e *checkpoint.Entry) bool { return e.ID == ids[0] })
			require.NoError(t, err)
		}
		return crashfs.Fault{}
	})
	_, err = sess.Rewind(t.Context(), ids[0], both)
	disk.SetHook(nil)
	require.True(t, removed)
	require.ErrorIs(t, err, checkpoint.ErrUnchanged)
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	require.NoError(t, all.Close())
	require.Equal(t, was, content(t, store))
	require.NoError(t, sess.Close(t.Context()))
	sess, err = store.Open(sess.ID())
	require.NoError(t, err)
	_, err = sess.Undo(t.Context(), both)
	require.ErrorIs(t, err, lifecycle.ErrNotFound, "no rewind was made")
	require.NoError(t, store.Close(t.Context()))
}

// If a sweep fails after a removal, and so frees nothing, no more history is removed.
func TestNothingIsRemovedAfterASweepThatFailed(t *testing.T) {
	t.Parallel()
	const size = 100 << 10
	store := storeWith(t, t.TempDir(), lifecycle.Policy{CheckpointBytes: 3 * size})
	sess := create(t, store, "auth")
	noise := rand.NewChaCha8([32]byte{})
	content := make([]byte, size)
	keep := func() {
		_, _ = noise.Read(content) // it cannot be compressed
		put(t, store.Project(), "a", string(content))
		_, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
		require.NoError(t, err)
	}
	keep()
	for name := range blobFiles(t, store) {
		if strings.HasSuffix(name, ".pack") {
			require.NoError(t, os.Remove(name))
		}
	}
	for range 6 {
		keep()
	}
	left := cps(t, store)
	require.Less(t, len(left), 7, "the sweep failed after a removal")
	require.Greater(t, len(left), 3, "and there was no other")
	require.NoError(t, sess.Close(t.Context()))
}

// A process that measures the space of checkpoints holds nobody up.
func TestUsageTakesNoLock(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, _ := agentWorked(t, store, "auth")
	dir, err := writer.OpenFS(path(store, "blobs"))
	require.NoError(t, err)
	defer dir.Close()
	hold, err := blob.New(dir).Hold(t.Context())
	require.NoError(t, err)
	batch := hold.Batch()
	_, _, err = batch.Put(strings.NewReader("of no checkpoint"), blob.Hash{})
	require.NoError(t, err)
	require.NoError(t, batch.Commit())
	require.NoError(t, hold.Release())
	before := tree(t, store.Path())
	usage, err := store.CheckpointUsage()
	require.NoError(t, err)
	require.EqualValues(t, len("of no checkpoint"), usage.Unneeded)
	require.Equal(t, before, tree(t, store.Path()))
	require.NoError(t, sess.Close(t.Context()))
}
