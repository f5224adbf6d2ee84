//go:build unix

package open

import "syscall"

// Flags of an open. NoFollow makes one of a symlink fail, and one of a FIFO return at once.
// NoWait makes one of a FIFO return at once, and keeps a terminal from becoming that of this
// process.
const (
	NoFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	NoWait   = syscall.O_NONBLOCK | syscall.O_NOCTTY
)
