//go:build unix && !linux

package mount

import (
	"io/fs"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Of returns the device number of a name in an open folder, or of the folder itself for ".": this
// system tells no more. It follows no symlink.
func Of(dir *os.File, name string) (uint64, error) {
	var st unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	runtime.KeepAlive(dir)
	if err != nil {
		return 0, &fs.PathError{Op: "fstatat", Path: name, Err: err}
	}
	return uint64(st.Dev), nil // #nosec G115 -- only compared
}

// VolumeAt knows of no volumes.
func VolumeAt(*os.File, string) string { return "" }
