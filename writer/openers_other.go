//go:build !linux

package writer

import (
	"errors"
	"io/fs"
	"os"
)

// leased does not know.
func leased(*os.File) (is bool, err error) { return false, errors.ErrUnsupported }

// all knows of nobody.
func (o *Openers) all() map[uint64][]opener { return nil }

// who names nobody.
func (o *Openers) who(string, fs.FileInfo) string { return "" }
