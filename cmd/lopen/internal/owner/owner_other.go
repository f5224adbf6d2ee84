//go:build !unix

package owner

import "io/fs"

// Foreign says whether a file belongs to another user, which is not known here.
func Foreign(fs.FileInfo) bool { return false }

// Mine is false: the owner is not known here.
func Mine(fs.FileInfo) bool { return false }

// Same says whether two files have one owner, which is not known here.
func Same(_, _ fs.FileInfo) bool { return true }

// Name is the owner's name, for people.
func Name(fs.FileInfo) string { return "an unknown user" }
