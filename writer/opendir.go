package writer

import (
	"fmt"
	"io/fs"
	"path/filepath"
)

// OpenDir opens a folder below dir. A symlink or a file of that name is refused with
// class invalid.
func OpenDir(dir FS, name string) (FS, error) {
	path := filepath.Join(dir.Name(), name)
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, opening(path, err)
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
		return nil, opening(path, err)
	}
	return sub, nil
}

// opening returns an Error with the folder's full path; the error of the system has only
// the path below dir.
func opening(path string, err error) error {
	return NewError("open", path, NotCommitted, err)
}
