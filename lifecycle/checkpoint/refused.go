package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/lopen-dev/lopen/writer"
)

// maxRefused bounds the refused paths that an error names.
const maxRefused = 5

// refusals are the errors with which a system refuses a change for good. EXDEV, EBUSY and
// ETXTBSY are those of a mount point and of a file in use, ENOTSUP of a file system that cannot
// hold what is wanted.
var refusals = []syscall.Errno{syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.EBUSY, syscall.EXDEV,
	syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ETXTBSY}

// Refused reports whether an error means that the system does not allow the change.
func Refused(err error) bool {
	var errno syscall.Errno
	return writer.ClassOf(err) == writer.ClassDenied || errors.As(err, &errno) && slices.Contains(refusals, errno)
}

// A refusal is why a path may not be changed.
type refusal struct {
	why string        // "it is immutable"
	do  string        // a command that lets it be changed; may be empty
	err syscall.Errno // what the call would return
}

func (r *refusal) Error() string {
	if r.do == "" {
		return r.why
	}
	return r.why + "; " + r.do + " lets it be changed"
}

func (r *refusal) Unwrap() error { return r.err }

// Advises reports whether the error says what to do.
func (r *refusal) Advises() bool { return r.do != "" }

// cause returns an error without the call and the names in it, which are the applier's own.
func cause(err error) string {
	var pe *fs.PathError
	var le *os.LinkError
	var se *os.SyscallError
	switch {
	case errors.As(err, &pe):
		err = pe.Err
	case errors.As(err, &le):
		err = le.Err
	case errors.As(err, &se):
		err = se.Err
	}
	return err.Error()
}

// permitted returns nil and retains the path if the system refuses the change. Once a change may
// be visible, it does so only if the plan tolerates that.
func (a *applier) permitted(c *Change, err error) error {
	if !Refused(err) || a.begun && !a.plan.Permitted {
		return a.failed(c.Path, err)
	}
	if a.inPlace(c) {
		a.over[c] = true
		return nil
	}
	if len(a.denied) == 0 {
		a.refused = err
	}
	a.denied = append(a.denied, c.Path)
	a.retain(c, Retained{Path: c.Path, Why: Denied, Cause: cause(err)})
	return nil
}

// inPlace reports whether a path has the mode that the plan wants. Apply would only make it
// durable.
func (a *applier) inPlace(c *Change) bool {
	if c.Kind != KindMode {
		return false
	}
	if isDir(c.New) {
		_, info, err := a.descent.stat(c.Path)
		return err == nil && info.Mode()&modeBits == c.New.Mode
	}
	st, err := a.state(c)
	return err == nil && st == finished
}

// ask finds, before anything is written, the paths that the system would refuse to change, from
// their attributes and those of their folders. A try in the folder does not find these.
func (a *applier) ask() error {
	var of asker
	defer of.close()
	return a.each(a.changes, func(*Change) bool { return true }, func(c *Change) (state, error) {
		dir, at, err := a.descent.nearest(parent(c.Path))
		if err != nil {
			return pending, err
		}
		q := question{in: filepath.Join(a.s.tree.Name(), at), names: c.Kind != KindMode || a.linked[c]}
		if at == parent(c.Path) && a.descent.folded[c.Path] == "" {
			q.name = base(c.Path)
		}
		return pending, of.ask(dir, &q)
	})
}

// A question is whether a path may be changed.
type question struct {
	in    string // the absolute path of the folder
	name  string // in the folder; "" for a path that does not exist
	names bool   // the name is made, replaced or removed; else only the mode changes
}

// refuse returns the error of the paths that may not be changed, unless the plan tolerates them.
func (a *applier) refuse() error {
	if a.plan.Permitted || len(a.denied) == 0 {
		return nil
	}
	err := a.refused
	if n := len(a.denied) - 1; n > 0 {
		var more []string
		for _, k := range a.out.Retained {
			if k.Why == Denied && k.Path != a.denied[0] && len(more) < maxRefused-1 {
				more = append(more, fmt.Sprintf("%s (%s)", k.Path, k.Cause))
			}
		}
		text := strings.Join(more, ", ")
		if n > len(more) {
			text += fmt.Sprintf(" and %d more", n-len(more))
		}
		err = fmt.Errorf("%w; nor may be changed: %s", err, text)
	}
	return &writer.Error{Op: "rewind", Path: filepath.Join(a.s.tree.Name(), a.denied[0]), Class: writer.ClassDenied, Err: err}
}
