package writer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/lopen-dev/lopen/writer/internal/open"
)

// OpenRegular opens the regular file of a name. With O_CREATE it creates a missing
// file, with mode 0600. A symlink, even to a file of the same folder, is refused with
// class invalid, and so is everything else that is no regular file. A file with another
// hard link is refused for writing.
//
// os.Root follows a symlink that stays inside, in spite of O_NOFOLLOW. So OpenRegular
// looks at the name first, opens it, and compares the open file with what it saw. A new
// file is created with O_EXCL, which never follows a symlink. Callers must not pass
// O_TRUNC, which would empty the file before the comparison. op is the operation that an
// error names.
func OpenRegular(dir FS, op, name string, flag int) (File, fs.FileInfo, error) {
	full := filepath.Join(dir.Name(), name)
	var missing error
	for range attempts {
		missing = nil
		info, how, err := lookAt(dir, op, name, flag)
		if err != nil {
			return nil, nil, err
		}
		create := info == nil
		var f File
		err = Retry(func() (err error) {
			f, err = dir.OpenFile(name, how, tempPerm)
			return err
		})
		if create && errors.Is(err, fs.ErrExist) || flag&os.O_CREATE != 0 && errors.Is(err, fs.ErrNotExist) {
			missing = err
			continue // another process created or removed it after lookAt
		}
		if err != nil {
			return nil, nil, NewError(op, full, NotCommitted, err)
		}
		opened, err := f.Stat()
		if err == nil && (create || SameFile(info, opened)) {
			if err = alone(op, full, flag, opened); err == nil {
				return f, opened, nil
			}
		}
		_ = f.Close()
		if err != nil {
			return nil, nil, NewError(op, full, NotCommitted, err)
		}
	}
	if errors.Is(missing, fs.ErrNotExist) {
		return nil, nil, NewError(op, full, NotCommitted, missing) // the folder itself is missing
	}
	return nil, nil, &Error{Op: op, Path: full, Class: ClassTransient, Err: errors.New("the file is replaced again and again")}
}

// lookAt returns the info of a name, or nil when the file has to be created, and the flags
// to open it with.
func lookAt(dir FS, op, name string, flag int) (info fs.FileInfo, how int, err error) {
	full := filepath.Join(dir.Name(), name)
	how = flag&^os.O_CREATE | open.NoFollow
	info, err = dir.Lstat(name)
	switch {
	case flag&os.O_CREATE != 0 && errors.Is(err, fs.ErrNotExist):
		return nil, how | os.O_CREATE | os.O_EXCL, nil
	case err != nil:
		return nil, 0, NewError(op, full, NotCommitted, err)
	case !info.Mode().IsRegular():
		return nil, 0, notRegular(op, full, info.Mode())
	}
	return info, how, nil
}

// alone returns an error when flag opens for writing and the file has another hard link.
func alone(op, full string, flag int, info fs.FileInfo) error {
	if flag&(os.O_WRONLY|os.O_RDWR) == 0 || !Shared(info) {
		return nil
	}
	return &Error{Op: op, Path: full, Class: ClassInvalid,
		Err: errors.New("it is a hard link: what is written to it would be written to another file as well; remove this name, and a new file is made")}
}

func notRegular(op, full string, mode fs.FileMode) error {
	return &Error{Op: op, Path: full, Class: ClassInvalid, Err: fmt.Errorf("it is no regular file but %s; move it away", open.Kind(mode))}
}

// scanned is the size in bytes above which ReadText searches for a NUL before it allocates.
const scanned = 1 << 20

// ReadText is ReadFile for a format that has no NUL. Of a file above 1 MiB it returns
// nothing after the first NUL, so that a sparse file takes only as much memory as was
// written into it.
func ReadText(dir FS, name string, limit int64) ([]byte, error) {
	f, info, err := OpenRegular(dir, "read", name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() <= scanned || info.Size() > limit {
		return ReadFile(dir, name, limit)
	}
	full, text := filepath.Join(dir.Name(), name), int64(0)
	for buf := make([]byte, 64<<10); ; {
		n, err := f.Read(buf)
		if nul := bytes.IndexByte(buf[:n], 0); nul >= 0 {
			data := make([]byte, text+int64(nul)+1)
			n, err := f.ReadAt(data, 0)
			if err != nil && !errors.Is(err, io.EOF) {
				return nil, NewError("read", full, NotCommitted, err)
			}
			return data[:n], nil
		}
		text += int64(n)
		if errors.Is(err, io.EOF) {
			return ReadFile(dir, name, limit)
		}
		if err != nil {
			return nil, NewError("read", full, NotCommitted, err)
		}
	}
}

// ReadHead reads the beginning of a regular file into buf and returns the number of bytes,
// which is less than len(buf) when the file is shorter, and when the file was modified. It
// takes few system calls, because a listing reads the heads of ten thousand files.
func ReadHead(dir FS, name string, buf []byte) (n int, modified time.Time, err error) {
	if d, ok := dir.(*root); ok {
		if n, modified, ok := d.readHead(name, buf); ok {
			return n, modified, nil
		}
	}
	f, info, err := OpenRegular(dir, "read", name, os.O_RDONLY)
	if err != nil {
		return 0, modified, err
	}
	defer f.Close()
	n, err = f.Read(buf)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, modified, NewError("read", filepath.Join(dir.Name(), name), NotCommitted, err)
	}
	return n, info.ModTime(), nil
}

// ReadFile reads a regular file of at most limit bytes. A symlink, a FIFO, a folder
// or a larger file is refused with class invalid.
func ReadFile(dir FS, name string, limit int64) ([]byte, error) {
	full := filepath.Join(dir.Name(), name)
	f, info, err := OpenRegular(dir, "read", name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > limit {
		return nil, &Error{Op: "read", Path: full, Class: ClassInvalid, Err: fmt.Errorf("it has %d bytes, more than the %d that are read", info.Size(), limit)}
	}
	data := make([]byte, 0, info.Size()+1) // one more byte, so that the read that finds the end needs no growth
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, NewError("read", full, NotCommitted, err)
		}
		if int64(len(data)) > limit {
			return nil, &Error{Op: "read", Path: full, Class: ClassInvalid, Err: fmt.Errorf("it grew beyond the %d bytes that are read", limit)}
		}
	}
}
