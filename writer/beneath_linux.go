package writer

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// toLook opens a file for a look. It waits for no other end of a FIFO and follows no symlink.
const toLook = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_NOFOLLOW

// beneath opens a name with one openat2, which refuses every symlink and every way out,
// where os.Root opens and closes each folder on the way. The descriptor is the caller's.
// Linux has the call since 5.6, and some sandboxes refuse it. Its errors are not for
// people: os.Root is asked again and says why.
func (d *root) beneath(name string, flags int) (fd int, err error) {
	if d.dir == nil {
		return -1, errors.ErrUnsupported
	}
	how := unix.OpenHow{Flags: uint64(flags) | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS} // #nosec G115 -- flags are positive
	fd, err = unix.Openat2(int(d.dir.Fd()), name, &how)
	runtime.KeepAlive(d.dir)
	return fd, err
}

// is says that name is the file of an info. Where it is not, or cannot be looked at so,
// Lstat tells.
func (d *root) is(name string, info fs.FileInfo) bool {
	want, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	fd, err := d.beneath(name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var have unix.Stat_t
	return unix.Fstat(fd, &have) == nil && have.Dev == want.Dev && have.Ino == want.Ino
}

// readHead is [ReadHead] with four system calls. What it cannot read is for OpenRegular.
func (d *root) readHead(name string, buf []byte) (n int, ok bool) {
	fd, err := d.beneath(name, toLook)
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

// locked is [Locked] with four system calls. What it cannot tell is for the FS.
func (d *root) locked(name string) (held, ever, ok bool) {
	fd, err := d.beneath(name, toLook)
	if err != nil {
		return false, false, errors.Is(err, unix.ENOENT)
	}
	defer unix.Close(fd) // which lets go
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink != 1 {
		return false, false, false
	}
	err = unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB)
	return err != nil, true, err == nil || errors.Is(err, unix.EWOULDBLOCK)
}

// list is ReadDir without a look at each name, which an os.Root takes. What it cannot list
// is for the os.Root.
func (d *root) list(name string) ([]fs.DirEntry, bool) {
	fd, err := d.beneath(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, false
	}
	f := os.NewFile(uintptr(fd), d.name+"/"+name)
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, false
	}
	inside := make([]entry, len(entries))
	for i, e := range entries {
		inside[i] = entry{e, d, name}
		entries[i] = &inside[i]
	}
	return entries, true
}

// An entry of a folder is looked at through the os.Root: its own Info goes by the folder's
// path, which may lead elsewhere by now.
type entry struct {
	fs.DirEntry
	d   *root
	dir string
}

func (e *entry) Info() (fs.FileInfo, error) { return e.d.Lstat(path.Join(e.dir, e.Name())) }

// openSelf opens the folder, for beneath.
func openSelf(r *os.Root) *os.File {
	f, err := r.Open(".")
	if err != nil {
		return nil
	}
	return f
}
