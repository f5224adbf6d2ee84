package lifecycle_test

import (
	"os"

	"golang.org/x/sys/unix"
)

// inMemory keeps the tests' folders in memory unless TMPDIR says where they are: waiting
// for the disk took a quarter of the time. What a disk does wrong is simulated, and the
// tests of real file systems mount their own.
func inMemory() {
	const memory = "/dev/shm"
	var st unix.Statfs_t
	if os.Getenv("TMPDIR") == "" && unix.Statfs(memory, &st) == nil && st.Type == unix.TMPFS_MAGIC && st.Bavail*uint64(st.Bsize) > 4<<30 {
		_ = os.Setenv("TMPDIR", memory)
	}
}
