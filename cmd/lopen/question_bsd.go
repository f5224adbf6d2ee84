//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropTyped drops what can be read from a terminal. One that is gone says so to who reads.
func dropTyped(terminal *os.File) {
	const read = 1 // FREAD
	_ = unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCFLUSH, read)
}
