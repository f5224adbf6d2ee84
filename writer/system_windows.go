//go:build windows

package writer

import "syscall"

// canSyncDir is false: FlushFileBuffers refuses a folder's handle.
const canSyncDir = false

const noFollow = 0

// The Windows error codes that have a class of their own.
const (
	errorHandleDiskFull   syscall.Errno = 39
	errorDiskFull         syscall.Errno = 112
	errorWriteProtect     syscall.Errno = 19
	errorSharingViolation syscall.Errno = 32
	errorCRC              syscall.Errno = 23
	errorIODevice         syscall.Errno = 1117
)

func classOfSystemErrno(errno syscall.Errno) Class {
	switch errno {
	case errorHandleDiskFull, errorDiskFull:
		return ClassNoSpace
	case errorWriteProtect, syscall.ERROR_ACCESS_DENIED:
		return ClassDenied
	case errorSharingViolation: // a virus scanner or an indexer has it open for a moment
		return ClassTransient
	case errorCRC, errorIODevice:
		return ClassDevice
	}
	return ClassUnknown
}
