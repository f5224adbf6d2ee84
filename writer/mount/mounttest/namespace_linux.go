package mounttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// inside is set in the process that has the namespace.
const inside = "LOPEN_TEST_MOUNTS"

// Run runs fn in another process of this test binary, which has a mount namespace of its own. It is
// to be the first call of a test that is no subtest; fn may have subtests.
func Run(t *testing.T, fn func(t *testing.T)) {
	t.Helper()
	if os.Getenv(inside) != "" {
		require.NoError(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
		fn(t)
		return
	}
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1") // #nosec G204 G702 -- this test
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil && os.Getuid() != 0 {
		t.Skipf("this system gives no mount namespace: %v", err)
	}
	require.NoError(t, err, "%s", out)
}

// Bind mounts a file or folder on another one, which it makes unless it is there. It is unmounted at
// the end of the test, if it is still mounted then.
func Bind(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	require.NoError(t, err)
	dir := to
	if !info.IsDir() {
		dir = filepath.Dir(to)
	}
	require.NoError(t, os.MkdirAll(dir, 0o750))
	if _, err := os.Stat(to); err != nil {
		require.NoError(t, os.WriteFile(to, nil, 0o600))
	}
	require.NoError(t, unix.Mount(from, to, "", unix.MS_BIND, ""))
	t.Cleanup(func() { _ = unix.Unmount(to, unix.MNT_DETACH) })
}

// Tmpfs mounts a file system in memory on a folder, as Bind does.
func Tmpfs(t *testing.T, to string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(to, 0o750))
	require.NoError(t, unix.Mount("tmpfs", to, "tmpfs", 0, "mode=0755"))
	t.Cleanup(func() { _ = unix.Unmount(to, unix.MNT_DETACH) })
}

// Unmount takes away what was mounted last on a path.
func Unmount(t *testing.T, at string) {
	t.Helper()
	require.NoError(t, unix.Unmount(at, unix.MNT_DETACH))
}
