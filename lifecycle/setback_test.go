package lifecycle_test

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// worksOn is an attempt at a task: what it does to the files is between two checkpoints.
func worksOn(t *testing.T, sess *lifecycle.Session, task string, work func()) {
	t.Helper()
	_, _, err := sess.Checkpoint(t.Context(), checkpoint.BeforeTask, task)
	require.NoError(t, err)
	work()
	_, _, err = sess.Checkpoint(t.Context(), checkpoint.AfterTask, task)
	require.NoError(t, err)
}

// failsTwice is a session whose task one is done and whose task two has failed twice.
func failsTwice(t *testing.T, store *lifecycle.Store) *lifecycle.Session {
	t.Helper()
	dir := store.Project()
	put(t, dir, "a", "0")
	put(t, dir, "gone", "old")
	sess := create(t, store, "sim")
	worksOn(t, sess, "one", func() { put(t, dir, "a", "1") })
	worksOn(t, sess, "two", func() { put(t, dir, "a", "2"); put(t, dir, "new", "2") })
	put(t, dir, "mine", "of a person")
	worksOn(t, sess, "two", func() {
		put(t, dir, "new", "3")
		require.NoError(t, dir.Remove("gone"))
		require.NoError(t, dir.SyncDir("."))
	})
	return sess
}

func TestSetBack(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := failsTwice(t, store)
	was := sess.State()
	back, why, err := sess.SetBack(t.Context(), "two")
	require.NoError(t, err)
	require.Empty(t, why)
	require.Len(t, back.Changes, 3)
	require.Equal(t, "1 old (none)", content(t, store), "what task one did stays")
	require.Equal(t, "of a person", got(t, store.Project(), "mine"))
	require.Same(t, was, sess.State())
	_, err = sess.Undo(t.Context(), both)
	require.ErrorIs(t, err, lifecycle.ErrNotFound, "undo is for what a person rewinds")

	var ends []*session.Rewinding
	require.NoError(t, store.Log(sess.ID(), 0, func(r record.Record) error {
		if r.Event == record.EventRewindEnd {
			ends = append(ends, r.Rewind)
		}
		return nil
	}))
	require.Len(t, ends, 1)
	require.Equal(t, "two", ends[0].Task)
	require.Equal(t, back.Before.ID.String(), ends[0].Before)

	// The work of a task that comes later stays when the failed one's is brought back.
	worksOn(t, sess, "three", func() { put(t, store.Project(), "later", "3") })
	again, err := sess.Rewind(t.Context(), back.Before.ID, rewind.Options{Files: true, Paths: []string{"a", "new", "gone"}})
	require.NoError(t, err)
	require.Empty(t, again.Retained)
	require.Equal(t, "2 (none) 3", content(t, store))
	require.Equal(t, "3", got(t, store.Project(), "later"))
	require.NoError(t, sess.Close(t.Context()))
}

// A task that failed both before and after another task was done is set back to the
// second of its beginnings.
func TestSetBackLeavesOtherTasks(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	dir := store.Project()
	sess := failsTwice(t, store)
	worksOn(t, sess, "three", func() { put(t, dir, "new", "of three") })
	worksOn(t, sess, "two", func() { put(t, dir, "new", "4") })
	_, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	worksOn(t, sess, "two", func() { put(t, dir, "new", "5") })
	back, why, err := sess.SetBack(t.Context(), "two")
	require.NoError(t, err)
	require.Empty(t, why)
	require.Len(t, back.Changes, 1)
	require.Equal(t, "2 (none) of three", content(t, store))

	// It goes back no further than to a rewind: a person may have brought something back.
	worksOn(t, sess, "two", func() { put(t, dir, "new", "6") })
	back, _, err = sess.SetBack(t.Context(), "two")
	require.NoError(t, err)
	require.Len(t, back.Changes, 1)
	require.Equal(t, "2 (none) of three", content(t, store))
	worksOn(t, sess, "two", func() {})
	back, why, err = sess.SetBack(t.Context(), "two")
	require.NoError(t, err)
	require.Empty(t, why)
	require.Nil(t, back.Before, "nothing to bring back")
	require.NoError(t, sess.Close(t.Context()))
}

func TestSetBackRefuses(t *testing.T) {
	t.Parallel()
	head := checkpoint.Git{Head: "c0ffee", Branch: "main"}
	for name, c := range map[string]struct {
		why  string
		then func(t *testing.T, store *lifecycle.Store, sess *lifecycle.Session, head *checkpoint.Git)
	}{
		"head":   {"HEAD or branch is another one", func(_ *testing.T, _ *lifecycle.Store, _ *lifecycle.Session, head *checkpoint.Git) { head.Head = "beef" }},
		"branch": {"HEAD or branch is another one", func(_ *testing.T, _ *lifecycle.Store, _ *lifecycle.Session, head *checkpoint.Git) { head.Branch = "x" }},
		"another task": {"another task is at work: other-20260214-1 u", func(t *testing.T, store *lifecycle.Store, _ *lifecycle.Session, _ *checkpoint.Git) {
			_, _, err := create(t, store, "other").Checkpoint(t.Context(), checkpoint.BeforeTask, "u")
			require.NoError(t, err)
		}},
		"contested": {"a and 2 more: changed while several tasks", func(t *testing.T, store *lifecycle.Store, sess *lifecycle.Session, _ *checkpoint.Git) {
			other := create(t, store, "other")
			worksOn(t, other, "u", func() {
				worksOn(t, sess, "two", func() {
					for _, name := range []string{"a", "b", "new"} {
						put(t, store.Project(), name, "of whom?")
					}
				})
			})
		}},
		"a task that never began": {"no checkpoint was made before its attempts", func(t *testing.T, store *lifecycle.Store, sess *lifecycle.Session, _ *checkpoint.Git) {
			worksOn(t, sess, "three", func() { put(t, store.Project(), "new", "of three") })
		}},
		"removed": {"was removed: room", func(t *testing.T, store *lifecycle.Store, _ *lifecycle.Session, _ *checkpoint.Git) {
			all, err := store.Checkpoints(nil)
			require.NoError(t, err)
			_, err = all.Forget(t.Context(), "room", func(e *checkpoint.Entry) bool { return e.Number == 3 })
			require.NoError(t, err)
			require.NoError(t, all.Close())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := head
			store, _, err := lifecycle.Init(t.TempDir(), lifecycle.Options{Now: clock(), Git: func(context.Context, string) checkpoint.Git { return now }})
			require.NoError(t, err)
			sess := failsTwice(t, store)
			c.then(t, store, sess, &now)
			was := content(t, store)
			_, why, err := sess.SetBack(t.Context(), "two")
			require.NoError(t, err)
			require.Contains(t, why, c.why)
			require.Equal(t, was, content(t, store))
			require.NoError(t, sess.NotSetBack("two", why))
			require.NoError(t, sess.Sync(t.Context()))
			var reported []record.Op
			require.NoError(t, store.Log(sess.ID(), 0, func(r record.Record) error {
				for _, op := range r.Ops {
					if op.Name == record.OpNotSetBack {
						reported = append(reported, op)
					}
				}
				return nil
			}))
			require.Equal(t, []record.Op{{Name: record.OpNotSetBack, Task: "two", To: why}}, reported)
			require.NoError(t, store.Close(t.Context()))
		})
	}
}

// When the session is opened next, a SetBack that was cut off is done completely or not at all.
func TestSetBackCutOffAnywhere(t *testing.T) {
	t.Parallel()
	for k := 1; ; k++ {
		disk := crashfs.New(crashfs.Ext4)
		store, err := lifecycle.InitOn(disk.FS(), simOptions)
		require.NoError(t, err)
		sess := failsTwice(t, store)
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
		_, why, err := sess.SetBack(t.Context(), "two")
		require.Empty(t, why)
		_ = sess.Close(t.Context())
		if cut == nil {
			require.NoError(t, err)
			require.Greater(t, k, 20)
			return
		}
		again, err := lifecycle.OpenOn(cut.FS(), simOptions)
		require.NoError(t, err)
		next, err := again.Open(sess.ID())
		require.NoError(t, err, "call %d", k)
		require.Contains(t, []string{"1 old (none)", "2 (none) 3"}, content(t, again), "call %d", k)
		_, err = next.Undo(t.Context(), both)
		require.ErrorIs(t, err, lifecycle.ErrNotFound, "call %d", k)
		_, _, err = next.SetBack(t.Context(), "two") // as the next run does when the task fails again
		require.NoError(t, err)
		require.Equal(t, "1 old (none)", content(t, again), "call %d", k)
		require.Equal(t, "of a person", got(t, again.Project(), "mine"))
		require.NoError(t, again.Close(t.Context()))
	}
}

// The tree of a failed task stays, with what it takes to bring it back, until its session is
// pruned.
func TestFailedTreesStayUntilTheSessionIsPruned(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := failsTwice(t, store)
	back, _, err := sess.SetBack(t.Context(), "two")
	require.NoError(t, err)
	require.NoError(t, sess.Close(t.Context()))
	store = storeWith(t, filepath.Dir(store.Path()), lifecycle.Policy{CheckpointBytes: 1})
	sess, err = store.Open(sess.ID())
	require.NoError(t, err)
	for i := range 3 {
		worksOn(t, sess, "three", func() { put(t, store.Project(), "later", fmt.Sprint(i)) })
	}
	failed, err := store.FailedTrees(cps(t, store))
	require.NoError(t, err)
	require.Equal(t, map[uint64]bool{back.Before.Number: true}, failed)
	require.Less(t, len(cps(t, store)), 10, "others were removed")
	again, err := sess.Rewind(t.Context(), back.Before.ID, rewind.Options{Files: true, Paths: []string{"a", "new", "gone"}})
	require.NoError(t, err)
	require.Empty(t, again.Retained)
	require.Equal(t, "2 (none) 3", content(t, store))
	_, err = sess.Undo(t.Context(), rewind.Options{Files: true})
	require.NoError(t, err)
	require.Equal(t, "1 old (none)", content(t, store))

	require.NoError(t, sess.Complete(t.Context()))
	require.NoError(t, sess.Close(t.Context()))
	next := create(t, store, "next")
	require.NoError(t, next.Complete(t.Context()))
	require.NoError(t, next.Close(t.Context()))
	_, err = store.Prune(t.Context(), lifecycle.Retention{Sessions: 1}, false)
	require.NoError(t, err)
	other := create(t, store, "other")
	for i := range 3 {
		worksOn(t, other, "u", func() { put(t, store.Project(), "later", fmt.Sprint("of other ", i)) })
	}
	failed, err = store.FailedTrees(cps(t, store))
	require.NoError(t, err)
	require.Empty(t, failed)
	for _, e := range cps(t, store) {
		require.NotEqual(t, back.Before.Number, e.Number)
	}
	require.NoError(t, other.Close(t.Context()))
}
