package writer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lopen-dev/lopen/writer/internal/open"
)

// OpenRegular opens the regular file of a name, and with O_CREATE makes it,
// 0600. A symlink, even to a file of the same folder, is refused with class
// invalid, as is everything else that is no file. os.Root follows a symlink that
// stays inside whatever O_NOFOLLOW says, so the name is looked at before the open
// and the opened file compared with what was seen; a new file is made with
// O_EXCL, which never follows. O_TRUNC is not for it: that would empty a file before it
// is looked at. op is what an error says was being done.
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
			continue // somebody else made or removed it since the look
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
		return nil, nil, NewError(op, full, NotCommitted, missing) // of the folder
	}
	return nil, nil, &Error{Op: op, Path: full, Class: ClassTransient, Err: errors.New("the file is replaced again and again")}
}

// lookAt returns what stands at a name, nil where the file is to be made, and the flags to open
// it with.
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

// alone refuses to write to a file that has another name.
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

// scanned is the size in bytes from which on a text is looked through before memory is
// taken for it.
const scanned = 1 << 20

// ReadText is ReadFile for a format that has no NUL: what stands behind the first one is
// not read, so that a sparse file takes the memory of what was written into it.
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
			return readBegin(dir, name, text+int64(nul)+1)
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

// readBegin reads the first n bytes of a file.
func readBegin(dir FS, name string, n int64) ([]byte, error) {
	f, _, err := OpenRegular(dir, "read", name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, n)
	have, err := io.ReadFull(f, data)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, NewError("read", filepath.Join(dir.Name(), name), NotCommitted, err)
	}
	return data[:have], nil
}

// ReadHead fills buf from the beginning of a regular file, and returns how many bytes it
// read: fewer where the file is shorter. It is for a listing, which reads ten thousand.
func ReadHead(dir FS, name string, buf []byte) (int, error) {
	if d, ok := dir.(*root); ok {
		if n, ok := d.readHead(name, buf); ok {
			return n, nil
		}
	}
	f, _, err := OpenRegular(dir, "read", name, os.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	n, err := f.Read(buf)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, NewError("read", filepath.Join(dir.Name(), name), NotCommitted, err)
	}
	return n, nil
}

// ReadFile reads a regular file of at most limit bytes. A symlink, a FIFO or a
// folder in its place is refused with class invalid, as is a larger file.
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
	data := make([]byte, 0, info.Size()+1) // one more, so that the end is seen without growing
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
