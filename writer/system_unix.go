//go:build unix

package writer

import (
	"errors"
	"io/fs"
	"syscall"
)

// canSyncDir says that a folder can be opened and synced.
const canSyncDir = true

// RefusesLinks says that the file system knows no links, or none for us; a
// denied folder looks alike, and denies what is tried instead as well.
func RefusesLinks(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EMLINK)
}

func classOfSystemErrno(syscall.Errno) Class { return classUnknown }

// DiskBytes is what a file takes on the disk, as du counts it.
func DiskBytes(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}

// Shared says whether a file has another name (hard link).
func Shared(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && !info.IsDir() && st.Nlink > 1
}

// Mine says whether a file belongs to the user of this process.
func Mine(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(st.Uid) == syscall.Geteuid()
}
