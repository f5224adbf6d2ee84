//go:build unix

package writer

import "syscall"

// canSyncDir says that a folder can be opened and synced.
const canSyncDir = true

// noFollow makes an open of a symlink fail, and one of a FIFO return at once.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

func classOfSystemErrno(syscall.Errno) Class { return ClassUnknown }
