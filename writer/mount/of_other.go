//go:build !unix

package mount

import "os"

// Of knows of no mounts.
func Of(*os.File, string) (uint64, error) { return 0, nil }

// VolumeAt knows of no volumes.
func VolumeAt(*os.File, string) string { return "" }
