package files

import (
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/writer"
)

// bornAt asks for the birth of a path.
func bornAt(root writer.FS, path string) birth {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, filepath.Join(root.Name(), path), unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return birth{}
	}
	return birth{nano(st.Btime), st.Ino, st.Nlink, st.Mode&unix.S_IFMT == unix.S_IFDIR}
}
