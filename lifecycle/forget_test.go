package lifecycle_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// TestPowerCutWhileDeleting cuts the power at every call of a deletion: the session is
// there with all its checkpoints, or it is gone, and the next prune leaves none of them
// but what a fork needs.
func TestPowerCutWhileDeleting(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, ids := agentWorked(t, store, "sim")
	fork, err := store.Fork(t.Context(), sess.ID(), lifecycle.ForkOptions{Seq: cps(t, store)[1].Seq + 1}) // whose record names the second one
	require.NoError(t, err)
	require.NoError(t, fork.Close(t.Context()))
	require.NoError(t, sess.Close(t.Context()))
	var points []*crashfs.Disk
	disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
		if op.N > 0 {
			points = append(points, disk.Snapshot())
		}
		return crashfs.Fault{}
	}))
	_, err = store.Delete(t.Context(), sess.ID())
	require.NoError(t, err)
	disk.SetHook(nil)
	points = append(points, disk.Snapshot())
	require.NoError(t, store.Close(t.Context()))
	there, gone := 0, 0
	for i, p := range points {
		if passed(i, len(points)) {
			continue
		}
		for _, v := range outcomes(p, i) {
			crashStates.Add(1)
			after, err := lifecycle.OpenOn(p.Crash(v).FS(), simOptions)
			require.NoError(t, err)
			_, err = after.Prune(t.Context(), lifecycle.Retention{}, false)
			require.NoError(t, err)
			all := cps(t, after)
			if _, _, err := after.Read(sess.ID()); err == nil {
				there++
				require.Less(t, i, len(points)-1, "it was acknowledged: %s", v.Name)
				require.Len(t, all, len(ids))
			} else {
				gone++
				require.Len(t, all, 2, "what the fork goes on from: %s", v.Name)
			}
			next, err := after.Open(fork.ID())
			require.NoError(t, err)
			_, err = next.Rewind(t.Context(), ids[0], rewind.Options{Files: true, Force: true})
			require.NoError(t, err)
			require.Equal(t, "0 old 2", content(t, after), "it needs nothing that was deleted")
			require.NoError(t, after.Close(t.Context()))
		}
	}
	require.NotZero(t, there)
	require.NotZero(t, gone)
}

// A session in the trash keeps its checkpoints and can be resumed after it is restored.
func TestTrashKeepsTheCheckpoints(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, ids := agentWorked(t, store, "auth")
	require.NoError(t, sess.Complete(t.Context()))
	require.NoError(t, sess.Close(t.Context()))
	gone, err := store.Prune(t.Context(), lifecycle.Retention{Age: 1}, false)
	require.NoError(t, err)
	require.Len(t, gone, 1)
	require.Len(t, cps(t, store), len(ids))
	require.NoError(t, store.Restore(t.Context(), sess.ID()))
	again, err := store.Open(sess.ID())
	require.NoError(t, err)
	_, err = again.Rewind(t.Context(), ids[0], both)
	require.NoError(t, err)
	require.Equal(t, "0 old (none)", content(t, store))
	require.NoError(t, again.Complete(t.Context()))
	require.NoError(t, again.Close(t.Context()))
	_, err = store.Prune(t.Context(), lifecycle.Retention{Age: 1}, false)
	require.NoError(t, err)
	require.Len(t, emptied(t, store), 1)
	require.Empty(t, cps(t, store))
	require.Empty(t, blobFiles(t, store))
}

// If the folder of a held session is removed, the session's checkpoints stay and its next
// checkpoint continues from them.
func TestCheckpointsOutliveTheSessionsFolder(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, ids := agentWorked(t, store, "sim")
	require.NoError(t, store.Project().RemoveAll(".lopen/sessions/"+sess.ID().String()))
	put(t, store.Project(), "a", "3")
	_, _, err = sess.Checkpoint(t.Context(), checkpoint.BeforeTask, "t")
	require.Equal(t, lifecycle.ClassRemoved, lifecycle.ClassOf(err), "%v", err)
	require.NoError(t, sess.Unpause(t.Context()))
	for _, why := range []checkpoint.Reason{checkpoint.BeforeTask, checkpoint.AfterTask} {
		_, _, err = sess.Checkpoint(t.Context(), why, "t")
		require.NoError(t, err)
	}
	back, err := sess.Rewind(t.Context(), ids[0], rewind.Options{Files: true})
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, leftPaths(back), "of a person")
	require.Equal(t, "3 old (none)", content(t, store))
	_, err = sess.Rewind(t.Context(), ids[0], both)
	require.ErrorIs(t, err, lifecycle.ErrNotFound, "its tasks of then went with the folder")
	require.NoError(t, store.Close(t.Context()))
}

// A prune that deletes a session for good sweeps what a rewind moved away and no checkpoint needs.
func TestPruneSweepsWhatWasMoved(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, _ := agentWorked(t, store, "auth")
	require.NoError(t, sess.Complete(t.Context()))
	require.NoError(t, sess.Close(t.Context()))
	require.Len(t, at(t, store, day.Add(time.Minute), lifecycle.Retention{Bytes: 1}), 1)
	moved := filepath.Join(store.Path(), "moved", strings.Repeat("0", 64)+"-"+strings.Repeat("1", 16)+"-3")
	require.NoError(t, os.MkdirAll(moved, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(moved, "x"), []byte("one"), 0o400))
	require.Len(t, emptied(t, store), 1)
	require.NoDirExists(t, moved)
}
