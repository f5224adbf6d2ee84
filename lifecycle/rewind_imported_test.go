package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// A checkpoint that was imported beside the project's own is reached with force alone, nothing is
// deleted on the way, and undo leads back; also where a power cut came in between.
func TestRewindToAnImportedCheckpoint(t *testing.T) {
	t.Parallel()
	from, id := workedElsewhere(t)
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	own, _ := agentWorked(t, store, "other")
	put(t, store.Project(), "a", "mine")
	put(t, store.Project(), "extra", "mine too")
	require.NoError(t, store.Project().Remove("new"))
	_, _, err = own.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	require.NoError(t, own.Close(t.Context()))
	r, err := store.Import(t.Context(), from.again(nil))
	require.NoError(t, err)
	require.True(t, r.Apart)
	c, err := store.Checkpoints(nil)
	require.NoError(t, err)
	chains, err := c.Others()
	require.NoError(t, err)
	there, _, err := chains[0].List()
	require.NoError(t, err)
	require.NoError(t, c.Close())
	last, first := there[3].ID, there[1]

	sess, err := store.Open(id)
	require.NoError(t, err)
	require.Equal(t, 2, done(sess.State()))
	mine := content(t, store) + got(t, store.Project(), "extra")
	would, err := sess.Rewind(t.Context(), last, rewind.Options{Files: true})
	require.NoError(t, err)
	require.Empty(t, would.Changes)
	require.Equal(t, []string{"a", "docs", "docs/spec.md", "extra", "new"}, leftPaths(would))
	require.Equal(t, mine, content(t, store)+got(t, store.Project(), "extra"))

	forced := rewind.Options{Files: true, State: true, Force: true}
	_, err = sess.Rewind(t.Context(), last, forced)
	require.NoError(t, err)
	theirs := content(t, store)
	require.Contains(t, theirs, "2 ")
	require.Equal(t, "mine too", got(t, store.Project(), "extra"))
	_, err = sess.Undo(t.Context(), both)
	require.NoError(t, err)
	require.Equal(t, mine, content(t, store)+got(t, store.Project(), "extra"), "what it made is gone again, without force")
	_, err = sess.Undo(t.Context(), both)
	require.NoError(t, err)
	require.Equal(t, theirs, content(t, store))

	var cut *crashfs.Disk
	disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
		if cut == nil && op.Call == "rename" && !strings.Contains(op.Name, lifecycle.Dir) {
			cut = disk.Snapshot()
		}
		return crashfs.Fault{}
	}))
	_, err = sess.Rewind(t.Context(), first.ID, forced)
	require.NoError(t, err)
	disk.SetHook(nil)
	require.Equal(t, first.Tasks.Completed, done(sess.State()))
	want := content(t, store)
	require.NotEqual(t, theirs, want)
	require.NoError(t, sess.Close(t.Context()))
	requireIntact(t, store, id, own.ID())

	after, err := lifecycle.OpenOn(cut.Crash(crashfs.Variant{}).FS(), simOptions)
	require.NoError(t, err)
	sess, err = after.Open(id)
	require.NoError(t, err)
	require.Equal(t, want, content(t, after))
	require.Equal(t, first.Tasks.Completed, done(sess.State()))
	_, err = sess.Undo(t.Context(), both)
	require.NoError(t, err)
	require.Equal(t, theirs, content(t, after))
	require.NoError(t, sess.Close(t.Context()))
	requireIntact(t, after, id, own.ID())
}
