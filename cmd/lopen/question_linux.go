package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropTyped drops what can be read from a terminal. One that is gone says so to who reads.
func dropTyped(terminal *os.File) {
	_ = unix.IoctlSetInt(int(terminal.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
