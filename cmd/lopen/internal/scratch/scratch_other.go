//go:build !unix

package scratch

import (
	"errors"
	"os"
)

// A folder cannot be locked here.
func lock(*os.File) (bool, error) { return false, errors.ErrUnsupported }
