package writer

import (
	"os"
	"syscall"
)

// datasync is fdatasync: it does not write the file's times, for which the file
// system would have to commit its own journal.
func datasync(f *os.File) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	err = c.Control(func(fd uintptr) {
		// An interrupted call has not reported a result yet. os.File.Sync retries it too.
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
