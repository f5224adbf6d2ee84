package files

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/writer"
)

// ignoreFiles hold the rules, a later one's over an earlier one's of the same folder.
var ignoreFiles = []string{".gitignore", ".lopenignore"}

// maxIgnore bounds the ignore files that hold for a path, those of all folders above
// it together, in bytes: every name is compared with all their patterns. Of a file
// that would exceed it nothing holds, and it is noted as unreadable.
const maxIgnore = 256 << 10

// never says of which names nothing is ever taken. git as well refuses them in any
// case, because there are file systems that do.
func never(name string) bool {
	return strings.EqualFold(name, ".git") || strings.EqualFold(name, ".lopen")
}

// rules are those of one folder and of the ones above. Immutable.
type rules struct {
	above    *rules
	prefix   int // length of the folder's path with its '/'
	patterns []pattern
	size     int // of the ignore files of this folder and of those above, in bytes
}

// rules adds what the ignore files among a folder's names say. As git since 2.32
// does, it takes a symlink for no ignore file.
func (w *walker) rules(above *rules, dir string, names []string) *rules {
	var patterns []pattern
	size := 0
	if above != nil {
		size = above.size
	}
	for _, name := range ignoreFiles {
		if !slices.Contains(names, name) {
			continue
		}
		file := path.Join(dir, name)
		info, err := w.root.Lstat(file)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		data, err := writer.ReadFile(w.root, file, int64(maxIgnore-size))
		if err != nil {
			if writer.ClassOf(err) == writer.ClassInvalid {
				err = fmt.Errorf("of %d KiB for the ignore files along a path %d bytes are left: %w", maxIgnore>>10, maxIgnore-size, err)
			}
			if !errors.Is(err, fs.ErrNotExist) {
				w.skip(file, Unreadable, err)
			}
			continue
		}
		size += len(data)
		patterns = append(patterns, parseIgnore(string(data))...)
	}
	if patterns == nil {
		return above
	}
	r := &rules{above: above, patterns: patterns, size: size}
	if dir != "." {
		r.prefix = len(dir) + 1
	}
	return r
}

// ignored judges a path whose folders are not ignored: the last pattern that
// matches decides, those of the nearest folder first. name is the last part.
func (r *rules) ignored(path, name string, isDir bool) bool {
	for ; r != nil; r = r.above {
		for i := len(r.patterns) - 1; i >= 0; i-- {
			if p := &r.patterns[i]; p.match(path[r.prefix:], name, isDir) {
				return !p.negated
			}
		}
	}
	return false
}
