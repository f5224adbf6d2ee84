//go:build !linux

package writer

import (
	"os"
	"path/filepath"
)

func renameAt(from *os.File, oldname string, to *os.File, newname string) error {
	target := filepath.Join(to.Name(), newname)
	_, err := os.Lstat(target)
	if err := vacant(err); err != nil {
		return err
	}
	return os.Rename(filepath.Join(from.Name(), oldname), target)
}
