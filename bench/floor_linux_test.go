package bench

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// datasync is what the floor of a durable save waits for.
func datasync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// cpuTime is what this process has had of the processors, as its own and the system's.
func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
