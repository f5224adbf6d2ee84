package lifecycle_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The tests of the files kernel_*_linux_test.go check on the kernel what other tests check on
// the simulated disk. They use real file systems and real processes.

// tmpfs mounts a file system in memory for the test.
func tmpfs(t *testing.T, options string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting a tmpfs takes root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options+",mode=0700"); err != nil {
		t.Skipf("a tmpfs cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// unmount requires that nothing below dir is open. A process that another test starts has
// all that is open here until its exec, also what is closed meanwhile, so that busy is
// busy only after a while.
func unmount(t *testing.T, dir string) {
	t.Helper()
	err := unix.Unmount(dir, 0)
	for until := time.Now().Add(10 * time.Second); errors.Is(err, unix.EBUSY) && time.Now().Before(until); err = unix.Unmount(dir, 0) {
		time.Sleep(time.Millisecond)
	}
	if err != nil {
		_ = unix.Unmount(dir, unix.MNT_DETACH)
	}
	require.NoError(t, err, "unmount %s", dir)
}

// exhaust makes empty files until there is no inode left.
func exhaust(t *testing.T, disk string) (free func()) {
	t.Helper()
	dir := filepath.Join(disk, "empty")
	require.NoError(t, os.Mkdir(dir, 0o700))
	for i := 0; ; i++ {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			require.ErrorIs(t, err, unix.ENOSPC)
			return func() { require.NoError(t, os.RemoveAll(dir)) }
		}
		require.NoError(t, f.Close())
	}
}

// topUp takes what the ballast left.
func topUp(t *testing.T, disk string) (free func()) {
	t.Helper()
	dir := filepath.Join(disk, "more")
	require.NoError(t, os.Mkdir(dir, 0o700))
	fill(t, dir)
	return func() { require.NoError(t, os.RemoveAll(dir)) }
}

const (
	// goingDown is EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN, _IOR('X', 125, __u32).
	goingDown = 0x8004587d
	// noLogFlush has the file system stop as it is: what is in memory is lost.
	noLogFlush = 2
)

// An imageFS is a file system in a file, mounted by way of a loop device.
type imageFS struct {
	file, dir string
	options   string
}

func newImage(t *testing.T, kind string, options ...string) *imageFS {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting a file system takes root")
	}
	for _, tool := range []string{"mount", "umount", "mkfs." + kind} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	size, args := int64(64<<20), []string{"-q", "-F"}
	if kind == "xfs" {
		size, args = 320<<20, []string{"-q", "-f"}
	}
	size += int64(*cuts) << 18 // a journal keeps all its records
	m := &imageFS{file: filepath.Join(t.TempDir(), kind+".img"), dir: t.TempDir(), options: strings.Join(append([]string{"loop"}, options...), ",")}
	require.NoError(t, os.WriteFile(m.file, nil, 0o600))
	require.NoError(t, os.Truncate(m.file, size))
	out, err := exec.Command("mkfs."+kind, append(args, m.file)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	if out, err := exec.Command("mount", "-o", m.options, m.file, m.dir).CombinedOutput(); err != nil {
		t.Skipf("%s cannot be mounted here: %v: %s", kind, err, out)
	}
	t.Cleanup(func() { unmount(t, m.dir) })
	return m
}

// again unmounts and mounts, which plays the file system's own journal.
func (m *imageFS) again(t *testing.T) {
	t.Helper()
	unmount(t, m.dir)
	out, err := exec.Command("mount", "-o", m.options, m.file, m.dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// twin mounts a copy of the device as it is now.
func (m *imageFS) twin(t *testing.T) *imageFS {
	t.Helper()
	twin := &imageFS{file: m.file + ".twin", dir: t.TempDir(), options: m.options}
	for _, args := range [][]string{{"cp", "--sparse=always", m.file, twin.file}, {"mount", "-o", twin.options, twin.file, twin.dir}} {
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		require.NoError(t, err, "%s: %s", args, out)
	}
	t.Cleanup(func() { unmount(t, twin.dir) })
	return twin
}

// cut cuts the power as far as this file system is concerned: nothing that is not
// on the device yet will ever get there. It returns a moment before that.
func (m *imageFS) cut(t *testing.T) (at int64) {
	t.Helper()
	f, err := os.Open(m.dir)
	require.NoError(t, err)
	defer f.Close()
	at = now()
	if err := unix.IoctlSetPointerInt(int(f.Fd()), goingDown, noLogFlush); err != nil {
		t.Skipf("the kernel does not shut this file system down: %v", err)
	}
	return at
}

// fails makes an ext4 file system find an error, after which it is read-only.
func (m *imageFS) fails(t *testing.T) {
	t.Helper()
	dev, err := exec.Command("findmnt", "-no", "SOURCE", m.dir).Output()
	if err != nil {
		t.Skipf("findmnt does not say which device this is: %v", err)
	}
	trigger := filepath.Join("/sys/fs/ext4", filepath.Base(strings.TrimSpace(string(dev))), "trigger_fs_error")
	if err := os.WriteFile(trigger, []byte("1"), 0); err != nil {
		t.Skipf("an error of ext4 cannot be made here: %v", err)
	}
}
