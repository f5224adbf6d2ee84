package assess

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/lopen-dev/lopen/cache/internal/identity"
)

// ErrPattern is wrapped when a pattern is none.
var ErrPattern = errors.New("bad pattern")

// Files is the Look at the files below a folder that patterns name: doublestar's,
// with `**` for any number of folders, relative to the folder with slashes; a
// pattern that names a folder stands for all that is in it. Without patterns it is
// all files. Folders called .git and .lopen are left out, and folders themselves
// are not looked at: an empty one is nothing.
func Files(root string, patterns []string) (Look, error) {
	for _, p := range patterns {
		if !doublestar.ValidatePattern(p) {
			return nil, fmt.Errorf("%w: %q", ErrPattern, p)
		}
	}
	s := scope{root: root, patterns: slices.Clone(patterns), now: time.Now}
	for i, p := range s.patterns {
		s.patterns[i] = strings.TrimSuffix(strings.TrimPrefix(p, "./"), "/")
	}
	return s.look, nil
}

type scope struct {
	root     string
	patterns []string
	now      func() time.Time
}

func (s scope) look(ctx context.Context, last []byte) ([]byte, bool, error) {
	begun := s.now()
	before, ok := decodeFiles(last)
	var all []file
	same := ok
	err := filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		if cerr := ctx.Err(); cerr != nil {
			return cerr
		}
		if errors.Is(err, fs.ErrNotExist) && path != s.root {
			return nil // gone since its folder was read
		}
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != s.root && (name == ".git" || name == ".lopen") {
				return fs.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(s.root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if !s.names(rel) {
			return nil
		}
		var old *file
		if i := len(all); same && i < len(before) && before[i].path == rel {
			old = &before[i]
		}
		f, same1, err := lookAt(path, rel, begun, old)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		same = same && same1
		all = append(all, f)
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("look at the files of the scope: %w", err)
	}
	return encodeFiles(all), same && len(all) == len(before), nil
}

// names says whether a pattern names a file or a folder around it.
func (s scope) names(rel string) bool {
	if len(s.patterns) == 0 {
		return true
	}
	return slices.ContainsFunc(s.patterns, func(p string) bool {
		if doublestar.MatchUnvalidated(p, rel) {
			return true
		}
		for i, c := range rel {
			if c == '/' && doublestar.MatchUnvalidated(p, rel[:i]) {
				return true
			}
		}
		return false
	})
}

// A file is what is remembered of one.
type file struct {
	path string
	mode fs.FileMode
	id   identity.Identity
	sum  []byte // of the content, where id does not say enough; else empty
}

// lookAt looks at one file and compares it with what it was, if it was.
func lookAt(path, rel string, begun time.Time, old *file) (f file, same bool, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return f, false, err
	}
	f = file{path: rel, mode: info.Mode(), id: identity.Of(info)}
	same = old != nil && old.mode == f.mode
	if same && len(old.sum) == 0 {
		same = old.id == f.id
	}
	racy := f.id.Racy(begun)
	if !racy && (!same || len(old.sum) == 0) {
		return f, same, nil
	}
	sum, err := contentSum(path, info)
	if err != nil {
		return f, false, err
	}
	if racy {
		f.sum = sum
	}
	return f, same && (len(old.sum) == 0 || string(old.sum) == string(sum)), nil
}

// contentSum is the SHA-256 of what a file holds or where a symlink leads. Of
// anything else there is nothing to read: its mode says all.
func contentSum(path string, info fs.FileInfo) ([]byte, error) {
	h := sha256.New()
	switch info.Mode().Type() {
	case 0:
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if _, err := io.Copy(h, f); err != nil {
			return nil, err
		}
	case fs.ModeSymlink:
		target, err := os.Readlink(path)
		if err != nil {
			return nil, err
		}
		h.Write([]byte(target))
	}
	return h.Sum(nil), nil
}
