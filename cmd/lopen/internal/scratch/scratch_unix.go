//go:build unix

package scratch

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Lock takes the flock of an open folder if nobody has it. It is let go of with the last
// descriptor of the open folder, in whatever process. The error is that this file system
// knows no such lock.
func Lock(dir *os.File) (bool, error) {
	for {
		err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		default:
			return false, err
		}
	}
}
