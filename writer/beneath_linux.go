package writer

import (
	"io/fs"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// OpenBeneath opens a name beneath a folder with one openat2, which refuses every symlink
// and every way out, where an os.Root opens and closes each folder on the way. The descriptor
// is the caller's. The kernel has it since 5.6, and some sandboxes refuse it: what is not
// opened so is to be asked of an [FS], which says why.
func OpenBeneath(dir *os.File, name string, flags int) (fd int, err error) {
	how := unix.OpenHow{Flags: uint64(flags) | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS} // #nosec G115 -- flags are positive
	fd, err = unix.Openat2(int(dir.Fd()), name, &how)
	runtime.KeepAlive(dir)
	return fd, err
}

// is says that name is the file of an info. Where it is not, or cannot be looked at so,
// Lstat tells.
func (d *root) is(name string, info fs.FileInfo) bool {
	want, ok := info.Sys().(*syscall.Stat_t)
	if !ok || d.dir == nil {
		return false
	}
	fd, err := OpenBeneath(d.dir, name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var have unix.Stat_t
	return unix.Fstat(fd, &have) == nil && have.Dev == want.Dev && have.Ino == want.Ino
}

// openSelf opens the folder, for is.
func openSelf(r *os.Root) *os.File {
	f, err := r.Open(".")
	if err != nil {
		return nil
	}
	return f
}
