//go:build !linux

package writer

import "errors"

// FreeBytes returns an error: free space is known on Linux only.
func FreeBytes(path string) (uint64, error) {
	return 0, NewError("look for free space", path, NotCommitted, errors.ErrUnsupported)
}

// FSType returns an error: the type is known on Linux only.
func FSType(path string) (name string, network bool, err error) {
	return "", false, NewError("look at the file system", path, NotCommitted, errors.ErrUnsupported)
}
