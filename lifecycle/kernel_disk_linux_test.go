package lifecycle_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// requireTurn says what a store that is opened now finds, without the lease.
func requireTurn(t *testing.T, project string, id session.ID, turn int) {
	t.Helper()
	store, err := lifecycle.Open(project, lifecycle.Options{Now: clock()})
	require.NoError(t, err)
	st, seq, err := store.Read(id)
	require.NoError(t, err)
	require.Equal(t, turn, st.Header().TurnCount)
	requireGapless(t, store, id, seq)
	require.NoError(t, store.Close(t.Context()))
}

func requireDurable(t *testing.T, err error, durable bool) {
	t.Helper()
	var paused *lifecycle.PausedError
	require.ErrorAs(t, err, &paused)
	require.Equal(t, durable, paused.Durable, "%v", err)
}

// Fault 10. The ballast's inode is one more for a new segment, so both ways are
// looked at: a disk that has room for a ballast, and one that has none.
func TestInodesExhausted(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]string{"without ballast": "1m", "where it would take the last room": "3m", "with ballast": "8m"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := tmpfs(t, "nr_inodes=64,size="+size)
			store := storeIn(t, disk)
			store.Shrink(1<<20, 4<<10)
			sess := create(t, store, "auth")
			dir := path(store, "sessions", sess.ID().String())
			require.NoError(t, sess.Change(session.TriggerStepCompleted, bulky(1)))
			require.NoError(t, sess.Flush(t.Context()))
			_, err := os.Stat(path(store, "ballast"))
			ballast := err == nil
			require.Equal(t, size == "8m", ballast)

			free := exhaust(t, disk)
			accepted(t, sess.Change(session.TriggerStepCompleted, bulky(2))) // takes a new segment
			err = sess.Sync(t.Context())
			requirePaused(t, err, lifecycle.ClassNoSpace, unix.ENOSPC, dir)
			requireDurable(t, err, ballast)
			requirePaused(t, <-sess.Critical(), lifecycle.ClassNoSpace, unix.ENOSPC, dir)
			requirePaused(t, sess.Unpause(t.Context()), lifecycle.ClassNoSpace, unix.ENOSPC, dir)
			_, err = store.Create(t.Context(), "pay")
			require.Equal(t, lifecycle.ClassNoSpace, lifecycle.ClassOf(err), "%v", err)
			requireTurn(t, disk, sess.ID(), map[bool]int{false: 1, true: 2}[ballast])

			free()
			require.NoError(t, sess.Unpause(t.Context()))
			require.NoError(t, sess.Change(session.TriggerStepCompleted, bulky(3)))
			require.NoError(t, sess.Flush(t.Context()))
			requireTurn(t, disk, sess.ID(), 3)
			made(t, store, "pay")
			requireNoLeftovers(t, store)
		})
	}
}

// Fault 15. The kernel refuses to remount a file system read-only that has files
// open for writing, as a held session has, unless it does so itself after an error.
// A file system that did must be unmounted before it is written again, so
// that Unpause is in TestFUSE/read-only.
func TestReadOnlyRemount(t *testing.T) {
	t.Parallel()
	disk := tmpfs(t, "size=8m")
	sess := create(t, storeIn(t, disk), "auth")
	require.ErrorIs(t, unix.Mount("", disk, "", unix.MS_REMOUNT|unix.MS_RDONLY, "size=8m"), unix.EBUSY)
	require.NoError(t, sess.Close(t.Context()))

	m := newImage(t, "ext4", "errors=remount-ro")
	store, _, err := lifecycle.Init(m.dir, lifecycle.Options{Now: clock()})
	require.NoError(t, err)
	sess = create(t, store, "auth")
	require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(1)))
	require.NoError(t, sess.Flush(t.Context())) // or a publication that is under way fails with EIO
	m.fails(t)
	accepted(t, sess.Change(session.TriggerStepCompleted, turns(2)))
	err = sess.Sync(t.Context())
	dir := path(store, "sessions", sess.ID().String())
	requirePaused(t, err, lifecycle.ClassDenied, unix.EROFS, dir)
	requireDurable(t, err, false)
	requirePaused(t, <-sess.Critical(), lifecycle.ClassDenied, unix.EROFS, dir)
	requirePaused(t, sess.Unpause(t.Context()), lifecycle.ClassDenied, unix.EROFS, dir)
	requireTurn(t, m.dir, sess.ID(), 1)
	_, err = store.Create(t.Context(), "pay")
	require.Equal(t, lifecycle.ClassDenied, lifecycle.ClassOf(err), "%v", err)
	require.Equal(t, 2, sess.State().Header().TurnCount, "what was accepted is kept")
	require.ErrorIs(t, store.Close(t.Context()), unix.EROFS, "it says what is not durable")

	m = m.twin(t)
	requireTurn(t, m.dir, sess.ID(), 1)
	store = storeIn(t, m.dir)
	again, err := store.Open(sess.ID())
	require.NoError(t, err)
	require.NoError(t, again.Change(session.TriggerStepCompleted, turns(3)))
	require.NoError(t, store.Close(t.Context()))
	requireTurn(t, m.dir, sess.ID(), 3)
}

// A store whose session could not be saved, and is not stuck, lets go of its
// folders when it is closed: the disk can be unmounted.
func TestFailedCloseLetsGo(t *testing.T) {
	t.Parallel()
	disk := tmpfs(t, "size=1m")
	store, _, err := lifecycle.Init(disk, lifecycle.Options{Now: clock()})
	require.NoError(t, err)
	sess := create(t, store, "auth")
	fill(t, disk)
	accepted(t, sess.Change(session.TriggerStepCompleted, bulky(1)))
	require.ErrorIs(t, store.Close(t.Context()), unix.ENOSPC)
	<-sess.Done()
	unmount(t, disk)
	require.NoError(t, unix.Mount("tmpfs", disk, "tmpfs", 0, "")) // for the clean-up
}

// TestFullDiskBallast: on a full disk the reserve goes, the newest State is durable
// all the same, and the session pauses.
func TestFullDiskBallast(t *testing.T) {
	// Not in parallel with tests that start processes: a fork has the removed filler open for
	// a moment, so that its room is not free yet.
	disk := tmpfs(t, "size=8m")
	store := storeIn(t, disk)
	sess := create(t, store, "auth")
	dir := path(store, "sessions", sess.ID().String())
	require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(1)))
	require.NoError(t, sess.Flush(t.Context()))
	whole, err := os.Stat(path(store, "ballast"))
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, whole.Size())

	free := fill(t, disk)
	accepted(t, sess.Change(session.TriggerStepCompleted, bulky(2)))
	err = sess.Sync(t.Context())
	requirePaused(t, err, lifecycle.ClassNoSpace, unix.ENOSPC, dir)
	requireDurable(t, err, true)
	raised := <-sess.Critical()
	requirePaused(t, raised, lifecycle.ClassNoSpace, unix.ENOSPC, dir)
	requireDurable(t, raised, true)
	require.NoFileExists(t, path(store, "ballast"))
	requireTurn(t, disk, sess.ID(), 2)

	refill := topUp(t, disk)
	requirePaused(t, sess.Change(session.TriggerStepCompleted, bulky(3)), lifecycle.ClassNoSpace, unix.ENOSPC, dir)
	err = sess.Unpause(t.Context())
	requirePaused(t, err, lifecycle.ClassNoSpace, unix.ENOSPC, dir)
	requireDurable(t, err, false)
	requireTurn(t, disk, sess.ID(), 2)
	refill()
	free()
	require.NoError(t, sess.Unpause(t.Context()))
	require.NoError(t, sess.Paused())
	requireTurn(t, disk, sess.ID(), 3)
	again, err := os.Stat(path(store, "ballast"))
	require.NoError(t, err, "the reserve is made again")
	require.EqualValues(t, 1<<20, again.Size())
	require.NoError(t, store.Close(t.Context()))
	requireTurn(t, disk, sess.ID(), 3)
}

// TestRemovedWhileRunning is fault 32 with a bystander that had the store open.
func TestRemovedWhileRunning(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]string{"session": "sessions/auth-20260214-1", "store": "."} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := initStore(t)
			project := filepath.Dir(store.Path())
			bystander, err := lifecycle.Open(project, lifecycle.Options{Now: clock()})
			require.NoError(t, err)
			sess := create(t, store, "auth")
			for round := range 3 {
				turn := 2 * round
				require.NoError(t, sess.Change(session.TriggerStepCompleted, bulky(turn+1)))
				require.NoError(t, sess.Flush(t.Context())) // or a publication races with the removal
				require.NoError(t, os.RemoveAll(path(store, what)))

				accepted(t, sess.Change(session.TriggerStepCompleted, bulky(turn+2)))
				err := sess.Sync(t.Context())
				require.Equal(t, lifecycle.ClassRemoved, lifecycle.ClassOf(err), "%v", err)
				requireDurable(t, err, false)
				require.Equal(t, lifecycle.ClassRemoved, lifecycle.ClassOf(<-sess.Critical()))
				_, err = os.Lstat(path(store, "sessions", sess.ID().String()))
				require.ErrorIs(t, err, fs.ErrNotExist, "nothing was acknowledged into the void")

				require.NoError(t, sess.Unpause(t.Context()))
				st, _, err := store.Read(sess.ID())
				require.NoError(t, err)
				require.Equal(t, turn+2, st.Header().TurnCount)
				requireTurn(t, project, sess.ID(), turn+2)
				if what != "." { // a store that was removed is another folder: who had it open opens it again
					st, _, err = bystander.Read(sess.ID())
					require.NoError(t, err)
					require.Equal(t, turn+2, st.Header().TurnCount)
				}
			}
			second := storeIn(t, project)
			_, err = second.Open(sess.ID())
			require.ErrorIs(t, err, lifecycle.ErrBusy)
			require.NoError(t, errors.Join(store.Close(t.Context()), bystander.Close(t.Context())))
			again, err := second.Open(sess.ID())
			require.NoError(t, err)
			require.Equal(t, 6, again.State().Header().TurnCount)
			require.NoError(t, again.Close(t.Context()))
		})
	}
}
