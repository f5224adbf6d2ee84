package writer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gofrs/flock"

	"github.com/lopen-dev/lopen/writer/internal/open"
)

// An FS is one folder and what lies beneath it. Names are relative to it and
// never lead outside, whatever symlinks say. It is the seam under everything that
// this project writes: the real one is made by [OpenFS], tests put others in its
// place. All methods may be called from any goroutine.
//
// No method waits for what stands in a name's place: a FIFO, a socket or a device is
// refused, with class invalid, where a file or a folder is opened.
type FS interface {
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	Mkdir(name string, perm fs.FileMode) error
	Rename(oldname, newname string) error
	Remove(name string) error
	RemoveAll(name string) error
	Link(oldname, newname string) error
	Symlink(target, name string) error
	Readlink(name string) (string, error)
	// Chmod changes a mode, also of what may not be opened. It follows a symlink that
	// stays inside.
	Chmod(name string, mode fs.FileMode) error
	Lstat(name string) (fs.FileInfo, error)
	Stat(name string) (fs.FileInfo, error)
	// ReadDir lists a folder. One that is named by a symlink is refused.
	ReadDir(name string) ([]fs.DirEntry, error)
	// SyncDir makes the names in a folder durable. Where the system cannot
	// sync a folder (Windows) it does nothing: names are as durable there as
	// the file system makes them by itself. So it is on file systems that say
	// that they do not know how (EINVAL, ENOTSUP, ENOSYS: some network mounts).
	SyncDir(name string) error
	// Sub opens a folder as an FS of its own.
	Sub(name string) (FS, error)
	// Flock is an flock, not taken yet, on the file of a name, which is opened
	// with flag when the lock is tried for.
	Flock(name string, flag int) Flock
	// Name is the folder's absolute path when it was opened, for messages
	// and for locks.
	Name() string
	Close() error
}

// A File is an open file.
type File interface {
	io.Reader
	io.ReaderAt
	io.Writer
	io.WriterAt
	Sync() error     // fsync: data and metadata are on the disk
	Datasync() error // fdatasync: the data, and what it takes to read it again, are on the disk
	Chmod(mode fs.FileMode) error
	Stat() (fs.FileInfo, error)
	Close() error
}

// A Flock is a lock on an open file that the kernel drops with its holder.
type Flock interface {
	TryLock() (bool, error)  // for one alone
	TryRLock() (bool, error) // for any number
	Unlock() error
	Stat() (fs.FileInfo, error) // of the open file
	Close() error
}

// SameFile says that two infos are of one file. A simulated disk answers with
// infos whose Sys is the file itself.
func SameFile(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) || a.Sys() != nil && a.Sys() == b.Sys()
}

// osFile is a File of the operating system.
type osFile struct{ *os.File }

// OS is the file of the system, for who hands its descriptor to another process.
func (f osFile) OS() *os.File { return f.File }

func (f osFile) Datasync() error {
	err := datasync(f.File)
	if err != nil {
		return &fs.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
	}
	return nil
}

// root is an FS on os.Root.
type root struct {
	r    *os.Root
	name string
	dir  *os.File // the folder itself, of one that OpenFS opened; nil where is has no use for it
}

// OpenFS opens a folder. A path whose last part is a symlink is followed: who
// names a folder may name it by a link.
func OpenFS(path string) (FS, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	r, err := os.OpenRoot(open.Within(abs))
	if err != nil {
		e := NewError("open folder", abs, NotCommitted, err)
		if info, err := os.Stat(abs); err == nil && !info.IsDir() {
			e.Class = ClassInvalid // os.OpenRoot says so without an errno
		}
		return nil, e
	}
	return &root{r: r, name: abs, dir: openSelf(r)}, nil
}

func (d *root) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := d.r.OpenFile(name, flag|open.NoFollow, perm)
	if err != nil {
		return nil, err
	}
	if flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL {
		return osFile{f}, nil // it was made by the open
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = notRegular("open", filepath.Join(d.name, name), info.Mode())
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return osFile{f}, nil
}

func (d *root) Flock(name string, flag int) Flock {
	return flock.New(filepath.Join(d.name, name), flock.SetFlag(flag|open.NoFollow))
}

func (d *root) Mkdir(name string, perm fs.FileMode) error { return d.r.Mkdir(name, perm) }
func (d *root) Rename(oldname, newname string) error      { return d.r.Rename(oldname, newname) }
func (d *root) Remove(name string) error                  { return d.r.Remove(name) }
func (d *root) RemoveAll(name string) error               { return d.r.RemoveAll(name) }
func (d *root) Link(oldname, newname string) error        { return d.r.Link(oldname, newname) }
func (d *root) Symlink(target, name string) error         { return d.r.Symlink(target, name) }
func (d *root) Readlink(name string) (string, error)      { return d.r.Readlink(name) }
func (d *root) Chmod(name string, mode fs.FileMode) error { return d.r.Chmod(name, mode) }
func (d *root) Lstat(name string) (fs.FileInfo, error)    { return d.r.Lstat(name) }
func (d *root) Stat(name string) (fs.FileInfo, error)     { return d.r.Stat(name) }
func (d *root) Name() string                              { return d.name }

func (d *root) Close() error {
	_ = d.dir.Close() // nothing was written to it; nil says so
	return d.r.Close()
}

func (d *root) ReadDir(name string) ([]fs.DirEntry, error) {
	if entries, ok := d.list(name); ok {
		return entries, nil
	}
	full := filepath.Join(d.name, name)
	info, err := d.r.Lstat(name)
	if err == nil && !info.IsDir() {
		return nil, &Error{Op: "list", Path: full, Class: ClassInvalid, Err: fmt.Errorf("it is no folder but %s; move it away", open.Kind(info.Mode()))}
	}
	var entries []fs.DirEntry
	if err == nil {
		entries, err = d.readDir(name)
	}
	if err != nil {
		return nil, NewError("list", full, NotCommitted, err)
	}
	return entries, nil
}

func (d *root) readDir(name string) ([]fs.DirEntry, error) {
	f, err := d.r.Open(open.Within(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

func (d *root) SyncDir(name string) error {
	if !canSyncDir {
		return nil
	}
	f, err := d.r.Open(open.Within(name))
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func (d *root) Sub(name string) (FS, error) {
	r, err := d.r.OpenRoot(open.Within(name))
	if err != nil {
		return nil, err
	}
	return &root{r: r, name: filepath.Join(d.name, name)}, nil
}
