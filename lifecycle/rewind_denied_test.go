package lifecycle_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// denyIn refuses every change of a name in a folder.
func denyIn(folder string) func(crashfs.Op) crashfs.Fault {
	return func(op crashfs.Op) crashfs.Fault {
		switch op.Call {
		case "create", "mkdir", "remove", "rename", "symlink":
			if filepath.Dir(op.Name) == folder {
				return crashfs.Fault{Err: syscall.EACCES}
			}
		}
		return crashfs.Fault{}
	}
}

// A rewind that the system does not allow changes nothing, says so, and holds nobody
// up: the session continues, and undo goes back to where it went before.
func TestRewindDenied(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, ids := agentWorked(t, store, "sim")
	_, err = sess.Rewind(t.Context(), ids[1], both)
	require.NoError(t, err)
	_, err = sess.Undo(t.Context(), both)
	require.NoError(t, err)
	disk.SetHook(denyIn("."))
	_, err = sess.Rewind(t.Context(), ids[0], both)
	require.ErrorIs(t, err, checkpoint.ErrUnchanged)
	require.Equal(t, writer.ClassDenied, writer.ClassOf(err))
	require.Equal(t, lifecycle.ClassDenied, lifecycle.ClassOf(err))
	require.Equal(t, "2 (none) 2", content(t, store))
	require.Equal(t, 2, done(sess.State()))
	require.NoError(t, sess.Close(t.Context()))
	sess, err = store.Open(sess.ID())
	require.NoError(t, err, "nothing is left to be finished")
	disk.SetHook(nil)
	back, err := sess.Undo(t.Context(), both)
	require.NoError(t, err)
	require.Equal(t, "1 old (none)", content(t, store), "undo of the undo: %v", back)

	disk.SetHook(denyIn("."))
	_, err = sess.Rewind(t.Context(), ids[0], rewind.Options{Files: true, State: true, Force: true})
	require.NoError(t, err)
	require.Equal(t, "1 old (none)", content(t, store))
	require.Zero(t, done(sess.State()), "all that is allowed is done")
	require.NoError(t, store.Close(t.Context()))
}

// A rewind that has begun and cannot be finished does not keep anybody from reading or
// forking the session. Whoever opens it gets advice, and may have the rewind finished as
// far as is permitted.
func TestRewindBegunAndDenied(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, ids := agentWorked(t, store, "sim")
	var cut *crashfs.Disk
	disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
		if cut == nil && op.Call == "rename" && op.Name == "gone" {
			cut = disk.Snapshot() // the first of two files is in its place
		}
		return crashfs.Fault{}
	}))
	_, err = sess.Rewind(t.Context(), ids[0], both)
	require.NoError(t, err)
	require.NoError(t, store.Close(t.Context()))

	store, err = lifecycle.OpenOn(cut.FS(), simOptions)
	require.NoError(t, err)
	require.Equal(t, "0 (none) 2", content(t, store))
	cut.SetHook(denyIn("."))
	for range 2 {
		_, err = store.Open(sess.ID())
		require.Equal(t, writer.ClassDenied, writer.ClassOf(err))
		require.ErrorContains(t, err, "finish the rewind to checkpoint "+ids[0].Short()+" that was begun")
		require.ErrorContains(t, err, "lopen checkpoint rewind "+ids[0].Short()+" --session sim-20260214-1 --force --yes")
		require.ErrorContains(t, err, "lopen checkpoint rewind --give-up --session sim-20260214-1")
		require.ErrorContains(t, err, "still changed: a;")
	}
	st, _, err := store.Read(sess.ID())
	require.NoError(t, err)
	require.Equal(t, 2, done(st))
	fork, err := store.Fork(t.Context(), sess.ID(), lifecycle.ForkOptions{})
	require.NoError(t, err)
	require.NoError(t, fork.Close(t.Context()))

	require.NoError(t, store.Close(t.Context()))
	permitted := simOptions
	permitted.Policy.RewindPermitted = true
	store, err = lifecycle.OpenOn(cut.FS(), permitted)
	require.NoError(t, err)
	next, err := store.Open(sess.ID())
	require.NoError(t, err)
	require.Equal(t, "0 (none) 2", content(t, store))
	require.Equal(t, 2, done(next.State()), "it is taken back as far as that is permitted")
	_, err = next.Rewind(t.Context(), ids[0], rewind.Options{Files: true, State: true, Force: true})
	require.NoError(t, err)
	require.Equal(t, "0 (none) 2", content(t, store))
	require.Zero(t, done(next.State()))
	cut.SetHook(nil)
	_, err = next.Undo(t.Context(), both)
	require.NoError(t, err)
	require.Equal(t, 2, done(next.State()))
	require.NoError(t, store.Close(t.Context()))
}

// A rewind that could not be recorded has failed. The next holder does not carry it out
// when the disk works again.
func TestRewindThatCannotBeginIsNotFinishedLater(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, ids := agentWorked(t, store, "auth")
	before := content(t, store)
	disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "datasync" && strings.Contains(op.Name, "journal-") {
			return crashfs.Fault{Err: syscall.ENOSPC}
		}
		return crashfs.Fault{}
	})
	_, err = sess.Rewind(t.Context(), ids[0], both)
	require.Equal(t, writer.ClassNoSpace, writer.ClassOf(err), "%v", err)
	disk.SetHook(nil)
	require.NoError(t, sess.Unpause(t.Context()))
	require.NoError(t, sess.Close(t.Context()))
	again, err := store.Open(sess.ID())
	require.NoError(t, err)
	require.Equal(t, before, content(t, store))
	require.Equal(t, 2, done(again.State()))
	require.NoError(t, store.Close(t.Context()))
}

// A rewind that has begun and found no room for what it writes has changed nothing, and nobody finds it unfinished.
func TestRewindWithoutRoomIsGivenUp(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, ids := agentWorked(t, store, "sim")
	disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "write" && strings.Contains(op.Name, ".lopen-rewind-") {
			return crashfs.Fault{Err: syscall.ENOSPC}
		}
		return crashfs.Fault{}
	})
	_, err = sess.Rewind(t.Context(), ids[0], both)
	require.ErrorIs(t, err, checkpoint.ErrUnchanged)
	require.Equal(t, lifecycle.ClassNoSpace, lifecycle.ClassOf(err))
	require.Equal(t, "2 (none) 2", content(t, store))
	disk.SetHook(nil)
	require.NoError(t, sess.Close(t.Context()))
	unfinished, err := store.UnfinishedRewinds()
	require.NoError(t, err)
	require.Empty(t, unfinished)
	sess, err = store.Open(sess.ID())
	require.NoError(t, err)
	_, err = sess.Rewind(t.Context(), ids[0], both)
	require.NoError(t, err)
	require.Zero(t, done(sess.State()))
	require.NoError(t, store.Close(t.Context()))
}
