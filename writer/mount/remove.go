package mount

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrMounted means that something is mounted in a folder that is to be removed. It stays, with all
// that is on it and the folders above it.
var ErrMounted = errors.New("something is mounted there; unmount it and try again")

// RemoveAll is os.RemoveAll that crosses no mount.
func RemoveAll(name string) error {
	dir, err := os.OpenRoot(filepath.Dir(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(RemoveIn(dir, filepath.Base(name)), dir.Close())
}

// FindAt is Find by a path.
func FindAt(name string) (string, error) {
	dir, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return "", unlessGone(err)
	}
	defer dir.Close()
	in := root{Root: dir}
	above, err := in.Sub(".")
	if err != nil {
		return "", unlessGone(err)
	}
	defer above.Close()
	return Find(above, filepath.Base(name))
}

// RemoveIn removes a file or folder in an open folder, with all that is in it, as far as it can be
// removed. The error is that of the first name that stays, with its whole path; it wraps ErrMounted if
// something is mounted there. Each folder is opened in the one above it, so that no symlink is followed and no
// mount crossed, whatever is put in a folder's place meanwhile.
func RemoveIn(dir *os.Root, name string) error {
	name = filepath.Clean(name)
	if base := filepath.Base(name); base == "." || base == ".." {
		return dir.RemoveAll(name) // its error says that this is refused
	}
	in := root{Root: dir}
	above, err := in.Sub(filepath.Dir(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer above.Close()
	return removeAll(above, filepath.Base(name))
}

func removeAll[D FS[D]](dir D, name string) error {
	err := dir.Remove(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	info, lerr := dir.Lstat(name)
	if lerr != nil || !info.IsDir() {
		if is, perr := Point(dir, name); perr == nil && is {
			err = ErrMounted
		}
		return stays(dir, name, err)
	}
	sub, mounted, err := Enter(dir, name)
	if err != nil {
		return stays(dir, name, err)
	}
	if mounted {
		_ = sub.Close()
		return stays(dir, name, ErrMounted)
	}
	entries, err := sub.ReadDir(".")
	err = stays(dir, name, err)
	for _, e := range entries {
		if rerr := removeAll(sub, e.Name()); err == nil {
			err = rerr
		}
	}
	_ = sub.Close() // nothing was written through it
	if err != nil {
		return err
	}
	if err = dir.Remove(name); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return stays(dir, name, err)
}

// stays returns an error of a name in a folder, with its whole path.
func stays[D FS[D]](dir D, name string, err error) error {
	if err == nil {
		return nil
	}
	if in := (*fs.PathError)(nil); errors.As(err, &in) {
		err = in.Err
	}
	return &fs.PathError{Op: "remove", Path: filepath.Join(dir.Name(), name), Err: err}
}

// root is an os.Root as an FS, with a descriptor of its folder.
type root struct {
	*os.Root
	self *os.File
}

func (r *root) Mount(name string) (uint64, error) { return Of(r.self, name) }

func (r *root) ReadDir(string) ([]fs.DirEntry, error) { return r.self.ReadDir(-1) }

func (r *root) Sub(name string) (*root, error) {
	sub, err := r.OpenRoot(name + "/.") // which no FIFO has, so that its open does not wait
	if err != nil {
		return nil, err
	}
	self, err := sub.Open(".")
	if err != nil {
		return nil, errors.Join(err, sub.Close())
	}
	return &root{sub, self}, nil
}

func (r *root) Close() error { return errors.Join(r.self.Close(), r.Root.Close()) }
