package backup_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/lifecycle/backup"
)

// tmpfs mounts a file system in memory for the test.
func tmpfs(t *testing.T, options string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting a tmpfs takes root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options+",mode=0700"); err != nil {
		t.Skipf("a tmpfs cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// TestFullDisk fills a disk with a backup. The error names it, what was there can be read, what
// the attempt made durable is used by the next one, and pruning on the full disk makes room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	path := filepath.Join(tmpfs(t, "size=4m"), "backup")
	f, err := backup.Create(path, at(noon))
	require.NoError(t, err)
	defer f.Close()
	first := []item{{"log", noise(1, 1_500_000)}}
	_, err = store(f, noon, first)
	require.NoError(t, err)

	second := []item{{"log", noise(2, 1_200_000)}, {"other", noise(3, 3_000_000)}}
	_, err = storeBy(f, 100_000, noon, second)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, path)
	got, err := read(f, 0)
	require.NoError(t, err)
	require.Equal(t, first, got)
	temps, err := filepath.Glob(filepath.Join(path, "objects", ".tmp-*"))
	require.NoError(t, err)
	require.Empty(t, temps)

	_, _, err = f.Prune(context.Background(), backup.Retention{Backups: 1}, false)
	require.NoError(t, err)
	made, err := store(f, noon, second[:1])
	require.NoError(t, err, "the sweep made room")
	require.Greater(t, made.Added, int64(1_000_000))
	_, err = storeBy(f, 100_000, noon, second)
	require.ErrorIs(t, err, syscall.ENOSPC)
	_, _, err = f.Prune(context.Background(), backup.Retention{Backups: 1}, false)
	require.NoError(t, err)
	_, err = read(f, made.Number)
	require.NoError(t, err)
}

const (
	// goingDown is EXT4_IOC_SHUTDOWN, _IOR('X', 125, __u32).
	goingDown = 0x8004587d
	// noLogFlush has the file system stop as it is: what is in memory is lost.
	noLogFlush = 2
)

// unmount waits while a process that another test starts has the files that were open here.
func unmount(t *testing.T, dir string) {
	t.Helper()
	err := unix.Unmount(dir, 0)
	for until := time.Now().Add(10 * time.Second); errors.Is(err, unix.EBUSY) && time.Now().Before(until); err = unix.Unmount(dir, 0) {
		time.Sleep(time.Millisecond)
	}
	require.NoError(t, err, "unmount %s", dir)
}

// TestDiskTakenAway takes a disk away in the middle of a backup, and puts it back. The error
// names the backup. What was there is whole, and the next backup continues.
func TestDiskTakenAway(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("mounting a file system takes root")
	}
	file, dir := filepath.Join(t.TempDir(), "image"), t.TempDir()
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Truncate(file, 16<<20))
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", file).CombinedOutput(); err != nil {
		t.Skipf("no ext4 can be made here: %v: %s", err, out)
	}
	mount := func() {
		if out, err := exec.Command("mount", "-o", "loop", file, dir).CombinedOutput(); err != nil {
			t.Skipf("ext4 cannot be mounted here: %v: %s", err, out)
		}
	}
	mount()
	path := filepath.Join(dir, "backup")
	f, err := backup.Create(path, at(noon))
	require.NoError(t, err)
	_, err = store(f, noon, small(1))
	require.NoError(t, err)
	w, err := f.Begin(context.Background(), header(noon), false)
	require.NoError(t, err)
	w.Limit(50_000)
	log := noise(5, 500_000)
	require.NoError(t, w.Add("log", int64(len(log)), strings.NewReader(log)))
	root, err := os.Open(dir)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(int(root.Fd()), goingDown, noLogFlush))
	require.NoError(t, root.Close())
	_, err = add(w, small(2))
	require.ErrorIs(t, err, syscall.EIO)
	require.ErrorContains(t, err, path)
	require.NoError(t, f.Close())
	unmount(t, dir)

	mount()
	f, err = backup.Create(path, at(noon))
	require.NoError(t, err)
	got, err := read(f, 0)
	require.NoError(t, err)
	require.Equal(t, small(1), got)
	made, err := store(f, noon, []item{{"log", log}})
	require.NoError(t, err)
	require.Less(t, made.Added, int64(200_000), "what was durable when the disk went is not stored again")
	reports, err := f.Verify(context.Background(), 0)
	require.NoError(t, err)
	require.Len(t, reports, 2)
	for _, r := range reports {
		require.Empty(t, r.Damage)
	}
	require.NoError(t, f.Close())
	unmount(t, dir)
}
