//go:build !linux

package lifecycle

// read leaves every file to the FS.
func (heads) read(string, []byte) (int, bool) { return 0, false }
