//go:build !linux

package main

import (
	"errors"
	"io"
)

// serveDisk is for Linux: elsewhere the tables that need it are left out.
func serveDisk(string, string, io.Reader, io.Writer) error {
	return errors.New("there is no FUSE here")
}
