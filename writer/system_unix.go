//go:build unix

package writer

import (
	"errors"
	"io/fs"
	"syscall"
)

// canSyncDir says that a folder can be opened and synced.
const canSyncDir = true

// RefusesLinks reports whether err means that the file system has no links or allows us
// none. A folder without write permission gives the same errors; there the alternative to
// a link fails as well.
func RefusesLinks(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EMLINK)
}

func classOfSystemErrno(syscall.Errno) Class { return classUnknown }

// DiskBytes returns the bytes that a file takes on the disk, as du counts them.
func DiskBytes(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}

// Shared reports whether a file has more than one hard link. It is false for a folder.
func Shared(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && !info.IsDir() && st.Nlink > 1
}

// Mine reports whether a file belongs to the user of this process. It is true when the
// owner is not known.
func Mine(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(st.Uid) == syscall.Geteuid()
}
