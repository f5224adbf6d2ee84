package documents

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lopen-dev/lopen/writer/internal/open"
)

// A Folder is read and never written, as an [fs.FS]. A symlink is followed as far as it stays
// inside. Only regular files and folders are opened, and no open waits: a FIFO, a socket
// or a device in their place is an error at once. All methods may be called from any
// goroutine.
type Folder struct{ root *os.Root }

// Open opens a folder. A path whose last part is a symlink is followed.
func Open(path string) (*Folder, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	root, err := OpenRoot(abs)
	if err != nil {
		return nil, &fs.PathError{Op: "open folder", Path: abs, Err: errors.Unwrap(err)}
	}
	return &Folder{root}, nil
}

// OpenRoot is [os.OpenRoot], but for a FIFO in the folder's place, which it would wait
// for: that is an error at once.
func OpenRoot(path string) (*os.Root, error) { return os.OpenRoot(open.Within(path)) }

// Of reads a folder that is open already. To close either closes both.
func Of(root *os.Root) *Folder { return &Folder{root} }

// Name is the folder's absolute path when it was opened.
func (d *Folder) Name() string { return filepath.Clean(d.root.Name()) }

// Close lets go of the folder.
func (d *Folder) Close() error { return d.root.Close() }

// Open opens a regular file or a folder. The error of anything else is an
// [fs.PathError] that says what it is.
func (d *Folder) Open(name string) (fs.File, error) {
	// To open some devices does something, so that they are not opened at all. What
	// stands there may be another one by the time of the open, which therefore does not wait.
	if info, err := d.Stat(name); err != nil {
		return nil, err
	} else if err := plain(name, info); err != nil {
		return nil, err
	}
	f, err := d.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|open.NoWait, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = plain(name, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Stat follows symlinks as far as they stay inside.
func (d *Folder) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	return d.root.Stat(filepath.FromSlash(name))
}

func plain(name string, info fs.FileInfo) error {
	if info.Mode().IsRegular() || info.IsDir() {
		return nil
	}
	return &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("it is neither a file nor a folder but %s", open.Kind(info.Mode()))}
}

// Read reads a regular file of at most limit bytes. The error is an
// [fs.PathError] where it is none, or larger.
func Read(docs fs.FS, name string, limit int64) ([]byte, error) {
	f, err := docs.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, name, limit)
}

// ReadFile reads a file that the user named or that is the user's own: a regular one
// of at most limit bytes, or a symlink to one. It does not wait.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, path, limit)
}

// OpenFile opens such a file for reading, for one that is too large to be read at once.
func OpenFile(path string) (*os.File, error) {
	if info, err := os.Stat(path); err != nil { // before the open, as in Folder.Open
		return nil, err
	} else if err := plain(path, info); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|open.NoWait, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = plain(path, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func readAll(f fs.File, name string, limit int64) ([]byte, error) {
	fail := func(err error) ([]byte, error) { return nil, &fs.PathError{Op: "read", Path: name, Err: err} }
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return fail(fmt.Errorf("it is no regular file but %s", open.Kind(info.Mode())))
	case info.Size() > limit:
		return fail(fmt.Errorf("it has %d bytes, more than the %d that are read", info.Size(), limit))
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return fail(fmt.Errorf("it grew beyond the %d bytes that are read", limit))
	}
	return data, nil
}

// AppendFile opens a file that the user named for appending, and makes it, 0600, where
// there is none. It follows no symlink, which could have been put there to have another
// file written, and waits for nobody to read a FIFO: either is an error. A character
// device, such as a terminal, is opened.
func AppendFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY|open.NoWait|open.NoFollow, 0o600)
	if err != nil {
		if info, lerr := os.Lstat(path); lerr == nil && !info.Mode().IsRegular() {
			err = &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("it is no regular file but %s", open.Kind(info.Mode()))}
		}
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && info.Mode()&fs.ModeCharDevice == 0 {
		err = plain(path, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
