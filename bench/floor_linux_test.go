package bench

import (
	"os"

	"golang.org/x/sys/unix"
)

// datasync is what the floor of a durable save waits for.
func datasync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }
