//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropTyped drops what can be read from a terminal. It reports whether a line was. One that is gone says so to who reads.
func dropTyped(terminal *os.File) (lines bool) {
	const read = 1 // FREAD
	lines = canRead(terminal)
	_ = unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCFLUSH, read)
	return lines
}
