package mount

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
)

// An FS is what this package needs of a writer.FS.
type FS[D any] interface {
	Lstat(name string) (fs.FileInfo, error)
	Mount(name string) (uint64, error)
	ReadDir(name string) ([]fs.DirEntry, error)
	Remove(name string) error
	Sub(name string) (D, error)
	Name() string
	Close() error
}

// ErrNotFolder means that a name is no folder, or was replaced while it was opened.
var ErrNotFolder = errors.New("it is no folder")

// Point reports whether a name in dir is a mount point: a folder or a single file on another mount
// than dir. A missing name is none.
func Point[D FS[D]](dir D, name string) (bool, error) {
	at, err := dir.Mount(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	above, err := dir.Mount(".")
	return err == nil && at != above, err
}

// Enter opens a folder in dir. It follows no symlink, not even one that stays inside. mounted
// reports that the opened folder is on another mount than dir: the two descriptors are compared, so
// it does not matter what is mounted or unmounted meanwhile.
func Enter[D FS[D]](dir D, name string) (sub D, mounted bool, err error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return sub, false, err
	}
	if !info.IsDir() {
		return sub, false, &fs.PathError{Op: "open", Path: name, Err: ErrNotFolder}
	}
	opened, err := dir.Sub(name)
	if err != nil {
		return sub, false, err
	}
	is, err := opened.Lstat(".")
	if err == nil && !os.SameFile(info, is) && (info.Sys() == nil || info.Sys() != is.Sys()) { // a simulated disk has the file itself as Sys
		err = &fs.PathError{Op: "open", Path: name, Err: ErrNotFolder}
	}
	var at, above uint64
	if err == nil {
		at, err = opened.Mount(".")
	}
	if err == nil {
		above, err = dir.Mount(".")
	}
	if err != nil {
		_ = opened.Close()
		return sub, false, err
	}
	return opened, at != above, nil
}

// Find returns the first mount point at or beneath a name in dir, "" if there is none. The path is
// relative to dir. Find looks into no folder that may not be read: nothing removes what is in one.
func Find[D FS[D]](dir D, name string) (string, error) {
	is, err := Point(dir, name)
	if is || err != nil {
		return name, err
	}
	info, err := dir.Lstat(name)
	if err != nil || !info.IsDir() {
		return "", unlessGone(err)
	}
	sub, mounted, err := Enter(dir, name)
	if err != nil {
		return "", unlessGone(err)
	}
	defer sub.Close()
	if mounted {
		return name, nil
	}
	entries, err := sub.ReadDir(".")
	if err != nil {
		return "", unlessGone(err)
	}
	for _, e := range entries {
		if below, err := Find(sub, e.Name()); below != "" || err != nil {
			return path.Join(name, below), err
		}
	}
	return "", nil
}

// unlessGone returns nil for the errors of what is no folder that can be read.
func unlessGone(err error) error {
	if slices.ContainsFunc([]error{fs.ErrNotExist, fs.ErrPermission, ErrNotFolder}, func(of error) bool { return errors.Is(err, of) }) {
		return nil
	}
	return err
}
