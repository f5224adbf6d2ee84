package writer

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/lopen-dev/lopen/writer/internal/open"
)

// Openers finds who has files open for writing. The zero value is ready. It is for one
// goroutine, and for one piece of work: it reads once what all processes have open, and only
// if it has to.
type Openers struct {
	known map[uint64][]opener // by inode number; nil until all processes were read
	blind bool                // some of them do not let themselves be looked at
}

// perhaps is who has a file of another user open, as nobody may ask the kernel or that user's processes.
const perhaps = "another user's program, perhaps"

// An opener is a process that has a file open for writing, or mapped shared and writable.
type opener struct {
	pid  int
	path string // of the descriptor or the mapping, in /proc
}

// Of reports whether somebody has a regular file open for writing, or mapped shared and
// writable. The descriptors of this process count: what it inherited, such as a log to which
// its output goes, is somebody's. who is a text with the program and its PID, or "" if they
// are not known. Anything but a regular file, and a name without one, is open to nobody.
//
// On Linux a read lease is asked for and returned at once: the kernel refuses it to a file
// that is open for writing. Where the file system has no leases, another machine may serve the
// files, or the lease belongs to another user, the processes in /proc decide. If some of these may
// not be looked at, another user's file is taken for open. Other systems do not say who has a file open.
func (o *Openers) Of(dir FS, name string) (who string, is bool, err error) {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	var f File
	err = Retry(func() (err error) {
		f, err = dir.OpenFile(name, os.O_RDONLY|open.NoFollow, 0)
		if errors.Is(err, syscall.EWOULDBLOCK) { // an exclusive lease is somebody's, and no call to repeat
			is, err = true, nil
		}
		return err
	})
	switch {
	case is:
		return o.who(name, info), true, nil
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP): // replaced since
		return "", false, nil
	case errors.Is(err, fs.ErrPermission):
		who = o.whoElse(name, info)
		return who, who != "", nil
	case err != nil:
		return "", false, err
	}
	defer f.Close()
	who, is = o.On(f, name, info)
	return who, is, nil
}

// Any reports whether a process that this one may look at has a file open for writing, or mapped
// shared and writable, that has this inode number on its disk. Of says whether it is a certain file.
// Of 0, where a disk has no such numbers, it may always be one.
func (o *Openers) Any(inode uint64) bool { return inode == 0 || len(o.all()[inode]) > 0 }

// whoElse is who for a file of another user.
func (o *Openers) whoElse(name string, info fs.FileInfo) string {
	who := o.who(name, info)
	if who == "" && o.blind {
		return perhaps
	}
	return who
}

// On is Of for a regular file that is open for reading, and info of it.
func (o *Openers) On(f File, name string, info fs.FileInfo) (who string, is bool) {
	switch f := f.(type) {
	case interface{ OS() *os.File }:
		is, err := leased(f.OS())
		switch {
		case err == nil && !is:
			return "", false
		case errors.Is(err, fs.ErrPermission):
			who = o.whoElse(name, info)
		default:
			who = o.who(name, info)
		}
		return who, is || who != ""
	case interface{ Written() bool }: // of a simulated disk
		return "", f.Written()
	}
	return "", false
}
