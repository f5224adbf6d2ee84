package files

import (
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/writer/mount"
)

// stat takes the mount of the name along, which costs no call of its own.
func (d fdFolder) stat(path, name string) (stat, error) {
	var st unix.Statx_t
	on, err := mount.StatAt(int(d), name, &st)
	if err != nil {
		return stat{}, &fs.PathError{Op: "statx", Path: path, Err: err}
	}
	return stat{modeOf(st.Mode), int64(st.Size), nano(st.Mtime), nano(st.Ctime), st.Ino, on}, nil // #nosec G115 -- a size is an off_t
}

func nano(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }

func (d fdFolder) mount() (uint64, error) {
	var st unix.Statx_t
	return mount.StatAt(int(d), "", &st)
}
