//go:build unix

package writer

import "syscall"

// noWait makes an open return at once that would wait for the other end of a FIFO, and
// keeps a terminal from becoming that of this process.
const noWait = syscall.O_NONBLOCK | syscall.O_NOCTTY
