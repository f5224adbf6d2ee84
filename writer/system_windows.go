//go:build windows

package writer

import (
	"errors"
	"io/fs"
	"syscall"
)

// canSyncDir is false: FlushFileBuffers refuses a folder's handle.
const canSyncDir = false

// The Windows error codes that have a class of their own.
const (
	errorHandleDiskFull   syscall.Errno = 39
	errorDiskFull         syscall.Errno = 112
	errorWriteProtect     syscall.Errno = 19
	errorSharingViolation syscall.Errno = 32
	errorCRC              syscall.Errno = 23
	errorIODevice         syscall.Errno = 1117
	errorInvalidFunction  syscall.Errno = 1
	errorTooManyLinks     syscall.Errno = 1142
	errorPrivilegeNotHeld syscall.Errno = 1314
)

// RefusesLinks reports whether err means that the file system has no links, or that this
// user may not make them: symlinks need a privilege or developer mode.
func RefusesLinks(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) ||
		errors.Is(err, errorInvalidFunction) || errors.Is(err, errorTooManyLinks) || errors.Is(err, errorPrivilegeNotHeld)
}

func classOfSystemErrno(errno syscall.Errno) Class {
	switch errno {
	case errorHandleDiskFull, errorDiskFull:
		return ClassNoSpace
	case errorWriteProtect, syscall.ERROR_ACCESS_DENIED:
		return ClassDenied
	case errorSharingViolation: // a virus scanner or an indexer has the file open for a moment
		return ClassTransient
	case errorCRC, errorIODevice:
		return ClassDevice
	}
	return classUnknown
}

// DiskBytes returns the size of the file; what it takes on the disk is not known here.
func DiskBytes(info fs.FileInfo) int64 { return info.Size() }

// Shared returns false: the number of hard links is not known here.
func Shared(fs.FileInfo) bool { return false }

// Mine returns true: the owner of a file is not known here.
func Mine(fs.FileInfo) bool { return true }
