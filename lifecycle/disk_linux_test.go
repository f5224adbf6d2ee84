package lifecycle_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// smallDisk mounts a file system of 1 MiB for the test.
func smallDisk(t *testing.T) string {
	t.Helper()
	return tmpfs(t, "size=1m")
}

// fill writes zeros until the disk is full; what it returns frees it.
func fill(t *testing.T, disk string) (free func()) {
	t.Helper()
	name := filepath.Join(disk, "filler")
	f, err := os.Create(name)
	require.NoError(t, err)
	_, err = io.Copy(f, endless{})
	require.ErrorIs(t, err, unix.ENOSPC)
	require.NoError(t, f.Close())
	return func() { require.NoError(t, os.Remove(name)) }
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// requirePaused says that err pauses a session for a reason, which it names
// with the path and the OS error.
func requirePaused(t *testing.T, err error, class lifecycle.Class, errno error, dir string) {
	t.Helper()
	var paused *lifecycle.PausedError
	require.ErrorAs(t, err, &paused)
	require.Equal(t, class, lifecycle.ClassOf(err))
	require.ErrorIs(t, err, errno)
	require.ErrorContains(t, err, errno.Error())
	require.ErrorContains(t, err, dir)
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t)
	store := storeIn(t, disk)
	sess := create(t, store, "auth")
	dir := path(store, "sessions", sess.ID().String())
	require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(1)))
	require.NoError(t, sess.Sync(t.Context()))

	free := fill(t, disk)
	accepted(t, sess.Change(session.TriggerStepCompleted, bulky(2)))
	requirePaused(t, sess.Sync(t.Context()), lifecycle.ClassNoSpace, unix.ENOSPC, dir)
	requirePaused(t, <-sess.Critical(), lifecycle.ClassNoSpace, unix.ENOSPC, dir)
	requirePaused(t, sess.Change(session.TriggerStepCompleted, bulky(3)), lifecycle.ClassNoSpace, unix.ENOSPC, dir)
	requirePaused(t, sess.Unpause(t.Context()), lifecycle.ClassNoSpace, unix.ENOSPC, dir)
	st, _, err := store.Read(sess.ID())
	require.NoError(t, err)
	require.Equal(t, 1, st.Header().TurnCount, "what was durable stands")
	_, err = store.Create(t.Context(), "pay")
	require.Equal(t, lifecycle.ClassNoSpace, lifecycle.ClassOf(err))
	require.Equal(t, 3, sess.State().Header().TurnCount, "what was accepted is kept")

	free()
	require.NoError(t, sess.Unpause(t.Context()))
	require.NoError(t, sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
		e.Header().TurnCount++
		return nil
	}))
	require.NoError(t, sess.Close(t.Context()))
	again, err := store.Open(sess.ID())
	require.NoError(t, err)
	require.Equal(t, 4, again.State().Header().TurnCount)
	left, err := filepath.Glob(filepath.Join(dir, ".tmp-*"))
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, again.Close(t.Context()))
	made(t, store, "pay")
	requireNoLeftovers(t, store)
}

func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t)
	store := storeIn(t, disk)
	id := made(t, store, "auth")
	require.NoError(t, unix.Mount("", disk, "", unix.MS_REMOUNT|unix.MS_RDONLY, "size=1m"))
	_, err := store.Create(t.Context(), "pay")
	require.ErrorIs(t, err, unix.EROFS)
	_, err = store.Open(id)
	require.ErrorIs(t, err, unix.EROFS)
	require.Equal(t, lifecycle.ClassDenied, lifecycle.ClassOf(err))
	require.ErrorContains(t, err, disk)
	_, _, err = store.Read(id)
	require.NoError(t, err, "reading goes on")
	infos, err := store.List()
	require.NoError(t, err)
	require.NoError(t, infos[0].Err)

	require.NoError(t, unix.Mount("", disk, "", unix.MS_REMOUNT, "size=1m"))
	sess, err := store.Open(id)
	require.NoError(t, err)
	require.NoError(t, sess.Close(t.Context()))
}

// A folder that stops being writable while the session is held. Root may write
// whatever the mode says, so for root the folder is made immutable.
func TestFolderNotWritable(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	dir := path(store, "sessions", sess.ID().String())
	errno := protect(t, dir, true)
	t.Cleanup(func() { protect(t, dir, false) }) // before the test's folder is removed
	accepted(t, sess.Change(session.TriggerStepCompleted, turns(1)))
	err := sess.Flush(t.Context())
	requirePaused(t, err, lifecycle.ClassDenied, errno, dir)
	var paused *lifecycle.PausedError
	require.ErrorAs(t, err, &paused)
	require.True(t, paused.Durable, "the journal's file was open: only the readable files wait")
	protect(t, dir, false)
	require.NoError(t, sess.Unpause(t.Context()))
	infos, err := store.List()
	require.NoError(t, err)
	require.EqualValues(t, 2, infos[0].Seq, "state.json shows it")
}

// immutable is FS_IMMUTABLE_FL of linux/fs.h.
const immutable = 0x10

// protect makes a folder refuse new files or not, and returns with which errno.
func protect(t *testing.T, dir string, on bool) error {
	t.Helper()
	if os.Getuid() != 0 {
		require.NoError(t, os.Chmod(dir, map[bool]os.FileMode{true: 0o500, false: 0o700}[on]))
		return unix.EACCES
	}
	f, err := os.Open(dir)
	require.NoError(t, err)
	defer f.Close()
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		flags &^= immutable
		if on {
			flags |= immutable
		}
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags)
	}
	if err != nil {
		t.Skipf("a folder cannot be made immutable here: %v", err)
	}
	return unix.EPERM
}

// A store in which a session could not be saved says so when it is closed.
func TestCloseOnFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t)
	store, _, err := lifecycle.Init(disk, lifecycle.Options{Now: clock()})
	require.NoError(t, err)
	sess := create(t, store, "auth")
	free := fill(t, disk)
	accepted(t, sess.Change(session.TriggerStepCompleted, bulky(1)))
	err = store.Close(context.Background())
	require.Error(t, err)
	require.ErrorIs(t, err, unix.ENOSPC)
	require.ErrorContains(t, err, sess.ID().String())
	free()
	again := storeIn(t, disk)
	st, _, err := again.Read(sess.ID())
	require.NoError(t, err)
	require.Zero(t, st.Header().TurnCount)
	reopened, err := again.Open(sess.ID())
	require.NoError(t, err, "the lease was given back")
	require.NoError(t, reopened.Close(t.Context()))
}
