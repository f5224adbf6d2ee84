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

// fdFolder is a folder's descriptor: a look at a name in it costs one fstatat,
// however deep it lies, and no symlink on the way can be swapped in. It is no
// os.File, which asks the kernel twice about each folder for what is not needed here.
type fdFolder int

// openTop opens the folder of an FS. One that is not the folder on the disk with
// that name (it is simulated, or was moved since) is asked itself.
func openTop(root writer.FS) (folder, error) {
	info, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	want, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fsFolder{root, "."}, nil
	}
	top, err := openAt(unix.AT_FDCWD, root.Name(), 0) // which may be a symlink: the FS followed it
	if err != nil {
		return fsFolder{root, "."}, nil
	}
	var have unix.Stat_t
	if err := unix.Fstat(int(top), &have); err != nil || have.Dev != want.Dev || have.Ino != want.Ino {
		top.close()
		return fsFolder{root, "."}, nil
	}
	return top, nil
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

func (d fdFolder) stat(path, name string) (stat, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstatat(int(d), name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return stat{}, &fs.PathError{Op: "fstatat", Path: path, Err: err}
		}
		return stat{modeOf(st.Mode), st.Size, st.Mtim.Nano(), st.Ctim.Nano(), st.Ino}, nil
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
