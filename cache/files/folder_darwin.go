package files

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

func (d fdFolder) stat(path, name string) (stat, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstatat(int(d), name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return stat{}, &fs.PathError{Op: "fstatat", Path: path, Err: err}
		}
		return stat{modeOf(st.Mode), st.Size, st.Mtim.Nano(), st.Ctim.Nano(), st.Ino, uint64(st.Dev)}, nil // #nosec G115 -- only compared
	}
}

func (d fdFolder) mount() (uint64, error) {
	var st unix.Stat_t
	err := unix.Fstat(int(d), &st)
	return uint64(st.Dev), err // #nosec G115 -- only compared
}
