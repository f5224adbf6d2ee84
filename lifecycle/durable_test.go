package lifecycle_test

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/journal"
)

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// logOf returns the lines of a session's log.
func logOf(t *testing.T, store *lifecycle.Store, id session.ID) (lines []string) {
	t.Helper()
	dir := folderOf(t, store.Project(), id)
	defer dir.Close()
	log, err := journal.Read(dir, 0, true)
	require.NoError(t, err)
	require.NoError(t, log.Lines(log.Records, func(_ *journal.Ref, line []byte) error {
		lines = append(lines, string(line))
		return nil
	}))
	return lines
}

// More is closed exactly when a later record is durable, and the State is that of the record.
func TestDurable(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, err := store.Create(t.Context(), "sim")
	require.NoError(t, err)
	was := sess.Durable()
	require.Same(t, was, sess.Durable())
	require.Equal(t, sess.State(), was.State)
	require.EqualValues(t, len(logOf(t, store, sess.ID())), was.Seq)
	for n := 1; n < 6; n++ {
		require.NoError(t, sess.Change(session.TriggerTaskCompleted, turns(n)))
		require.NoError(t, sess.Sync(t.Context()))
		now := sess.Durable()
		require.True(t, closed(was.More))
		require.False(t, closed(now.More))
		require.Greater(t, now.Seq, was.Seq)
		require.Equal(t, n, now.State.Header().TurnCount)
		require.EqualValues(t, len(logOf(t, store, sess.ID())), now.Seq)
		was = now
	}

	// A record whose sync fails is not durable, whatever the file has.
	fails := true
	disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
		if fails && op.Call == "datasync" {
			return crashfs.Fault{Err: syscall.EIO}
		}
		return crashfs.Fault{}
	}))
	require.NoError(t, sess.Change(session.TriggerTaskCompleted, turns(100)))
	require.Error(t, sess.Sync(t.Context()))
	require.Same(t, was, sess.Durable())
	require.False(t, closed(was.More))
	require.Equal(t, 100, sess.State().Header().TurnCount)
	disk.SetHook(nil)
	require.NoError(t, sess.Unpause(t.Context()))
	require.True(t, closed(was.More))
	require.Equal(t, 100, sess.Durable().State.Header().TurnCount)

	// A message is a record as well.
	was = sess.Durable()
	require.NoError(t, sess.Append(&session.Message{Role: session.RoleUser, Content: session.Text("hello")}))
	require.NoError(t, sess.Sync(t.Context()))
	require.True(t, closed(was.More))
	require.Equal(t, was.Messages+1, sess.Durable().Messages)
	require.NoError(t, sess.Close(t.Context()))
	last := sess.Durable()
	require.False(t, closed(last.More))
	require.EqualValues(t, len(logOf(t, store, sess.ID())), last.Seq)

	again, err := store.Open(sess.ID())
	require.NoError(t, err)
	require.GreaterOrEqual(t, again.Durable().Seq, last.Seq)
	require.Equal(t, 100, again.Durable().State.Header().TurnCount)
	require.NoError(t, again.Close(t.Context()))
}

// Whoever follows More sees each State that stays the newest one, and none twice.
func TestDurableIsFollowed(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	const last = 200
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for was := sess.Durable(); was.State.Header().TurnCount < last; {
				<-was.More
				now := sess.Durable()
				if now.Seq <= was.Seq || now.State.Header().TurnCount < was.State.Header().TurnCount {
					panic(fmt.Sprintf("record %d follows record %d", now.Seq, was.Seq))
				}
				was = now
			}
		})
	}
	for n := 1; n <= last; n++ {
		require.NoError(t, sess.Change(session.TriggerTaskCompleted, turns(n)))
		if n%20 == 0 {
			require.NoError(t, sess.Sync(t.Context()))
		}
	}
	require.NoError(t, sess.Sync(t.Context()))
	wg.Wait()
	require.NoError(t, sess.Close(t.Context()))
}

// A fenced session writes nothing more until it is opened again, and others of the store do.
func TestFence(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, other := create(t, store, "auth"), create(t, store, "other")
	require.NoError(t, sess.Change(session.TriggerTaskCompleted, turns(1)))
	require.NoError(t, sess.Sync(t.Context()))
	cause := errors.New("host b continues it")
	before, was := logOf(t, store, sess.ID()), sess.Durable()
	sess.Fence(cause)
	require.NoError(t, sess.Paused(), "it pauses before the next commit")
	require.NoError(t, sess.Change(session.TriggerTaskCompleted, turns(2)))
	require.NoError(t, sess.Append(&session.Message{Role: session.RoleUser, Content: session.Text("hello")}))
	err := sess.Sync(t.Context())
	require.Equal(t, writer.ClassFenced, writer.ClassOf(err))
	require.ErrorIs(t, err, cause)
	require.ErrorIs(t, sess.Paused(), cause)
	require.ErrorIs(t, <-sess.Critical(), cause)
	for range 2 {
		require.ErrorIs(t, sess.Unpause(t.Context()), cause)
		require.Equal(t, writer.ClassFenced, writer.ClassOf(sess.Flush(t.Context())))
	}
	require.ErrorIs(t, sess.Close(t.Context()), cause)
	require.Same(t, was, sess.Durable())
	require.False(t, closed(was.More))
	require.Equal(t, before, logOf(t, store, sess.ID()))

	require.NoError(t, other.Change(session.TriggerTaskCompleted, turns(7)))
	require.NoError(t, other.Flush(t.Context()))

	again, err := store.Open(sess.ID())
	require.NoError(t, err)
	require.Equal(t, 1, again.State().Header().TurnCount)
	require.NoError(t, again.Change(session.TriggerTaskCompleted, turns(3)))
	require.NoError(t, again.Flush(t.Context()))
	require.NoError(t, again.Close(t.Context()))
	require.Equal(t, before, logOf(t, store, sess.ID())[:len(before)])
	require.NoError(t, other.Close(t.Context()))
	requireIntact(t, store, sess.ID(), other.ID())
}

// A session that is paused for another reason is fenced when that is over.
func TestFenceOfAPausedSession(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, err := store.Create(t.Context(), "sim")
	require.NoError(t, err)
	before := logOf(t, store, sess.ID())
	disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "datasync" {
			return crashfs.Fault{Err: syscall.EIO}
		}
		return crashfs.Fault{}
	}))
	require.NoError(t, sess.Change(session.TriggerTaskCompleted, turns(1)))
	require.ErrorIs(t, sess.Sync(t.Context()), syscall.EIO)
	disk.SetHook(nil)
	cause := errors.New("host b continues it")
	sess.Fence(cause)
	require.ErrorIs(t, sess.Unpause(t.Context()), cause)
	require.Equal(t, writer.ClassFenced, writer.ClassOf(sess.Close(t.Context())))
	got := logOf(t, store, sess.ID())
	require.LessOrEqual(t, len(got), len(before)+1, "what the failed sync left may be found")
	again, err := store.Open(sess.ID())
	require.NoError(t, err)
	require.NoError(t, again.Close(t.Context()))
}
