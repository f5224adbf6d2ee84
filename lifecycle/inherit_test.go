package lifecycle_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// cps lists the checkpoints of a session.
func cps(t *testing.T, store *lifecycle.Store, id session.ID) []checkpoint.Info {
	t.Helper()
	c, err := store.Checkpoints(id)
	require.NoError(t, err)
	defer c.Close()
	all, err := c.List()
	require.NoError(t, err)
	return all
}

// A fork has the checkpoints that were made up to then, copies none of them, brings
// back files and tasks as the other session does, and keeps the files when that is
// deleted.
func TestForkHasTheCheckpoints(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	parent, ids := agentWorked(t, store, "auth")
	require.NoError(t, parent.PinCheckpoint(ids[0], true))
	child := fork(t, store, parent.ID(), lifecycle.ForkOptions{})
	all := cps(t, store, child.ID())
	require.Len(t, all, 4)
	for i, info := range all {
		require.Equal(t, ids[i], info.ID)
		require.True(t, info.Inherited)
		require.Equal(t, i == 0, info.Pinned)
		name := filepath.Join("checkpoints", info.ID.String(), "manifest.json")
		one, err := os.Stat(path(store, "sessions", parent.ID().String(), name))
		require.NoError(t, err)
		two, err := os.Stat(path(store, "sessions", child.ID().String(), name))
		require.NoError(t, err)
		require.True(t, os.SameFile(one, two), "nothing is copied")
	}

	// The loop's work is the loop's in the fork, too.
	back, err := child.Rewind(t.Context(), ids[0], both)
	require.NoError(t, err)
	require.Empty(t, back.Kept)
	require.Equal(t, "0 old (none)", content(t, store))
	require.Zero(t, done(child.State()))
	require.Equal(t, child.ID(), child.State().ID())
	require.Equal(t, 2, done(parent.State()), "the other one does not know")
	_, err = child.Undo(t.Context(), both)
	require.NoError(t, err)
	require.Equal(t, "2 (none) 2", content(t, store))
	require.Equal(t, 2, done(child.State()))
	_, err = child.Rewind(t.Context(), ids[1], lifecycle.RewindOptions{Files: true, State: true, DryRun: true})
	require.NoError(t, err)
	all = cps(t, store, child.ID())
	require.Len(t, all, 6)
	require.Equal(t, checkpoint.ID(5), all[4].ID, "the numbers go on")
	require.False(t, all[4].Inherited)
	require.Len(t, cps(t, store, parent.ID()), 4)

	// Its first record names the one that the loop last knew.
	first := fork(t, store, child.ID(), lifecycle.ForkOptions{Seq: 1})
	back, err = first.Rewind(t.Context(), ids[0], lifecycle.RewindOptions{Files: true, DryRun: true})
	require.NoError(t, err)
	require.Len(t, back.Changes, 3)
	require.NoError(t, first.Close(t.Context()))
	_, err = store.Delete(t.Context(), first.ID())
	require.NoError(t, err)

	// A fork of the fork outlives both.
	grandchild := fork(t, store, child.ID(), lifecycle.ForkOptions{})
	_, err = grandchild.Rewind(t.Context(), ids[1], lifecycle.RewindOptions{State: true})
	require.NoError(t, err)
	require.Equal(t, 1, done(grandchild.State()))
	require.NoError(t, parent.Close(t.Context()))
	_, err = store.Delete(t.Context(), parent.ID())
	require.NoError(t, err)
	require.NoError(t, child.Close(t.Context()))
	_, err = store.Delete(t.Context(), child.ID())
	require.NoError(t, err)
	require.NoError(t, grandchild.Close(t.Context()))
	report, err := store.Verify(grandchild.ID())
	require.NoError(t, err)
	require.NoError(t, store.VerifyData(&report))
	require.Equal(t, lifecycle.Intact, report.Condition, "%v", report.Faults)
	require.NotZero(t, report.Blobs)
	again, err := store.Open(grandchild.ID())
	require.NoError(t, err)
	_, err = again.Rewind(t.Context(), ids[0], both)
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	require.ErrorContains(t, err, "--scope files")
	require.Equal(t, "2 (none) 2", content(t, store))
	_, err = again.Rewind(t.Context(), ids[0], lifecycle.RewindOptions{Files: true})
	require.NoError(t, err)
	require.Equal(t, "0 old (none)", content(t, store))
	require.NoError(t, again.Close(t.Context()))
	_, err = store.Delete(t.Context(), grandchild.ID())
	require.NoError(t, err)
	blobs, err := filepath.Glob(path(store, "blobs", "*", "*"))
	require.NoError(t, err)
	require.Empty(t, blobs, "the last one takes them along")
}

// A fork at an earlier record has those of then. What the other session did since is
// not the fork's work.
func TestForkAtHasTheCheckpointsOfThen(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	parent, ids := agentWorked(t, store, "auth")
	all := cps(t, store, parent.ID())
	child := fork(t, store, parent.ID(), lifecycle.ForkOptions{Seq: all[1].Seq})
	require.Len(t, cps(t, store, child.ID()), 2)
	back, err := child.Rewind(t.Context(), ids[0], lifecycle.RewindOptions{Files: true, State: true, DryRun: true})
	require.NoError(t, err)
	var kept []string
	for _, k := range back.Kept {
		kept = append(kept, k.Path)
	}
	require.Equal(t, []string{"a", "gone"}, kept)

	none := fork(t, store, parent.ID(), lifecycle.ForkOptions{Seq: 1})
	_, err = store.Checkpoints(none.ID())
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
}

// A recovered session has the checkpoints of the damaged one that can be read.
func TestRecoverHasTheCheckpoints(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, ids := agentWorked(t, store, "auth")
	require.NoError(t, sess.Close(t.Context()))
	dir := path(store, "sessions", sess.ID().String())
	name := filepath.Join(dir, "checkpoints", ids[1].String(), "manifest.json")
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	write(t, name, strings.Replace(string(data), `"path"`, `"Path"`, 1))
	write(t, filepath.Join(dir, "state.json"), "{}")
	_, err = store.Open(sess.ID())
	require.ErrorIs(t, err, lifecycle.ErrCorrupt)

	r, err := store.Recover(t.Context(), sess.ID().String(), "", false)
	require.NoError(t, err)
	require.Contains(t, r.Recovered, "3 checkpoints of the files")
	require.Contains(t, strings.Join(r.Lost, "\n"), "cp-000002/manifest.json")
	require.Len(t, cps(t, store, r.ID), 3)
	next, err := store.Open(r.ID)
	require.NoError(t, err)
	_, err = next.Rewind(t.Context(), ids[0], lifecycle.RewindOptions{Files: true})
	require.NoError(t, err)
	require.Equal(t, "0 old (none)", content(t, store))
	require.NoError(t, next.Close(t.Context()))
	_, err = store.Recover(t.Context(), r.ID.String(), "checkpoint=cp-000001", true)
	require.ErrorContains(t, err, "no checkpoint", "its record is in another log")
}

// It has those, too, that were made after what could be recovered: the files are
// there, whatever became of the tasks.
func TestRecoverHasTheCheckpointsMadeLater(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, ids := agentWorked(t, store, "auth")
	require.NoError(t, sess.Close(t.Context()))
	dir := path(store, "sessions", sess.ID().String())
	require.NoError(t, os.Remove(filepath.Join(dir, "state.json")))
	journal := filepath.Join(dir, "journal-1-1.jsonl")
	data, err := os.ReadFile(journal)
	require.NoError(t, err)
	write(t, journal, strings.Join(strings.SplitAfter(string(data), "\n")[:2], "")) // its header and one record
	r, err := store.Recover(t.Context(), sess.ID().String(), "", false)
	require.NoError(t, err)
	all := cps(t, store, r.ID)
	require.Len(t, all, len(ids))
	require.Less(t, r.Seq, all[0].Seq)
	require.Contains(t, r.Recovered, "4 checkpoints of the files")
	next, err := store.Open(r.ID)
	require.NoError(t, err)
	_, err = next.Rewind(t.Context(), ids[0], lifecycle.RewindOptions{Files: true, Force: true})
	require.NoError(t, err)
	require.Equal(t, "0 old 2", content(t, store), "whose the new file is nobody knows any more")
	require.NoError(t, next.Close(t.Context()))
}

// TestPowerCutWhileCheckpointsAreShared cuts the power before each call of a fork,
// with links and without: a fork that is there has all of them, whole.
func TestPowerCutWhileCheckpointsAreShared(t *testing.T) {
	t.Parallel()
	for _, refused := range []bool{false, true} {
		disk := crashfs.New(crashfs.Ext4)
		store, err := lifecycle.InitOn(disk.FS(), simOptions)
		require.NoError(t, err)
		parent, ids := agentWorked(t, store, "sim")
		require.NoError(t, parent.Close(t.Context())) // nobody else writes
		var points []*crashfs.Disk
		disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
			if op.N > 0 {
				points = append(points, disk.Snapshot())
			}
			if refused && op.Call == "link" {
				return crashfs.Fault{Err: syscall.EPERM}
			}
			return crashfs.Fault{}
		}))
		child, err := store.Fork(t.Context(), parent.ID(), lifecycle.ForkOptions{})
		require.NoError(t, err)
		require.NoError(t, child.Close(t.Context()))
		disk.SetHook(nil)
		points = append(points, disk.Snapshot())
		there := 0
		for i, p := range points {
			for _, v := range p.Variants(nil, 0) {
				crashStates.Add(1)
				after, err := lifecycle.OpenOn(p.Crash(v).FS(), simOptions)
				require.NoError(t, err)
				if _, _, err := after.Read(child.ID()); err != nil {
					require.Less(t, i, len(points)-1, "it was acknowledged: %s", v.Name)
					continue
				}
				there++
				all := cps(t, after, child.ID())
				require.Len(t, all, len(ids), v.Name)
				made, err := after.Checkpoints(child.ID())
				require.NoError(t, err)
				for _, info := range all {
					require.True(t, info.Inherited)
					_, err := made.Load(info.ID)
					require.NoError(t, err, v.Name)
				}
				require.NoError(t, made.Close())
			}
		}
		require.Greater(t, there, 1)
		require.NoError(t, store.Close(t.Context()))
	}
}
