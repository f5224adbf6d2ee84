package lifecycle_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// cps lists the checkpoints of a project that were not removed.
func cps(t *testing.T, store *lifecycle.Store) []*checkpoint.Entry {
	t.Helper()
	c, err := store.Checkpoints(nil)
	require.NoError(t, err)
	defer c.Close()
	all, faults, err := c.List()
	require.NoError(t, err)
	require.Empty(t, faults)
	return slices.DeleteFunc(all, func(e *checkpoint.Entry) bool { return e.Removed != "" })
}

// blobFiles returns the lengths of the files that hold contents.
func blobFiles(t *testing.T, store *lifecycle.Store) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	require.NoError(t, filepath.WalkDir(path(store, "blobs"), func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == ".lock" || e.Name() == ".gitignore" {
			return err
		}
		info, err := e.Info()
		all[name] = info.Size()
		return err
	}))
	return all
}

// chain is the file of a project's checkpoints.
func chain(t *testing.T, store *lifecycle.Store) string {
	t.Helper()
	data, err := os.ReadFile(path(store, "checkpoints", "main.jsonl"))
	require.NoError(t, err)
	return string(data)
}

// A fork's line of checkpoints continues from where it was forked, without a copy or a line
// of its own: it brings back files and tasks as the other session does, and keeps the
// files when that is deleted.
func TestForkContinuesTheCheckpoints(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	parent, ids := agentWorked(t, store, "auth")
	require.NoError(t, parent.PinCheckpoint(t.Context(), ids[0], true))
	before := chain(t, store)
	child := fork(t, store, parent.ID(), lifecycle.ForkOptions{})
	require.Equal(t, before, chain(t, store), "nothing is copied, nothing is added")

	// The loop's work is the loop's in the fork, too.
	back, err := child.Rewind(t.Context(), ids[0], both)
	require.NoError(t, err)
	require.Empty(t, back.Retained)
	require.Equal(t, "0 old (none)", content(t, store))
	require.Zero(t, done(child.State()))
	require.Equal(t, child.ID(), child.State().ID())
	require.Equal(t, 2, done(parent.State()), "the other one does not know")
	_, err = child.Undo(t.Context(), both)
	require.NoError(t, err)
	require.Equal(t, "2 (none) 2", content(t, store))
	require.Equal(t, 2, done(child.State()))
	_, err = child.Rewind(t.Context(), ids[1], rewind.Options{Files: true, State: true, DryRun: true})
	require.NoError(t, err)
	all := cps(t, store)
	require.Len(t, all, 8, "two for each rewind")
	for i, e := range all {
		require.EqualValues(t, i+1, e.Number, "the numbers go on")
		require.Equal(t, i == 0, e.Pinned)
		if i < 4 {
			require.Equal(t, ids[i], e.ID)
			require.Equal(t, parent.ID().String(), e.Session)
		} else {
			require.EqualValues(t, i, e.Parent)
			require.Equal(t, child.ID().String(), e.Session)
		}
	}

	// Its first record names the one that the loop last knew.
	first := fork(t, store, child.ID(), lifecycle.ForkOptions{Seq: 1})
	back, err = first.Rewind(t.Context(), ids[0], rewind.Options{Files: true, DryRun: true})
	require.NoError(t, err)
	require.Len(t, back.Changes, 3)
	require.NoError(t, first.Close(t.Context()))
	_, err = store.Delete(t.Context(), first.ID())
	require.NoError(t, err)
	require.Len(t, cps(t, store), 8)

	// A fork of the fork outlives both.
	grandchild := fork(t, store, child.ID(), lifecycle.ForkOptions{})
	_, err = grandchild.Rewind(t.Context(), ids[1], rewind.Options{State: true})
	require.NoError(t, err)
	require.Equal(t, 1, done(grandchild.State()))
	require.NoError(t, parent.Close(t.Context()))
	_, err = store.Delete(t.Context(), parent.ID())
	require.NoError(t, err)
	require.NoError(t, child.Close(t.Context()))
	_, err = store.Delete(t.Context(), child.ID())
	require.NoError(t, err)
	require.Len(t, cps(t, store), 9, "all are on its line")
	require.NoError(t, grandchild.Close(t.Context()))
	report, err := store.Verify(grandchild.ID())
	require.NoError(t, err)
	require.NoError(t, store.VerifyData(t.Context(), &report))
	require.Equal(t, repair.Intact, report.Condition, "%v", report.Faults)
	require.NotZero(t, report.Blobs)
	again, err := store.Open(grandchild.ID())
	require.NoError(t, err)
	_, err = again.Rewind(t.Context(), ids[0], both)
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	require.ErrorContains(t, err, "--scope files")
	require.Equal(t, "2 (none) 2", content(t, store))
	_, err = again.Rewind(t.Context(), ids[0], rewind.Options{Files: true})
	require.NoError(t, err)
	require.Equal(t, "0 old (none)", content(t, store))
	require.NoError(t, again.Close(t.Context()))
	_, err = store.Delete(t.Context(), grandchild.ID())
	require.NoError(t, err)
	require.Empty(t, cps(t, store), "the last one takes them along, pinned or not")
	require.Empty(t, blobFiles(t, store))
}

// A fork at an earlier record continues from the checkpoint of that moment. What the other session
// did since is not the fork's work.
func TestForkAtContinuesFromAnEarlierCheckpoint(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	parent, ids := agentWorked(t, store, "auth")
	all := cps(t, store)
	child := fork(t, store, parent.ID(), lifecycle.ForkOptions{Seq: all[2].Seq})
	back, err := child.Rewind(t.Context(), ids[0], rewind.Options{Files: true, State: true, DryRun: true})
	require.NoError(t, err)
	require.Empty(t, back.Changes)
	var paths []string
	for _, k := range back.Retained {
		require.Equal(t, checkpoint.Foreign, k.Why)
		require.Contains(t, k.By, parent.ID().String())
		paths = append(paths, k.Path)
	}
	require.Equal(t, []string{"a", "gone", "new"}, paths)

	none := fork(t, store, parent.ID(), lifecycle.ForkOptions{Seq: 1})
	_, err = none.Rewind(t.Context(), ids[0], both)
	require.ErrorIs(t, err, lifecycle.ErrNotFound, "it does not come from there")
	require.ErrorContains(t, err, "--scope files")
	back, err = none.Rewind(t.Context(), ids[0], rewind.Options{Files: true})
	require.NoError(t, err)
	require.Empty(t, back.Changes)
	require.Len(t, back.Retained, 3, "nothing of it is its own work")
	require.Equal(t, "2 (none) 2", content(t, store))
}

// A recovered session's line continues from the newest checkpoint of the damaged session. A
// checkpoint that cannot be read is named; only this checkpoint is lost.
func TestRecoverContinuesTheCheckpoints(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, ids := agentWorked(t, store, "auth")
	require.NoError(t, sess.Close(t.Context()))
	dir := path(store, "sessions", sess.ID().String())
	file := path(store, "checkpoints", "main.jsonl")
	lines := strings.SplitAfter(chain(t, store), "\n")
	lines[1] = strings.Replace(lines[1], `"root":"`, `"root":"0`, 1)
	write(t, file, strings.Join(lines, ""))
	report, err := store.Verify(sess.ID())
	require.NoError(t, err)
	require.Equal(t, repair.Flawed, report.Condition)
	require.Equal(t, "checkpoints/main.jsonl", report.Faults[0].File)
	ruin(t, dir)
	_, err = store.Open(sess.ID())
	require.ErrorIs(t, err, lifecycle.ErrCorrupt)

	r, err := store.Recover(t.Context(), sess.ID().String(), "", false)
	require.NoError(t, err)
	require.Contains(t, strings.Join(r.Recovered, "\n"), "checkpoints of the files")
	require.Contains(t, strings.Join(r.Lost, "\n"), "main.jsonl")
	next, err := store.Open(r.ID)
	require.NoError(t, err)
	back, err := next.Rewind(t.Context(), ids[0], rewind.Options{Files: true, Force: true})
	require.NoError(t, err)
	require.Equal(t, "0 old", strings.Join(strings.Fields(content(t, store))[:2], " "), "%v", back.Retained)
	_, err = next.Undo(t.Context(), rewind.Options{Files: true})
	require.NoError(t, err)
	require.Equal(t, "2 (none) 2", content(t, store))
	require.NoError(t, next.Close(t.Context()))
	_, err = store.Recover(t.Context(), r.ID.String(), "checkpoint="+ids[0].String(), true)
	require.ErrorContains(t, err, "no checkpoint", "its record is in another log")
}

// It continues also from checkpoints that were made after the newest recovered record. Their
// files are there even if the tasks are lost, and the loop's changes stay the loop's.
func TestRecoverContinuesFromLaterCheckpoints(t *testing.T) {
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
	require.Less(t, r.Seq, cps(t, store)[0].Seq)
	require.Contains(t, r.Recovered, "4 checkpoints of the files")
	next, err := store.Open(r.ID)
	require.NoError(t, err)
	back, err := next.Rewind(t.Context(), ids[0], rewind.Options{Files: true})
	require.NoError(t, err)
	require.Empty(t, back.Retained)
	require.Equal(t, "0 old (none)", content(t, store))
	require.NoError(t, next.Close(t.Context()))
}

// A fork of a fork of a recovered session knows whose work each file is, brings it back
// and leaves a person's alone, also when all sessions that it comes from are deleted.
func TestForkOfAForkOfARecoveredSession(t *testing.T) {
	t.Parallel()
	for _, deleted := range []bool{false, true} {
		store := initStore(t)
		damaged, ids := agentWorked(t, store, "auth")
		require.NoError(t, damaged.Close(t.Context()))
		ruin(t, path(store, "sessions", damaged.ID().String()))
		_, err := store.Open(damaged.ID())
		require.ErrorIs(t, err, lifecycle.ErrCorrupt)
		r, err := store.Recover(t.Context(), damaged.ID().String(), "", false)
		require.NoError(t, err)

		task := func(sess *lifecycle.Session, name string) {
			_, _, err := sess.Checkpoint(t.Context(), checkpoint.BeforeTask, name)
			require.NoError(t, err)
			put(t, store.Project(), name, "of "+name)
			_, _, err = sess.Checkpoint(t.Context(), checkpoint.AfterTask, name)
			require.NoError(t, err)
			require.NoError(t, sess.Close(t.Context()))
		}
		recovered, err := store.Open(r.ID)
		require.NoError(t, err)
		task(recovered, "recovered")
		put(t, store.Project(), "mine", "of a person")
		first := fork(t, store, r.ID, lifecycle.ForkOptions{})
		task(first, "first")
		put(t, store.Project(), "gone", "made again by a person")
		second := fork(t, store, first.ID(), lifecycle.ForkOptions{})
		task(second, "second")
		if deleted {
			for _, id := range []session.ID{r.ID, first.ID()} {
				_, err := store.Delete(t.Context(), id)
				require.NoError(t, err)
			}
		}
		sess, err := store.Open(second.ID())
		require.NoError(t, err)
		all := func() string {
			dir := store.Project()
			return content(t, store) + ", " + got(t, dir, "recovered") + ", " + got(t, dir, "first") + ", " + got(t, dir, "second") + ", " + got(t, dir, "mine")
		}
		before := all()
		back, err := sess.Rewind(t.Context(), ids[0], rewind.Options{Files: true})
		require.NoError(t, err)
		require.Equal(t, "0 made again by a person (none), (none), (none), (none), of a person", all())
		var paths []string
		for _, k := range back.Retained {
			paths = append(paths, k.Path)
		}
		require.Equal(t, []string{"gone", "mine"}, paths)
		_, err = sess.Undo(t.Context(), rewind.Options{Files: true})
		require.NoError(t, err)
		require.Equal(t, before, all())
		require.NoError(t, sess.Close(t.Context()))
	}
}

// In the chain a lost newest checkpoint looks as if a crash had cut it off. The journal,
// which names it, shows that it is lost. The session continues and sees what changed since.
func TestVerifyTellsOfALostCheckpoint(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, _ := agentWorked(t, store, "auth")
	require.NoError(t, sess.Close(t.Context()))
	lines := strings.SplitAfter(strings.TrimSuffix(chain(t, store), "\n"), "\n")
	write(t, path(store, "checkpoints", "main.jsonl"), strings.Join(lines[:len(lines)-1], ""))
	report, err := store.Verify(sess.ID())
	require.NoError(t, err)
	require.Equal(t, repair.Flawed, report.Condition)
	require.Len(t, report.Faults, 1)
	require.Equal(t, "checkpoints/main.jsonl", report.Faults[0].File)
	again, err := store.Open(sess.ID())
	require.NoError(t, err)
	_, _, err = again.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	require.NoError(t, again.Close(t.Context()))
	report, err = store.Verify(sess.ID())
	require.NoError(t, err)
	require.Equal(t, repair.Intact, report.Condition)
}

// TestPowerCutWhileForkingWithCheckpoints cuts the power before each call of a fork, with links and
// without: a fork that is there continues from the checkpoints.
func TestPowerCutWhileForkingWithCheckpoints(t *testing.T) {
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
			for _, v := range outcomes(p, i) {
				crashStates.Add(1)
				after, err := lifecycle.OpenOn(p.Crash(v).FS(), simOptions)
				require.NoError(t, err)
				if _, _, err := after.Read(child.ID()); err != nil {
					require.Less(t, i, len(points)-1, "it was acknowledged: %s", v.Name)
					continue
				}
				there++
				would, err := after.PlanRewind(t.Context(), child.ID(), ids[0], both)
				require.NoError(t, err, v.Name)
				require.Len(t, would.Changes, 3, v.Name)
				require.Empty(t, would.Retained, v.Name)
			}
		}
		require.Greater(t, there, 1)
		require.NoError(t, store.Close(t.Context()))
	}
}
