package owner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lopen-dev/lopen/writer/documents"
)

// An Error says that other users than this one and root may change a file, or what is in a folder.
type Error struct {
	Path string
	Why  string
	Mend []string // a command that ends that; nil where there is none
}

func (e *Error) Error() string { return e.Path + " " + e.Why }

// Private returns an [Error] if others may change what is in a folder, which need not exist, or put another one in
// its place: the folder or one above it fails [Alone]. As ssh's StrictModes has it, the folders above home are
// the administrator's. One that is sticky may be written by all, because nobody can move there what is another
// user's. Symlinks are followed.
func Private(folder, home string) error {
	if target, err := filepath.EvalSymlinks(folder); err == nil {
		top, err := filepath.EvalSymlinks(home)
		if err != nil {
			top = home
		}
		if err := private(target, top); err != nil {
			return err
		}
	}
	return private(filepath.Clean(folder), filepath.Clean(home))
}

func private(folder, home string) error {
	for dir := folder; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err == nil && (dir == folder || !sticky(info)) {
			err = alone(dir, info)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if dir == home || dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// sticky says of a folder that others cannot move what is ours there.
func sticky(info fs.FileInfo) bool {
	return info.Mode()&fs.ModeSticky != 0 && !others(info)
}

// others says whether a file belongs to another user than this one and root.
func others(info fs.FileInfo) bool { return Foreign(info) && !roots(info) }

// Alone returns an [Error] if a file or folder, or a symlink to it, belongs to another user than this one and
// root, or if others may write there. A group in which nobody else is, as where each user has one, is no other.
func Alone(path string) error {
	link, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if link.Mode()&fs.ModeSymlink != 0 && others(link) {
		return &Error{Path: path, Why: "belongs to " + Name(link)}
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return alone(path, info)
}

func alone(path string, info fs.FileInfo) error {
	switch {
	case others(info):
		return &Error{Path: path, Why: "belongs to " + Name(info)}
	case shared(info):
		return &Error{Path: path, Why: fmt.Sprintf("may be written by others (%s)", info.Mode()), Mend: []string{"chmod", "go-w", path}}
	}
	return nil
}

// ReadFile is [documents.ReadFile] of a file in a private folder, unless others could have written it before.
func ReadFile(path string, limit int64) ([]byte, error) {
	if err := Alone(path); err != nil {
		return nil, err
	}
	return documents.ReadFile(path, limit)
}
