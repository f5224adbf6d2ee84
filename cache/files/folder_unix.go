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
// however deep it lies, and no symlink on the way can be swapped in.
type fdFolder struct{ f *os.File }

// openTop opens the folder of an FS. One that is not the folder on the disk with
// that name, as that of a simulated disk, is asked itself.
func openTop(root writer.FS) (folder, error) {
	want, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	f, err := openAt(unix.AT_FDCWD, root.Name())
	if err == nil {
		if have, err := f.Stat(); err == nil && writer.SameFile(have, want) {
			return fdFolder{f}, nil
		}
		_ = f.Close()
	}
	return fsFolder{root, "."}, nil
}

func openAt(dir int, name string) (*os.File, error) {
	var fd int
	err := writer.Retry(func() (err error) {
		fd, err = unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "openat", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

func (d fdFolder) names() ([]string, error) { return d.f.Readdirnames(-1) }
func (d fdFolder) close()                   { _ = d.f.Close() }

func (d fdFolder) open(_, name string) (folder, error) {
	f, err := openAt(int(d.f.Fd()), name)
	if err != nil {
		return nil, err
	}
	return fdFolder{f}, nil
}

func (d fdFolder) stat(path, name string) (stat, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstatat(int(d.f.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return stat{}, &fs.PathError{Op: "fstatat", Path: path, Err: err}
		}
		return stat{modeOf(st.Mode), st.Size, st.Mtim.Nano(), st.Ctim.Nano(), st.Ino}, nil
	}
}

// modeOf is what os.Lstat makes of st_mode, whose type differs by system.
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
	if m&unix.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if m&unix.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if m&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	return mode
}

// statOf is what an info of this system or of a simulated disk says.
func statOf(info fs.FileInfo) stat {
	s := stat{mode: info.Mode(), size: info.Size(), modTime: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.chgTime, s.inode = changeTime(st), st.Ino
	}
	return s
}
