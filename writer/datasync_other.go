//go:build !linux

package writer

import "os"

// datasync is fsync, because these systems have no fdatasync, or one that does
// not reach the disk (macOS).
func datasync(f *os.File) error { return f.Sync() }
