package plan

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/writer"
)

// maxSize bounds what is read as a plan, in bytes.
const maxSize = 64 << 20

// rereads bounds how often SetBoxes starts again because the file changed
// under its hands.
const rereads = 5

// ErrChanging says that the file kept changing while boxes were to be set.
var ErrChanging = errors.New("the file keeps changing")

// A ConflictError names the tasks whose boxes could not be set because the file
// does not have them any more. All other boxes were set.
type ConflictError struct {
	Missing []string // IDs, sorted
}

func (e *ConflictError) Error() string {
	return "set boxes: no longer in the plan: " + strings.Join(e.Missing, ", ")
}

// Load reads a plan: a regular file of at most 64 MiB. errors.Is(err,
// fs.ErrNotExist) says that there is none.
func Load(fsys writer.FS, name string) (*Plan, error) {
	src, err := writer.ReadFile(fsys, name, maxSize)
	if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
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

// SetBoxes ticks (true) and unticks boxes by task ID and returns the plan as the
// file then holds it. base is the plan as the caller knows it; where the file says
// something else by now, the boxes are looked up in what it says, so that an
// edit by a person is kept. Components have no box and are passed over.
//
// With a *ConflictError, which names IDs that the file has no more, all other
// boxes are set and the plan is returned too. With any other error the plan is nil;
// what the file holds then is what writer.ReplaceFile says of its error.
//
// The file is compared once more right before it is replaced. An editor that
// saves between that moment and the rename, some hundred microseconds, loses what
// it saved: no portable call replaces a file only if it is still the same, and
// editors take no lock.
func SetBoxes(fsys writer.FS, name string, base *Plan, want map[string]bool) (*Plan, error) {
	p := base
	for range rereads {
		src, err := writer.ReadFile(fsys, name, maxSize)
		if err != nil {
			return nil, fmt.Errorf("set boxes: %w", err)
		}
		if !bytes.Equal(src, p.src) {
			p = Parse(src)
		}
		next, conflict := p.SetBoxes(want)
		if !bytes.Equal(next.src, p.src) {
			replaced, err := replace(fsys, name, p.src, next.src)
			if err != nil {
				return nil, fmt.Errorf("set boxes: %w", err)
			}
			if !replaced {
				continue
			}
		}
		return next, conflict
	}
	return nil, fmt.Errorf("set boxes in %s: %w", name, ErrChanging)
}

// SetBoxes is a plan with boxes ticked (true) and unticked, in memory. With a
// *ConflictError, which names IDs that the plan does not have, all others are set.
func (p *Plan) SetBoxes(want map[string]bool) (*Plan, error) {
	boxes, missing := p.boxes(want)
	next := p.withBoxes(boxes)
	if len(missing) > 0 {
		return next, &ConflictError{Missing: missing}
	}
	return next, nil
}

// boxes translates task IDs to offsets.
func (p *Plan) boxes(want map[string]bool) (boxes map[int]bool, missing []string) {
	boxes = make(map[int]bool, len(want))
	for id, ticked := range want {
		t, ok := p.Task(id)
		switch {
		case !ok:
			missing = append(missing, id)
		case t.Box >= 0:
			boxes[t.Box] = ticked
		}
	}
	slices.Sort(missing)
	return boxes, missing
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
