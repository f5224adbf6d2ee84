//go:build !linux

package writer

import "os"

// datasync is fsync where there is no fdatasync, or, as on macOS, none that
// reaches the disk.
func datasync(f *os.File) error { return f.Sync() }
