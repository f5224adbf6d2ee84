package plan

import (
	"bytes"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/lopen-dev/lopen/plan/internal/guard"
	"github.com/lopen-dev/lopen/writer"
)

// ErrChanging says that the file changed again and again while it was to be edited.
var ErrChanging = guard.ErrChanging

// Load reads a plan: a regular file of at most 64 MiB. errors.Is(err,
// fs.ErrNotExist) says that there is none; one that no run can work through is
// ErrUnusable, with its line.
//
// base is the plan as it was read before, which may be nil. A file that still says the
// same is not parsed again, and the result is base itself: what is compared is what the
// file says, so that no edit is overlooked, however it was made.
func Load(fsys writer.FS, name string, base *Plan) (*Plan, error) {
	src, err := guard.Read(fsys, name, base.bytes())
	if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	p := base.unless(src)
	if p == base {
		return p, nil
	}
	if err := p.Usable(); err != nil {
		return nil, fmt.Errorf("read plan: %s: %w", filepath.Join(fsys.Name(), name), err)
	}
	return p, nil
}

// CreateFile writes a new plan, durably, and never overwrites: errors.Is(err,
// fs.ErrExist) says that the name is taken. It writes none that is too large to be read.
func CreateFile(fsys writer.FS, name string, content []byte) error {
	if err := guard.Bounded(name, content); err != nil {
		return fmt.Errorf("create plan: %w", err)
	}
	if err := writer.CreateFile(fsys, name, content, 0o600); err != nil {
		return fmt.Errorf("create plan: %w", err)
	}
	return nil
}

// Apply carries a change out on a file and returns the plan that it then holds.
// base is the plan as the caller knows it. Where the file says something else by
// now, the change is made to what it says: edits that do not touch the same tasks
// both survive, and for one that does the error is a *ConflictError.
//
// The plan is nil with any error but a *ConflictError of [Boxes] or [Marks],
// which do what they can. What the file holds after an error of writing is what
// writer.ReplaceFile says of it; after all others it is as it was. An editor that
// saves in the very moment of the rename loses what it saved: see the package.
func Apply(fsys writer.FS, name string, base *Plan, change Change) (next *Plan, err error) {
	var conflict error
	err = guard.Edit(fsys, name, 0, base.bytes(), func(src []byte) ([]byte, error) {
		if src == nil {
			return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
		}
		now := base.unless(src)
		if next, conflict = change(base, now); next == nil {
			return nil, conflict
		}
		if err := next.Usable(); err != nil {
			next = nil
			return nil, err
		}
		return next.src, nil
	})
	if err == nil {
		return next, conflict
	}
	if conflict != nil && next == nil {
		return nil, conflict
	}
	return nil, fmt.Errorf("write plan: %w", err)
}

// unless returns the plan itself if it is what src says. It keeps src.
func (p *Plan) unless(src []byte) *Plan {
	if p != nil && bytes.Equal(src, p.src) {
		return p
	}
	return parse(src)
}

// bytes is the source of a plan, which may be nil.
func (p *Plan) bytes() []byte {
	if p == nil {
		return nil
	}
	return p.src
}
