package writer

import (
	"os"
	"syscall"
)

// datasync is fdatasync: it leaves out the times of the file, which cost a
// journal commit of the file system where the data alone may not.
func datasync(f *os.File) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	err = c.Control(func(fd uintptr) {
		// An interrupted call has not reported anything yet: os does the same for Sync.
		for {
			if serr = syscall.Fdatasync(int(fd)); serr != syscall.EINTR {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	return serr
}
