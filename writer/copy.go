package writer

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lopen-dev/lopen/writer/internal/open"
)

// CopyFile copies a regular file to a free name and syncs the copy, but not the
// folder: the caller makes the name durable. After an error no copy is left.
func CopyFile(dir FS, from, to string, perm fs.FileMode) error {
	src, _, err := OpenRegular(dir, "copy", from, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer src.Close()
	full := filepath.Join(dir.Name(), to)
	dst, err := dir.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY|open.NoFollow, perm)
	if err != nil {
		return NewError("copy", full, NotCommitted, err)
	}
	_, err = io.Copy(dst, src)
	if err == nil {
		err = dst.Sync()
	}
	if err = errors.Join(err, dst.Close()); err != nil {
		_ = dir.Remove(to)
		return NewError("copy", full, NotCommitted, err)
	}
	return nil
}
