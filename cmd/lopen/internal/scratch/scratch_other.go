//go:build !unix

package scratch

import (
	"errors"
	"os"
)

// Lock fails: a folder cannot be locked here.
func Lock(*os.File) (bool, error) { return false, errors.ErrUnsupported }
