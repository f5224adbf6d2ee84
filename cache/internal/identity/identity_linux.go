package identity

import (
	"io/fs"
	"syscall"
)

func inodeOf(info fs.FileInfo) (inode uint64, changed int64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return st.Ino, st.Ctim.Nano()
}
