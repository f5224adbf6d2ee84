package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropTyped drops what can be read from a terminal. It reports whether a line was. One that is gone says so to who reads.
func dropTyped(terminal *os.File) (lines bool) {
	lines = canRead(terminal)
	_ = unix.IoctlSetInt(int(terminal.Fd()), unix.TCFLSH, unix.TCIFLUSH)
	return lines
}
