package writer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// OpenRegular opens the regular file of a name, and with O_CREATE makes it,
// 0600. A symlink, even to a file of the same folder, is refused with class
// invalid, as is everything else that is no file. os.Root follows a symlink that
// stays inside whatever O_NOFOLLOW says, so the name is looked at before the open
// and the opened file compared with what was seen; a new file is made with
// O_EXCL, which never follows. op is what an error says was being done.
func OpenRegular(dir FS, op, name string, flag int) (File, fs.FileInfo, error) {
	full := filepath.Join(dir.Name(), name)
	var missing error
	for range attempts {
		missing = nil
		info, err := dir.Lstat(name)
		create := flag&os.O_CREATE != 0 && errors.Is(err, fs.ErrNotExist)
		how := flag&^os.O_CREATE | noFollow
		switch {
		case create:
			how |= os.O_CREATE | os.O_EXCL
		case err != nil:
			return nil, nil, NewError(op, full, NotCommitted, err)
		case !info.Mode().IsRegular():
			return nil, nil, &Error{Op: op, Path: full, Class: ClassInvalid, Err: fmt.Errorf("it is no regular file but %s", kind(info.Mode()))}
		}
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
			return f, opened, nil
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

// kind names what stands in a file's place.
func kind(mode fs.FileMode) string {
	switch mode.Type() {
	case fs.ModeSymlink:
		return "a symlink"
	case fs.ModeDir:
		return "a folder"
	case fs.ModeNamedPipe:
		return "a named pipe"
	}
	return "a special file"
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
