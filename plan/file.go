package plan

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"github.com/lopen-dev/lopen/writer"
)

// maxSize bounds what is read as a plan, in bytes.
const maxSize = 64 << 20

// rereads bounds how often Apply starts again because the file changed under its
// hands.
const rereads = 5

// ErrChanging says that the file kept changing while it was to be edited.
var ErrChanging = errors.New("the file keeps changing")

// Load reads a plan: a regular file of at most 64 MiB. errors.Is(err,
// fs.ErrNotExist) says that there is none.
func Load(fsys writer.FS, name string) (*Plan, error) {
	return Reload(fsys, name, nil)
}

// Reload reads a plan of which base was read before, which may be nil. A file that
// still says the same is not parsed again, and the result is base itself: what is
// compared is what the file says, so that no edit is overlooked, however it was made.
func Reload(fsys writer.FS, name string, base *Plan) (*Plan, error) {
	src, err := writer.ReadFile(fsys, name, maxSize)
	if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	if base != nil && bytes.Equal(src, base.src) {
		return base, nil
	}
	return Parse(src), nil
}

// CreateFile writes a new plan, durably, and never overwrites: errors.Is(err,
// fs.ErrExist) says that the name is taken.
func CreateFile(fsys writer.FS, name string, content []byte) error {
	if err := writer.CreateFile(fsys, name, content, 0o600); err != nil {
		return fmt.Errorf("create plan: %w", err)
	}
	return nil
}

// Apply carries a change out on a file and returns the plan that it then holds.
// base is the plan as the caller knows it. Where the file says something else by
// now, the change is made to what it says: edits that do not touch the same tasks
// are both kept, and for one that does the error is a *ConflictError.
//
// The plan is nil with any error but a *ConflictError of [Boxes], which sets
// the boxes that it can. What the file holds after an error of writing is what
// writer.ReplaceFile says of it; after all others it is as it was.
//
// The file is compared once more right before it is replaced. An editor that
// saves between that moment and the rename, some hundred microseconds, loses what
// it saved: no portable call replaces a file only if it is still the same, and
// editors take no lock.
func Apply(fsys writer.FS, name string, base *Plan, change Change) (*Plan, error) {
	for range rereads {
		now, err := Reload(fsys, name, base)
		if err != nil {
			return nil, err
		}
		next, changeErr := change(base, now)
		if next == nil || bytes.Equal(next.src, now.src) {
			return next, changeErr
		}
		replaced, err := replace(fsys, name, now.src, next.src)
		if err != nil {
			return nil, fmt.Errorf("write plan: %w", err)
		}
		if replaced {
			return next, changeErr
		}
	}
	return nil, fmt.Errorf("write plan %s: %w", name, ErrChanging)
}

// replace puts next in the place of a file that still holds old, with the
// file's permission bits.
func replace(fsys writer.FS, name string, old, next []byte) (bool, error) {
	info, err := fsys.Lstat(name)
	if err != nil {
		return false, err
	}
	now, err := writer.ReadFile(fsys, name, maxSize)
	if err != nil {
		return false, err
	}
	if !bytes.Equal(now, old) {
		return false, nil
	}
	return true, writer.ReplaceFile(fsys, name, next, info.Mode()&fs.ModePerm)
}
