//go:build !linux

package bench

import "os"

// datasync is what the floor of a durable save waits for.
func datasync(f *os.File) error { return f.Sync() }
