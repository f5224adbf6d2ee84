package writer_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/writer"
)

// TestOpenersOfAnothersFile has no right to a lease, because the file is another user's. What the
// processes have open decides.
func TestOpenersOfAnothersFile(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can give a file away")
	}
	dir, err := writer.OpenFS(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	name := filepath.Join(dir.Name(), "file")
	require.NoError(t, os.WriteFile(name, []byte("text"), 0o644))
	require.NoError(t, os.Chown(name, 4711, 4711))
	runtime.LockOSThread() // the thread without the capability ends with the test
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	require.NoError(t, unix.Capget(&header, &data[0]))
	data[0].Effective &^= 1 << unix.CAP_LEASE
	require.NoError(t, unix.Capset(&header, &data[0]))
	asks := func() (string, bool) {
		t.Helper()
		who, is, err := new(writer.Openers).Of(dir, "file")
		require.NoError(t, err)
		return who, is
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	require.ErrorIs(t, err, syscall.EACCES)
	who, is := asks()
	require.True(t, is)
	require.Contains(t, who, filepath.Base(os.Args[0])+", PID "+strconv.Itoa(os.Getpid()))
	m, err := unix.Mmap(int(f.Fd()), 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, is = asks()
	require.True(t, is, "the mapping alone")
	require.NoError(t, unix.Munmap(m))
	f, err = os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	_, is = asks()
	require.False(t, is, "it is only read")
}

// TestOpenersAndALease takes a file for open that somebody has an exclusive lease on, and survives
// the signal that the kernel sends to one whose own lease is in the way.
func TestOpenersAndALease(t *testing.T) {
	t.Parallel()
	dir, err := writer.OpenFS(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	name := filepath.Join(dir.Name(), "file")
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	var o writer.Openers
	_, is, err := o.Of(dir, "file")
	require.NoError(t, err)
	require.False(t, is)
	_, is, err = o.Of(dir, "missing")
	require.NoError(t, err)
	require.False(t, is)
	f, err := os.OpenFile(name, os.O_RDONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	require.NoError(t, err)
	_, is, err = o.Of(dir, "file")
	require.NoError(t, err)
	require.True(t, is)
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGIO))
}

// TestOpenersWhoCannotBeAsked asks as a user for a file of another one, whose processes do not let
// themselves be looked at. It may be open. The user's own file is not: the kernel says so.
func TestOpenersWhoCannotBeAsked(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	const user = 65534
	dir, err := writer.OpenFS(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	for name, owner := range map[string]int{"mine": user, "roots": 0} {
		require.NoError(t, os.WriteFile(filepath.Join(dir.Name(), name), []byte("text"), 0o644))
		require.NoError(t, os.Chown(filepath.Join(dir.Name(), name), owner, owner))
	}
	var errs [2]error
	var who [2]string
	var is [2]bool
	done := make(chan syscall.Errno)
	go func() {
		runtime.LockOSThread() // the thread of the other user ends with this goroutine
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, user, user, user)
		var o writer.Openers
		for i, name := range []string{"mine", "roots"} {
			who[i], is[i], errs[i] = o.Of(dir, name)
		}
		done <- errno
	}()
	require.Zero(t, <-done)
	require.Equal(t, [2]error{}, errs)
	require.Equal(t, [2]bool{false, true}, is)
	require.Equal(t, [2]string{"", "another user's program, perhaps"}, who)
}
