package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// deletingPrefix begins the name of what is being deleted for good: its manifests
// do not count any more.
const deletingPrefix = ".deleting-"

// maxNesting bounds how deep Roots looks: sessions/{id}/checkpoints/{cp} and what
// a quarantine may put around it.
const maxNesting = 16

// Roots adds the hashes of every manifest anywhere below a folder, for
// [blob.Store.Sweep], which calls it under its lock. A folder that is not there has
// none. The error names the first manifest that cannot be read in full: nothing may
// be swept then. Links are not followed.
func Roots(dir writer.FS, name string, into map[blob.Hash]struct{}) error {
	return roots(dir, name, into, 0)
}

func roots(dir writer.FS, name string, into map[blob.Hash]struct{}, depth int) error {
	failed := func(err error) error {
		return writer.NewError("look for checkpoints", filepath.Join(dir.Name(), name), writer.NotCommitted, err)
	}
	if depth > maxNesting {
		return failed(fmt.Errorf("more than %d folders deep", maxNesting))
	}
	entries, err := dir.ReadDir(name)
	if depth == 0 && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return failed(err)
	}
	for _, e := range entries {
		child := path.Join(name, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), leavingPrefix), strings.HasPrefix(e.Name(), deletingPrefix):
		case e.Name() == manifestName:
			m, _, err := load(dir, child)
			if err != nil {
				return err
			}
			m.Blobs(func(h blob.Hash, _ int64) { into[h] = struct{}{} })
		case e.IsDir():
			if err := roots(dir, child, into, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
