//go:build !linux && !darwin

package files

import (
	"github.com/lopen-dev/lopen/writer"
)

// nonBlock is for systems where an open may wait.
const nonBlock = 0

func openTop(root writer.FS) (folder, uint64, error) { return topOf(root) }
