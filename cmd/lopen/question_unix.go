//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// canRead reports whether a line waits on a terminal.
func canRead(terminal *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(terminal.Fd()), Events: unix.POLLIN}} // #nosec G115 -- a file descriptor
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&unix.POLLIN != 0
}
