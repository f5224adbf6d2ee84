//go:build !linux && !darwin && !windows

package trust

import "io/fs"

// identity is the same for all folders: what tells one from another in its place is not known here.
func identity(string, fs.FileInfo) string { return "folder" }
