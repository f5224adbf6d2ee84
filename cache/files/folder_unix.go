//go:build linux || darwin

package files

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/writer"
)

// nonBlock keeps an open from waiting for the other end of a FIFO that was put in
// a file's place.
const nonBlock = unix.O_NONBLOCK

// fdFolder is a folder's descriptor: a look at a name in it costs one call,
// however deep it lies, and no symlink on the way can be swapped in. It is no
// os.File, which asks the kernel twice about each folder for what is not needed here.
type fdFolder int

// openTop opens the folder of an FS. One that is not the folder on the disk with
// that name (it is simulated, or was moved since) is asked itself. mount is the number of
// the mount that the folder is on.
func openTop(root writer.FS) (top folder, mount uint64, err error) {
	info, err := root.Stat(".")
	if err != nil {
		return nil, 0, err
	}
	want, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return topOf(root)
	}
	fd, err := openAt(unix.AT_FDCWD, root.Name(), 0) // which may be a symlink: the FS followed it
	if err != nil {
		return topOf(root)
	}
	var have unix.Stat_t
	err = unix.Fstat(int(fd), &have)
	if err == nil {
		mount, err = fd.mount()
	}
	if err != nil || have.Dev != want.Dev || have.Ino != want.Ino {
		fd.close()
		return topOf(root)
	}
	return fd, mount, nil
}

func openAt(dir int, name string, flag int) (fdFolder, error) {
	fd := 0
	err := writer.Retry(func() (err error) {
		fd, err = unix.Openat(dir, name, flag|unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	return fdFolder(fd), err
}

func (d fdFolder) open(path, name string) (folder, error) {
	sub, err := openAt(int(d), name, unix.O_NOFOLLOW)
	if err != nil {
		return nil, &fs.PathError{Op: "openat", Path: path, Err: err}
	}
	return sub, nil
}

func (d fdFolder) close() { _ = unix.Close(int(d)) }

func (d fdFolder) names() ([]string, error) {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	var names []string
	for {
		n, err := unix.ReadDirent(int(d), buf[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return names, os.NewSyscallError("getdents", err)
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

// modeOf is the type and the permissions in st_mode, whose type differs by system.
func modeOf[M uint16 | uint32](m M) fs.FileMode {
	mode := fs.FileMode(m & 0o777)
	switch m & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	default:
		mode |= fs.ModeIrregular
	}
	return mode
}
