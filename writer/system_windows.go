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

// RefusesLinks says that the file system knows no links, or that this user may
// not make them: symlinks need a privilege or developer mode.
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
	case errorSharingViolation: // a virus scanner or an indexer has it open for a moment
		return ClassTransient
	case errorCRC, errorIODevice:
		return ClassDevice
	}
	return classUnknown
}

// DiskBytes is what a file takes on the disk, as far as the system tells.
func DiskBytes(info fs.FileInfo) int64 { return info.Size() }

// Shared says whether a file has another name (hard link), as far as the
// system tells.
func Shared(fs.FileInfo) bool { return false }

// Mine says whether a file belongs to the user of this process, as far as the
// system tells.
func Mine(fs.FileInfo) bool { return true }
