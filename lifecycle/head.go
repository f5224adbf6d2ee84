package lifecycle

import (
	"io/fs"
	"os"

	"github.com/lopen-dev/lopen/writer"
)

// heads looks into one folder by its descriptor, for listings: one openat2 goes down
// to a file and refuses every symlink on the way, where os.Root opens and closes each
// folder of a path, once for a look and once for the file; and an os.Root looks at each
// name in a folder that is listed.
type heads struct{ *os.File }

// openHeads opens the folder of an FS. One that is not the folder on the disk with
// that name (it is simulated, or was moved since) is asked itself.
func openHeads(dir writer.FS) heads {
	want, err := dir.Stat(".")
	if err != nil {
		return heads{}
	}
	f, err := os.Open(dir.Name())
	if err != nil {
		return heads{}
	}
	if have, err := f.Stat(); err != nil || !os.SameFile(have, want) {
		_ = f.Close()
		return heads{}
	}
	return heads{f}
}

func (h heads) close() {
	if h.File != nil {
		_ = h.Close()
	}
}

// entries lists the folder, which is dir's.
func (h heads) entries(dir writer.FS) ([]fs.DirEntry, error) {
	if h.File == nil {
		return dir.ReadDir(".")
	}
	return h.ReadDir(-1)
}
