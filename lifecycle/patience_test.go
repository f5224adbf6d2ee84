package lifecycle_test

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// patient calls fn and returns how long it took. Tests call it in a synctest bubble, where
// time passes only when every goroutine is blocked.
func patient(t *testing.T, fn func(ctx context.Context) error) (time.Duration, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	begun := time.Now()
	err := fn(ctx)
	return time.Since(begun), err
}

// A process that is stopped while it briefly holds a lock holds nobody up for ever: the others
// give up with an error that names it.
func TestLocksAreNotWaitedForWithoutBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := crashfs.New(crashfs.Ext4)
		store, err := lifecycle.InitOn(disk.FS(), simOptions)
		require.NoError(t, err)
		sess, err := store.Create(t.Context(), "sim")
		require.NoError(t, err)
		root, err := disk.FS().Sub(".lopen")
		require.NoError(t, err)

		lock, err := writer.TryLock(root, ".lock", writer.OwnerOf(os.Getpid(), "prune that was stopped"))
		require.NoError(t, err)
		took, err := patient(t, func(ctx context.Context) error {
			_, err := store.Create(ctx, "sim")
			return err
		})
		require.ErrorIs(t, err, lifecycle.ErrBusy)
		require.ErrorContains(t, err, "prune that was stopped")
		require.Less(t, took, time.Minute)
		require.NoError(t, lock.Unlock())

		_, _, err = sess.Checkpoint(t.Context(), checkpoint.Manual, "")
		require.NoError(t, err)
		blobs, err := root.Sub("blobs")
		require.NoError(t, err)
		stopped, finish, ended := make(chan struct{}), make(chan struct{}), make(chan error)
		go func() {
			_, err := blob.New(blobs).Sweep(func() (map[blob.Hash]struct{}, error) {
				close(stopped)
				<-finish
				return nil, context.Canceled
			})
			ended <- err
		}()
		<-stopped
		took, err = patient(t, func(ctx context.Context) error {
			_, _, err := sess.Checkpoint(ctx, checkpoint.Manual, "")
			return err
		})
		require.ErrorIs(t, err, lifecycle.ErrBusy)
		var busy *lifecycle.BusyError
		require.ErrorAs(t, err, &busy)
		require.NotZero(t, busy.Owner.PID)
		require.Less(t, took, time.Minute)
		close(finish)
		require.ErrorIs(t, <-ended, context.Canceled)
		_, _, err = sess.Checkpoint(t.Context(), checkpoint.Manual, "")
		require.NoError(t, err, "it is free again, and so is the session")
		require.NoError(t, store.Close(t.Context()))
	})
}
