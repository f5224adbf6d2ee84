package writer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/gofrs/flock"

	"github.com/lopen-dev/lopen/writer/internal/open"
)

// An FS is one folder and what lies beneath it. Names are relative to the folder and
// never lead outside, whatever symlinks there are. It is the seam under everything that
// this project writes: [OpenFS] returns the real one, and tests use others. All methods
// may be called from any goroutine.
//
// No method waits for the other end of a FIFO or for a device: where a file or a folder
// is to be opened, a FIFO, a socket or a device is refused with class invalid.
type FS interface {
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	Mkdir(name string, perm fs.FileMode) error
	Rename(oldname, newname string) error
	Remove(name string) error
	// RemoveAll removes a file or folder with all that is in it. A missing name is no error. It
	// crosses no mount: the error of what stays because something is mounted wraps
	// mount.ErrMounted.
	RemoveAll(name string) error
	Link(oldname, newname string) error
	Symlink(target, name string) error
	Readlink(name string) (string, error)
	// Chmod changes the mode of a file, even of one that may not be opened. It follows a
	// symlink that stays inside.
	Chmod(name string, mode fs.FileMode) error
	Lstat(name string) (fs.FileInfo, error)
	Stat(name string) (fs.FileInfo, error)
	// Mount returns a number of the mount that a name is on, and follows no symlink. It is
	// for comparison with that of another name, looked at in the same moment, of this FS or
	// of a Sub. It is always the same where the system does not tell.
	Mount(name string) (uint64, error)
	// Volume returns what identifies the volume whose root a mount point is, see [mount.VolumeAt],
	// or "" where that is not known.
	Volume(name string) string
	// ReadDir lists a folder. A symlink to a folder is refused.
	ReadDir(name string) ([]fs.DirEntry, error)
	// SyncDir makes the names in a folder durable. Where the system cannot
	// sync a folder (Windows) it does nothing: names are only as durable there
	// as the file system makes them. The same holds on file systems that refuse
	// the call (EINVAL, ENOTSUP, ENOSYS: some network mounts).
	SyncDir(name string) error
	// Sub opens a folder as an FS of its own.
	Sub(name string) (FS, error)
	// Flock returns an flock on the file of that name. The flock is not taken
	// yet; TryLock or TryRLock opens the file, with flag.
	Flock(name string, flag int) Flock
	// Name returns the absolute path that the folder had when it was opened. It
	// is for messages and for locks.
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
	Datasync() error // fdatasync: the data, and the metadata needed to read it, are on the disk
	Chmod(mode fs.FileMode) error
	Stat() (fs.FileInfo, error)
	Close() error
}

// A Flock is a lock on an open file. The kernel releases it when its holder dies.
type Flock interface {
	TryLock() (bool, error)  // exclusive
	TryRLock() (bool, error) // shared
	Unlock() error
	Stat() (fs.FileInfo, error) // of the open file
	Close() error
}

// SameFile reports whether two infos describe the same file. The infos of a
// simulated disk have the file itself as Sys. An info with the method Inner stands for
// another one: that of an encrypted file has the size of its content.
func SameFile(a, b fs.FileInfo) bool {
	inner := func(i fs.FileInfo) fs.FileInfo {
		if of, ok := i.(interface{ Inner() fs.FileInfo }); ok {
			return of.Inner()
		}
		return i
	}
	a, b = inner(a), inner(b)
	return os.SameFile(a, b) || a.Sys() != nil && a.Sys() == b.Sys()
}

// osFile is a File of the operating system.
type osFile struct{ *os.File }

// OS returns the os.File, for a caller that passes its descriptor to another process.
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
	dir  *os.File // the open folder, for beneath; nil in what Sub returns and on systems without openat2
	mu   sync.Mutex
	late *os.File // Guarded by mu: the open folder, once Mount has needed it and there is no dir.
}

// OpenFS opens a folder. A symlink at the end of the path is followed, since the
// caller may name the folder by a link.
func OpenFS(path string) (FS, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	r, err := os.OpenRoot(open.Within(abs))
	if err != nil {
		e := NewError("open folder", abs, NotCommitted, err)
		if info, err := os.Stat(abs); err == nil && !info.IsDir() {
			e.Class = ClassInvalid // the error of os.OpenRoot has no errno for this
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
		return osFile{f}, nil // the open created the file, so it is regular
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
func (d *root) Link(oldname, newname string) error        { return d.r.Link(oldname, newname) }
func (d *root) Symlink(target, name string) error         { return d.r.Symlink(target, name) }
func (d *root) Readlink(name string) (string, error)      { return d.r.Readlink(name) }
func (d *root) Chmod(name string, mode fs.FileMode) error { return d.r.Chmod(name, mode) }
func (d *root) Lstat(name string) (fs.FileInfo, error)    { return d.r.Lstat(name) }
func (d *root) Stat(name string) (fs.FileInfo, error)     { return d.r.Stat(name) }
func (d *root) Name() string                              { return d.name }

func (d *root) Close() error {
	_ = d.dir.Close() // nothing was written to it; Close of a nil *os.File returns an error
	d.mu.Lock()
	_ = d.late.Close()
	d.mu.Unlock()
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

// OpenDir opens a folder below dir. A symlink or a file of that name is refused with
// class invalid.
func OpenDir(dir FS, name string) (FS, error) {
	path := filepath.Join(dir.Name(), name)
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, NewError("open", path, NotCommitted, err)
	}
	if !info.IsDir() {
		what := "a file"
		if info.Mode()&fs.ModeSymlink != 0 {
			what = "a symlink"
		}
		return nil, &Error{Op: "open", Path: path, Class: ClassInvalid,
			Err: fmt.Errorf("it is %s and not a folder; move it away", what)}
	}
	sub, err := dir.Sub(name)
	if err != nil {
		return nil, NewError("open", path, NotCommitted, err)
	}
	return sub, nil
}

// OpenToList is OpenDir for a folder whose files are listed. It keeps one more descriptor, so
// that ReadDir, ReadHead and Locked need one openat2 per name where the system has it.
func OpenToList(dir FS, name string) (FS, error) {
	sub, err := OpenDir(dir, name)
	if d, ok := sub.(*root); ok {
		d.dir = openSelf(d.r)
	}
	return sub, err
}
