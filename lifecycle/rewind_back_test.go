package lifecycle_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// inTree reports whether a call changes a file or folder of the project.
func inTree(op crashfs.Op) bool {
	switch op.Call {
	case "create", "mkdir", "remove", "rename", "symlink", "chmod":
		return !strings.HasPrefix(op.Name, ".lopen/")
	}
	return false
}

// A rewind that meets an error at any of its calls takes back what it has changed: files, tasks
// and boxes are as before, and the session goes on.
func TestRewindMeetsAnError(t *testing.T) {
	t.Parallel()
	for _, errno := range []syscall.Errno{syscall.EBUSY, syscall.EXDEV, syscall.ETXTBSY, syscall.ENOTSUP, syscall.EPERM, syscall.EROFS, syscall.EIO, syscall.ENOSPC} {
		t.Run(errno.Error(), func(t *testing.T) {
			t.Parallel()
			for k := 1; rewindMeets(t, errno, k); k++ {
				require.Less(t, k, 100)
			}
		})
	}
}

// rewindMeets has call k of a rewind fail, and reports whether there is one.
func rewindMeets(t *testing.T, errno syscall.Errno, k int) bool {
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, ids := agentWorked(t, store, "sim")
	boxes, n, what := planOf(t, store, "sim"), 0, ""
	disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
		if inTree(op) {
			if n++; n == k {
				what = op.Call + " " + op.Name
				return crashfs.Fault{Err: errno}
			}
		}
		return crashfs.Fault{}
	}))
	_, err = sess.Rewind(t.Context(), ids[0], both)
	disk.SetHook(nil)
	if n < k {
		require.NoError(t, err)
		require.Greater(t, k, 6)
		return false
	}
	if err == nil { // a file of its own that could not be removed
		require.Contains(t, what, "remove .lopen-rewind-")
		return true
	}
	require.ErrorIs(t, err, checkpoint.ErrUnchanged, what)
	require.Equal(t, "2 (none) 2", content(t, store), what)
	require.Equal(t, 2, done(sess.State()), what)
	require.Equal(t, boxes, planOf(t, store, "sim"), what)
	_, err = sess.Undo(t.Context(), both)
	require.ErrorIs(t, err, lifecycle.ErrNotFound, "%s: nothing is to be undone", what)
	require.NoError(t, sess.Close(t.Context()))
	sess, err = store.Open(sess.ID())
	require.NoError(t, err, what)
	_, err = sess.Rewind(t.Context(), ids[0], both)
	require.NoError(t, err, what)
	require.Equal(t, "0 old (none)", content(t, store), what)
	require.NoError(t, store.Close(t.Context()))
	return true
}

// The decision to take a rewind back is durable: when a kill or a power cut comes in between, the
// next holder goes on backwards, and leaves what a person edited meanwhile.
func TestTakingBackIsCutOff(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, ids := agentWorked(t, store, "sim")
	var cuts []*crashfs.Disk
	failed := false
	disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
		if failed && op.N > 0 {
			cuts = append(cuts, disk.Snapshot())
		}
		if !failed && op.Call == "remove" && op.Name == "new" { // the last of its changes
			failed = true
			return crashfs.Fault{Err: syscall.EBUSY}
		}
		return crashfs.Fault{}
	}))
	_, err = sess.Rewind(t.Context(), ids[0], both)
	require.ErrorIs(t, err, checkpoint.ErrUnchanged)
	disk.SetHook(nil)
	require.NoError(t, store.Close(t.Context()))
	cuts = append(cuts, disk.Snapshot())

	for _, power := range []bool{false, true} {
		for _, edited := range []bool{false, true} {
			backwards := 0
			for i, cut := range cuts {
				cut = cut.Snapshot()
				if power {
					cut = cut.Crash(crashfs.Variant{})
				}
				again, err := lifecycle.OpenOn(cut.FS(), simOptions)
				require.NoError(t, err)
				back, forth := "2 (none) 2", "0 old (none)"
				if edited {
					put(t, again.Project(), "a", "a person's")
					back, forth = "a person's (none) 2", "a person's old (none)"
				}
				next, err := again.Open(sess.ID())
				require.NoError(t, err, "cut %d", i)
				if n := done(next.State()); n == 2 {
					backwards++
					require.Equal(t, back, content(t, again), "cut %d", i)
				} else {
					require.Zero(t, backwards, "cut %d: the decision was durable before", i)
					require.Equal(t, forth, content(t, again), "cut %d", i)
				}
				unfinished, err := again.UnfinishedRewinds()
				require.NoError(t, err)
				require.Empty(t, unfinished)
				require.NoError(t, again.Close(t.Context()))
			}
			require.Greater(t, backwards, 10)
		}
	}
}

// Where taking back meets an error as well, the message has what is still changed, and the next
// holder tries again.
func TestTakingBackMeetsAnError(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, ids := agentWorked(t, store, "sim")
	failed := false
	disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
		failed = failed || op.Call == "remove" && op.Name == "new"
		if failed && inTree(op) {
			return crashfs.Fault{Err: syscall.EIO}
		}
		return crashfs.Fault{}
	}))
	_, err = sess.Rewind(t.Context(), ids[0], both)
	require.NotErrorIs(t, err, checkpoint.ErrUnchanged)
	require.ErrorContains(t, err, "take back the rewind: ")
	require.ErrorContains(t, err, "still changed: a, gone; whatever opens the session next takes it back")
	require.NoError(t, sess.Close(t.Context()))
	unfinished, err := store.UnfinishedRewinds()
	require.NoError(t, err)
	require.True(t, unfinished[sess.ID()].Back)
	_, err = store.Open(sess.ID())
	require.ErrorContains(t, err, "still changed: a, gone; whatever opens the session next takes it back")
	disk.SetHook(nil)
	sess, err = store.Open(sess.ID())
	require.NoError(t, err)
	require.Equal(t, "2 (none) 2", content(t, store))
	require.Equal(t, 2, done(sess.State()))
	require.NoError(t, store.Close(t.Context()))
}

// A rewind that a kill cut off can be given up wherever it was cut off, also where nothing may be
// changed any more or the checkpoints are gone. That changes no file, and frees the session.
func TestRewindIsGivenUp(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, ids := agentWorked(t, store, "sim")
	var cuts []*crashfs.Disk
	disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
		if op.N > 0 {
			cuts = append(cuts, disk.Snapshot())
		}
		return crashfs.Fault{}
	}))
	_, err = sess.Rewind(t.Context(), ids[0], both)
	require.NoError(t, err)
	disk.SetHook(nil)
	require.NoError(t, store.Close(t.Context()))

	for _, gone := range []bool{false, true} {
		begun := 0
		for i, cut := range cuts {
			cut = cut.Snapshot()
			if gone {
				require.NoError(t, cut.FS().RemoveAll(".lopen/blobs"))
			}
			again, err := lifecycle.OpenOn(cut.FS(), simOptions)
			require.NoError(t, err)
			before := content(t, again)
			unfinished, err := again.UnfinishedRewinds()
			require.NoError(t, err)
			cut.SetHook(func(op crashfs.Op) crashfs.Fault {
				if inTree(op) {
					return crashfs.Fault{Err: syscall.EPERM}
				}
				return crashfs.Fault{}
			})
			up, err := again.GiveUpRewind(t.Context(), sess.ID())
			if unfinished[sess.ID()] == nil {
				require.ErrorIs(t, err, lifecycle.ErrNotFound, "cut %d", i)
			} else {
				begun++
				require.NoError(t, err, "cut %d", i)
				requireStand(t, up, before, gone)
			}
			unfinished, err = again.UnfinishedRewinds()
			require.NoError(t, err)
			require.Empty(t, unfinished)
			next, err := again.Open(sess.ID())
			require.NoError(t, err, "cut %d", i)
			require.Equal(t, before, content(t, again), "cut %d", i)
			cut.SetHook(nil)
			if len(up.Changed) > 0 && !gone {
				_, err = next.Undo(t.Context(), rewind.Options{Files: true})
				require.NoError(t, err)
				require.Equal(t, "2 (none) 2", content(t, again), "cut %d", i)
			}
			require.NoError(t, again.Close(t.Context()))
		}
		require.Greater(t, begun, 10)
	}
}

// requireStand requires that what is given up says how far the rewind of agentWorked has come.
func requireStand(t *testing.T, up rewind.GivenUp, is string, gone bool) {
	t.Helper()
	if gone {
		require.Error(t, up.Unknown)
		return
	}
	require.NoError(t, up.Unknown)
	require.Empty(t, up.Other)
	want := map[string][2]string{"a": {"2", "0"}, "gone": {"(none)", "old"}, "new": {"2", "(none)"}}
	for i, path := range []string{"a", "gone", "new"} {
		switch found := strings.Fields(is)[i]; found {
		case want[path][0]:
			require.Contains(t, up.Left, path)
		case want[path][1]:
			require.Contains(t, up.Changed, path)
		default:
			t.Fatalf("%s is %q", path, found)
		}
	}
	require.Len(t, append(up.Left, up.Changed...), 3)
}
