//go:build !linux

package lifecycle

// read leaves every file to the FS.
func (heads) read(string, []byte) (int, bool) { return 0, false }

// lease leaves every lock to the FS.
func (heads) lease(string) (held, ever, ok bool) { return false, false, false }
