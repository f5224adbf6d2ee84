package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// put writes a file of a project through the seam.
func put(t require.TestingT, dir writer.FS, name, content string) {
	require.NoError(t, writer.ReplaceFile(dir, name, []byte(content), 0o644))
}

func got(t require.TestingT, dir writer.FS, name string) string {
	data, err := writer.ReadFile(dir, name, 1<<20)
	if errors.Is(err, os.ErrNotExist) {
		return "(none)"
	}
	require.NoError(t, err)
	return string(data)
}

var both = rewind.Options{Files: true, State: true}

// agentWorked is a session whose first task changed a file and whose second one changed
// it again, made another one, and removed a third.
func agentWorked(t require.TestingT, store *lifecycle.Store, module string) (*lifecycle.Session, []checkpoint.ID) {
	ctx := context.Background()
	sess, err := store.Create(ctx, module)
	require.NoError(t, err)
	dir := store.Project()
	require.NoError(t, store.CreatePlan(module, []byte("- [ ] one\n- [ ] two\n")))
	put(t, dir, "a", "0")
	put(t, dir, "gone", "old")
	state := func(n int) {
		require.NoError(t, sess.Change(session.TriggerTaskCompleted, func(e *session.Edit) error {
			e.SetRoots([]string{"one", "two"})
			for i, id := range []string{"one", "two"} {
				task := session.Task{ID: id, Name: id, Kind: session.KindTask, State: session.TaskPending, Box: session.BoxOpen}
				if i < n {
					task.State, task.Box, task.Attempts = session.TaskComplete, session.BoxTicked, 1
					task.Log = []session.Attempt{{Number: 1, StartedAt: day, EndedAt: day}}
				}
				e.Put(task)
			}
			e.AppendIteration(session.Iteration{Task: "t", Attempt: n + 1, StartedAt: day})
			return nil
		}))
	}
	var ids []checkpoint.ID
	take := func(why checkpoint.Reason) {
		m, _, err := sess.Checkpoint(ctx, why, "t")
		require.NoError(t, err)
		ids = append(ids, m.ID)
	}
	tick := func(id string) {
		p, err := store.Plan(module)
		require.NoError(t, err)
		_, err = store.EditPlan(module, p, plan.Boxes(map[string]bool{id: true}))
		require.NoError(t, err)
	}
	state(0)
	take(checkpoint.BeforeTask)
	put(t, dir, "a", "1")
	state(1)
	tick("one")
	take(checkpoint.AfterTask)
	take(checkpoint.BeforeTask)
	put(t, dir, "a", "2")
	put(t, dir, "new", "2")
	require.NoError(t, dir.Remove("gone"))
	require.NoError(t, dir.SyncDir("."))
	state(2)
	tick("two")
	take(checkpoint.AfterTask)
	return sess, ids
}

func content(t require.TestingT, store *lifecycle.Store) string {
	dir := store.Project()
	return got(t, dir, "a") + " " + got(t, dir, "gone") + " " + got(t, dir, "new")
}

func leftPaths(r rewind.Result) (paths []string) {
	for _, k := range r.Retained {
		paths = append(paths, k.Path)
	}
	return paths
}

func done(st *session.State) int { return st.Progress().Done }

func TestRewindAndUndo(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, ids := agentWorked(t, store, "auth")
	require.Equal(t, "2 (none) 2", content(t, store))
	put(t, store.Project(), "mine", "of a person")

	dry, err := sess.Rewind(t.Context(), ids[0], rewind.Options{Files: true, State: true, DryRun: true})
	require.NoError(t, err)
	require.Len(t, dry.Changes, 3)
	require.Len(t, dry.Tasks, 2)
	require.Equal(t, "2 (none) 2", content(t, store))

	back, err := sess.Rewind(t.Context(), ids[0], both)
	require.NoError(t, err)
	require.Equal(t, dry.Changes, back.Changes)
	require.Equal(t, "0 old (none)", content(t, store))
	require.Equal(t, "of a person", got(t, store.Project(), "mine"))
	require.Zero(t, done(sess.State()))
	require.Equal(t, 3, sess.State().NumIterations(), "what was spent is not rewound")
	one, _ := sess.State().Task("one")
	require.Zero(t, one.Attempts, "it has all its attempts again")
	require.Len(t, one.Log, 1, "and they stay on record")
	require.Equal(t, "- [ ] one\n- [ ] two\n", planOf(t, store, "auth"))

	// Not forgotten by who leaves straight after.
	require.NoError(t, sess.Close(t.Context()))
	sess, err = store.Open(sess.ID())
	require.NoError(t, err)
	require.Zero(t, done(sess.State()))
	_, err = sess.Undo(t.Context(), both)
	require.NoError(t, err)
	require.Equal(t, "2 (none) 2", content(t, store))
	require.Equal(t, 2, done(sess.State()))
	require.Equal(t, "- [x] one\n- [x] two\n", planOf(t, store, "auth"))
	_, err = sess.Undo(t.Context(), both) // of the undo
	require.NoError(t, err)
	require.Equal(t, "0 old (none)", content(t, store))
	report, err := store.Verify(sess.ID())
	require.NoError(t, err)
	require.Equal(t, repair.Intact, report.Condition)
}

// The checkpoint after a rewind is of the State that the rewind made.
func TestRewindToTheEndOfARewind(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, ids := agentWorked(t, store, "auth")
	_, err := sess.Rewind(t.Context(), ids[1], both)
	require.NoError(t, err)
	all := cps(t, store)
	after := all[len(all)-1]
	require.Equal(t, checkpoint.AfterRewind, after.Reason)
	_, err = sess.Undo(t.Context(), both)
	require.NoError(t, err)
	require.Equal(t, 2, done(sess.State()))
	_, err = sess.Rewind(t.Context(), after.ID, both)
	require.NoError(t, err)
	require.Equal(t, "1 old (none)", content(t, store))
	require.Equal(t, 1, done(sess.State()))
	require.NoError(t, sess.Close(t.Context()))
	r, err := store.Recover(t.Context(), sess.ID().String(), "checkpoint="+after.ID.Short(), true)
	require.NoError(t, err)
	require.Equal(t, 1, done(r.State()))
}

// Single files are brought back by their paths, also when that is cut off, with the same
// guards and the same undo.
func TestRewindOfPaths(t *testing.T) {
	t.Parallel()
	for _, cut := range []bool{false, true} {
		disk := crashfs.New(crashfs.Ext4)
		store, err := lifecycle.InitOn(disk.FS(), simOptions)
		require.NoError(t, err)
		sess, ids := agentWorked(t, store, "sim")
		opts := rewind.Options{Files: true, Paths: []string{"a", "none"}}
		if cut {
			var at *crashfs.Disk
			disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
				if at == nil && op.Call == "rename" && op.Name == "a" {
					at = disk.Snapshot()
				}
				return crashfs.Fault{}
			}))
			_, err := sess.Rewind(t.Context(), ids[0], opts)
			require.NoError(t, err)
			require.NoError(t, store.Close(t.Context()))
			store, err = lifecycle.OpenOn(at.FS(), simOptions)
			require.NoError(t, err)
			require.Equal(t, "2 (none) 2", content(t, store))
			sess, err = store.Open(sess.ID())
			require.NoError(t, err)
		} else {
			_, err := sess.Rewind(t.Context(), ids[0], opts)
			require.NoError(t, err)
		}
		require.Equal(t, "0 (none) 2", content(t, store))
		require.Equal(t, 2, done(sess.State()), "the tasks stay")
		_, err = sess.Undo(t.Context(), rewind.Options{Files: true})
		require.NoError(t, err)
		require.Equal(t, "2 (none) 2", content(t, store))
		put(t, store.Project(), "a", "of a person")
		left, err := sess.Rewind(t.Context(), ids[0], opts)
		require.NoError(t, err)
		require.Equal(t, []string{"a"}, leftPaths(left))
		require.Equal(t, "of a person (none) 2", content(t, store))
		require.NoError(t, store.Close(t.Context()))
	}
}

// What a task of the session and another session changed side by side is brought back
// only where that was asked for, and can be undone.
func TestRewindOfContestedPaths(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	one, two := create(t, store, "one"), create(t, store, "two")
	take := func(sess *lifecycle.Session, why checkpoint.Reason) checkpoint.ID {
		e, _, err := sess.Checkpoint(t.Context(), why, "t")
		require.NoError(t, err)
		return e.ID
	}
	put(t, store.Project(), "a", "0")
	before := take(one, checkpoint.BeforeTask)
	take(two, checkpoint.BeforeTask)
	put(t, store.Project(), "a", "1")
	take(one, checkpoint.AfterTask)
	put(t, store.Project(), "b", "of the second one alone")
	take(two, checkpoint.AfterTask)
	files := rewind.Options{Files: true}
	back, err := one.Rewind(t.Context(), before, files)
	require.NoError(t, err)
	require.Empty(t, back.Changes)
	require.Equal(t, []string{"a", "b"}, leftPaths(back))
	require.Equal(t, checkpoint.Contested, back.Retained[0].Why)
	require.Contains(t, back.Retained[0].By, two.ID().String())
	require.Equal(t, checkpoint.Foreign, back.Retained[1].Why)
	files.Contested = true
	back, err = one.Rewind(t.Context(), before, files)
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, leftPaths(back))
	require.Equal(t, "0", got(t, store.Project(), "a"))
	_, err = one.Undo(t.Context(), files)
	require.NoError(t, err)
	require.Equal(t, "1", got(t, store.Project(), "a"))
	require.Equal(t, "of the second one alone", got(t, store.Project(), "b"))
}

func planOf(t require.TestingT, store *lifecycle.Store, module string) string {
	return got(t, store.Project(), lifecycle.PlanPath(module))
}

func TestRewindScopesAndOtherPeoplesWork(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, ids := agentWorked(t, store, "auth")
	_, err := sess.Rewind(t.Context(), ids[1], rewind.Options{State: true})
	require.NoError(t, err)
	require.Equal(t, 1, done(sess.State()))
	require.Equal(t, "2 (none) 2", content(t, store))
	_, err = sess.Rewind(t.Context(), ids[1], rewind.Options{Files: true})
	require.NoError(t, err)
	require.Equal(t, "1 old (none)", content(t, store))

	put(t, store.Project(), "a", "edited by hand")
	back, err := sess.Rewind(t.Context(), ids[0], both)
	require.NoError(t, err)
	require.Len(t, back.Retained, 1)
	require.Equal(t, "a", back.Retained[0].Path)
	require.Equal(t, "edited by hand old (none)", content(t, store))
	_, err = sess.Rewind(t.Context(), ids[0], rewind.Options{Files: true, Force: true})
	require.NoError(t, err)
	require.Equal(t, "0 old (none)", content(t, store))
	_, err = sess.Rewind(t.Context(), checkpoint.ID{99}, both)
	require.ErrorIs(t, err, checkpoint.ErrNotFound)
	other := create(t, store, "other")
	_, err = other.Undo(t.Context(), both)
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
}

// A rewind is cut off at every call that it makes, by a kill or a power cut: the
// next holder finishes it, and it can still be undone.
func TestRewindCutOffAnywhere(t *testing.T) {
	t.Parallel()
	for _, power := range []bool{false, true} {
		t.Run(fmt.Sprint("power=", power), func(t *testing.T) {
			t.Parallel()
			for k := 1; ; k++ {
				if !rewindCutOff(t, power, k) {
					require.Greater(t, k, 30)
					return
				}
			}
		})
	}
}

func rewindCutOff(t *testing.T, power bool, k int) bool {
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, ids := agentWorked(t, store, "sim")
	n := 0
	var cut *crashfs.Disk
	disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
		if op.N == 0 {
			return crashfs.Fault{}
		}
		if n++; n == k {
			cut = disk.Snapshot()
		}
		if n >= k {
			return crashfs.Fault{Err: syscall.EIO}
		}
		return crashfs.Fault{}
	}))
	_, err = sess.Rewind(t.Context(), ids[0], both)
	acknowledged := err == nil
	_ = sess.Close(t.Context())
	if cut == nil {
		require.NoError(t, err)
		return false
	}
	if power {
		cut = cut.Crash(crashfs.Variant{})
	}
	again, err := lifecycle.OpenOn(cut.FS(), simOptions)
	require.NoError(t, err)
	found := content(t, again)
	_, err = again.PlanRewind(t.Context(), sess.ID(), ids[0], both)
	require.NoError(t, err)
	require.Equal(t, found, content(t, again), "who only asks finishes nothing")
	next, err := again.Open(sess.ID())
	require.NoError(t, err, "call %d", k)
	rewound := "0 old (none)"
	where := content(t, again)
	switch n := done(next.State()); n {
	case 0:
		require.Equal(t, rewound, where, "call %d", k)
		require.Equal(t, "- [ ] one\n- [ ] two\n", planOf(t, again, "sim"), "call %d", k)
		_, err = next.Undo(t.Context(), both)
		require.NoError(t, err)
		require.Equal(t, 2, done(next.State()))
	case 2:
		require.False(t, acknowledged, "call %d", k)
	default:
		require.Fail(t, "a mixture", "call %d: %d tasks are done", k, n)
	}
	require.Equal(t, "2 (none) 2", content(t, again), "call %d", k)
	require.Equal(t, "- [x] one\n- [x] two\n", planOf(t, again, "sim"), "call %d", k)
	require.NoError(t, again.Close(t.Context()))
	crashStates.Add(1)
	return true
}

// A rewind that was undone does not make the loop's work somebody else's, nor the work
// of somebody else the loop's.
func TestRewindAfterUndo(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, ids := agentWorked(t, store, "auth")
	put(t, store.Project(), "mine", "of a person")
	_, err := sess.Rewind(t.Context(), ids[1], both)
	require.NoError(t, err)
	_, err = sess.Undo(t.Context(), both)
	require.NoError(t, err)
	would, err := sess.Rewind(t.Context(), ids[0], rewind.Options{Files: true, State: true, DryRun: true})
	require.NoError(t, err)
	require.Equal(t, []string{"mine"}, leftPaths(would))
	require.Len(t, would.Changes, 3)
	for _, why := range []checkpoint.Reason{checkpoint.BeforeTask, checkpoint.AfterTask} { // another task
		_, _, err = sess.Checkpoint(t.Context(), why, "t")
		require.NoError(t, err)
		put(t, store.Project(), "a", "3") // the second time as it is
	}
	back, err := sess.Rewind(t.Context(), ids[0], both)
	require.NoError(t, err)
	require.Equal(t, []string{"mine"}, leftPaths(back))
	require.Equal(t, "0 old (none)", content(t, store))
	require.Equal(t, "of a person", got(t, store.Project(), "mine"))
}

// The limit keeps what undo needs, even if it is the oldest: without it undo would take
// all files for somebody else's work.
func TestUndoAfterARewindToTheOldest(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, ids := agentWorked(t, store, "auth")
	require.NoError(t, sess.Close(t.Context()))
	store = storeWith(t, filepath.Dir(store.Path()), lifecycle.Policy{CheckpointBytes: 1})
	sess, err := store.Open(sess.ID())
	require.NoError(t, err)
	put(t, store.Project(), "mine", "1") // so that no other checkpoint has the tree of the oldest
	_, err = sess.Rewind(t.Context(), ids[0], both)
	require.NoError(t, err)
	require.Equal(t, "0 old (none)", content(t, store))
	require.Less(t, len(cps(t, store)), len(ids)+2, "some were removed")
	require.NoError(t, sess.Close(t.Context()))
	again, err := store.Open(sess.ID())
	require.NoError(t, err)
	back, err := again.Undo(t.Context(), both)
	require.NoError(t, err)
	require.Empty(t, back.Retained)
	require.Equal(t, "2 (none) 2", content(t, store))
	require.Equal(t, 2, done(again.State()))
	require.NoError(t, again.Close(t.Context()))
}

// The limit keeps what undo needs of a session that is not open, whatever another session
// makes.
func TestUndoWhileAnotherSessionWorks(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, ids := agentWorked(t, store, "auth")
	_, err := sess.Rewind(t.Context(), ids[0], both)
	require.NoError(t, err)
	require.NoError(t, sess.Close(t.Context()))
	store = storeWith(t, filepath.Dir(store.Path()), lifecycle.Policy{CheckpointBytes: 1})
	other := create(t, store, "other")
	for i := range 3 {
		put(t, store.Project(), "other", fmt.Sprint(i))
		_, _, err := other.Checkpoint(t.Context(), checkpoint.Manual, "")
		require.NoError(t, err)
	}
	require.NoError(t, other.Close(t.Context()))
	again, err := store.Open(sess.ID())
	require.NoError(t, err)
	back, err := again.Undo(t.Context(), both)
	require.NoError(t, err)
	require.Equal(t, []string{"other"}, leftPaths(back))
	require.Equal(t, "2 (none) 2", content(t, store))
	require.NoError(t, again.Close(t.Context()))
}
