package trust

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// placeOf tells a folder from another one that lies in its place later: its inode number, which is given
// again, and its birth. It is "" where that is not known.
func placeOf(path string) string {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st)
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return ""
	}
	if st.Mask&unix.STATX_BTIME == 0 {
		return fmt.Sprintf("%d", st.Ino)
	}
	return fmt.Sprintf("%d %d.%09d", st.Ino, st.Btime.Sec, st.Btime.Nsec)
}
