package trust

import (
	"fmt"
	"os"
	"syscall"
)

// placeOf tells a folder from another one that lies in its place later: its inode number and its birth.
func placeOf(path string) string {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return ""
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d %d", st.Ino, st.Birthtimespec.Nano())
}
