package writer

import (
	"errors"
	"io/fs"
	"os"
)

// RenameTo renames a name in a folder to a name in another one, which may be beneath another root.
// Both are single names, so that no symlink is followed. What has the new name already is not
// replaced: the error is fs.ErrExist. Neither folder is synced.
func RenameTo(from FS, oldname string, to FS, newname string) error {
	if x, ok := from.(*root); ok {
		if y, ok := to.(*root); ok {
			return x.renameTo(oldname, y, newname)
		}
	}
	a, err := from.OpenFile(".", os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := to.OpenFile(".", os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer b.Close()
	if d, ok := a.(interface { // a simulated disk
		RenameTo(oldname string, to File, newname string) error
	}); ok {
		return d.RenameTo(oldname, b, newname)
	}
	x, ok1 := a.(interface{ OS() *os.File })
	y, ok2 := b.(interface{ OS() *os.File })
	if !ok1 || !ok2 {
		return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: errors.ErrUnsupported}
	}
	return renameOpen(x.OS(), oldname, y.OS(), newname)
}

func (d *root) renameTo(oldname string, to *root, newname string) error {
	a, err := d.self()
	if err != nil {
		return err
	}
	b, err := to.self()
	if err != nil {
		return err
	}
	return renameOpen(a, oldname, b, newname)
}

func renameOpen(from *os.File, oldname string, to *os.File, newname string) error {
	if err := Retry(func() error { return renameAt(from, oldname, to, newname) }); err != nil {
		return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: err}
	}
	return nil
}

// vacant returns fs.ErrExist if something has a name in a folder.
func vacant(err error) error {
	switch {
	case err == nil:
		return fs.ErrExist
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}
