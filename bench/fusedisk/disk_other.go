//go:build !linux

package fusedisk

import (
	"errors"
	"io"
)

// serve is for Linux: elsewhere what needs it is left out.
func serve(string, string, io.Reader, io.Writer) error {
	return errors.New("there is no FUSE here")
}
