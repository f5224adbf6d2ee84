//go:build !linux

package writer

import "errors"

// FreeBytes is the room that a file system has for this user, in bytes. It is
// known on Linux only.
func FreeBytes(path string) (uint64, error) {
	return 0, NewError("look for free space", path, NotCommitted, errors.ErrUnsupported)
}

// FSType is the name of the file system that a path lies on, and whether it is
// one of those that may be served by another machine. It is known on Linux only.
func FSType(path string) (name string, network bool, err error) {
	return "", false, NewError("look at the file system", path, NotCommitted, errors.ErrUnsupported)
}
