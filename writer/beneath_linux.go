package writer

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// toLook has the flags that open a file for inspection: the open does not wait for the
// other end of a FIFO and follows no symlink.
const toLook = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_NOFOLLOW

// beneath opens a name with one openat2, which refuses every symlink and every path that
// leads outside. os.Root would open and close each folder on the way. The caller closes the
// descriptor. Linux has the call since 5.6, and some sandboxes refuse it, so an error
// decides nothing: the caller tries again through os.Root, whose error a person can read.
func (d *root) beneath(name string, flags int) (fd int, err error) {
	if d.dir == nil {
		return -1, errors.ErrUnsupported
	}
	how := unix.OpenHow{Flags: uint64(flags) | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS} // #nosec G115 -- flags are positive
	fd, err = unix.Openat2(int(d.dir.Fd()), name, &how)
	runtime.KeepAlive(d.dir)
	return fd, err
}

// is reports whether name is the file that info describes. False proves nothing: the call
// may have failed, and the caller has to ask Lstat.
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

// readHead is [ReadHead] with four system calls. When ok is false, the caller has to use
// OpenRegular.
func (d *root) readHead(name string, buf []byte) (n int, modified time.Time, ok bool) {
	fd, err := d.beneath(name, toLook)
	if err != nil {
		return 0, modified, false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return 0, modified, false
	}
	n, err = unix.Read(fd, buf)
	return n, time.Unix(st.Mtim.Unix()), err == nil
}

// locked is [Locked] with four system calls. When ok is false, the caller has to ask the FS.
func (d *root) locked(name string) (held, ever, ok bool) {
	fd, err := d.beneath(name, toLook)
	if err != nil {
		return false, false, errors.Is(err, unix.ENOENT)
	}
	defer unix.Close(fd) // releases the shared lock too
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink != 1 {
		return false, false, false
	}
	err = unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB)
	return err != nil, true, err == nil || errors.Is(err, unix.EWOULDBLOCK)
}

// list is ReadDir without the lstat of each name that os.Root makes. When it returns false,
// the caller has to list through os.Root.
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

// An entry is a fs.DirEntry whose Info goes through os.Root. The original Info goes by the
// folder's path, which may lead elsewhere by now.
type entry struct {
	fs.DirEntry
	d   *root
	dir string
}

func (e *entry) Info() (fs.FileInfo, error) { return e.d.Lstat(path.Join(e.dir, e.Name())) }

// openSelf opens the folder itself for beneath. It returns nil on an error, and beneath is
// not used then.
func openSelf(r *os.Root) *os.File {
	f, err := r.Open(".")
	if err != nil {
		return nil
	}
	return f
}
