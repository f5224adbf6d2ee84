package trust

import (
	"fmt"
	"io/fs"
	"syscall"
)

// identity is a folder's inode number and its birth.
func identity(_ string, info fs.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d %d", st.Ino, st.Birthtimespec.Nano())
	}
	return "folder"
}
