//go:build !linux

package writer

import "errors"

// FreeBytes is the room that a file system has for this user, in bytes. It is
// known on Linux only.
func FreeBytes(path string) (uint64, error) {
	return 0, NewError("look for free space", path, NotCommitted, errors.ErrUnsupported)
}
