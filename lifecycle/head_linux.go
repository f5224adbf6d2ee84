package lifecycle

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/writer"
)

// heads reads the beginnings of files below one folder by its descriptor: one
// openat2 goes down to a file and refuses every symlink on the way, where os.Root
// opens and closes each folder of a path, once for a look and once for the file.
type heads int

// openHeads opens the folder of an FS by its descriptor. One that is not the folder
// on the disk with that name (it is simulated, or was moved since) is asked itself.
func openHeads(dir writer.FS) heads {
	info, err := dir.Stat(".")
	if err != nil {
		return -1
	}
	want, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1
	}
	fd, err := unix.Open(dir.Name(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	var have unix.Stat_t
	if err := unix.Fstat(fd, &have); err != nil || have.Dev != want.Dev || have.Ino != want.Ino {
		_ = unix.Close(fd)
		return -1
	}
	return heads(fd)
}

func (h heads) close() {
	if h >= 0 {
		_ = unix.Close(int(h))
	}
}

// beneath is how a file is opened: without a way out, without waiting for the other
// end of a FIFO that stands in its place. The kernel has it since 5.6; some
// sandboxes refuse it.
var beneath = unix.OpenHow{
	Flags:   unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY,
	Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
}

// read fills buf from the beginning of a regular file. It gives no reasons: what
// it cannot read is to be asked of the FS, which can say why.
func (h heads) read(name string, buf []byte) (n int, ok bool) {
	if h < 0 {
		return 0, false
	}
	how := beneath
	fd, err := unix.Openat2(int(h), name, &how)
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
