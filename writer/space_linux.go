package writer

import "syscall"

// FreeBytes is the room that a file system has for this user, in bytes.
func FreeBytes(path string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, NewError("look for free space", path, NotCommitted, err)
	}
	return s.Bavail * uint64(s.Bsize), nil
}
