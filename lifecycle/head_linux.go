package lifecycle

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/writer"
)

// toLook does not wait for the other end of a FIFO.
const toLook = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY

// read fills buf from the beginning of a regular file. It gives no reasons: what
// it cannot read is to be asked of the FS, which can say why.
func (h heads) read(name string, buf []byte) (n int, ok bool) {
	if h.File == nil {
		return 0, false
	}
	fd, err := writer.OpenBeneath(h.File, name, toLook)
	if err != nil {
		return 0, false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return 0, false
	}
	n, err = unix.Read(fd, buf)
	return n, err == nil
}

// lease is [writer.Holder] for a listing: whether somebody holds the lock of that name,
// and whether there is one. What it cannot tell is to be asked of the FS.
func (h heads) lease(name string) (held, ever, ok bool) {
	if h.File == nil {
		return false, false, false
	}
	fd, err := writer.OpenBeneath(h.File, name, toLook)
	if errors.Is(err, unix.ENOENT) {
		return false, false, true
	}
	if err != nil {
		return false, false, false
	}
	defer unix.Close(fd) // which lets go
	err = unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB)
	return err != nil, true, err == nil || errors.Is(err, unix.EWOULDBLOCK)
}
