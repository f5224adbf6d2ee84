//go:build !linux && !darwin

package files

import (
	"io/fs"

	"github.com/lopen-dev/lopen/writer"
)

// nonBlock is for systems where an open may wait.
const nonBlock = 0

func openTop(root writer.FS) (folder, error) {
	_, err := root.Stat(".")
	return fsFolder{root, "."}, err
}

func statOf(info fs.FileInfo) stat {
	return stat{mode: info.Mode(), size: info.Size(), modTime: info.ModTime().UnixNano()}
}
