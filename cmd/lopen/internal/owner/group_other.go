//go:build !unix

package owner

import "io/fs"

// roots is false: the owner is not known here.
func roots(fs.FileInfo) bool { return false }

// shared is false: who may write is not known here.
func shared(fs.FileInfo) bool { return false }
