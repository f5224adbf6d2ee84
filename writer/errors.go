package writer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/lopen-dev/lopen/writer/envelope"
)

// Class is the kind of a storage error. It decides what happens next.
type Class uint8

// The classes. docs/FAULTS.md, Errors, says what follows from each.
const (
	classUnknown       Class = iota
	ClassInvalid             // a bad name, option or layout: refused before anything is written
	ClassBusy                // the lock is held by another process
	ClassTransient           // EINTR, EAGAIN, EMFILE, ENFILE, ENOMEM: retried a few times
	ClassNoSpace             // ENOSPC, EDQUOT, EFBIG: works again once there is space
	ClassDenied              // EACCES, EPERM, EROFS: works again once it is permitted
	ClassDevice              // EIO, ESTALE and the like: a person has to look
	ClassCorrupt             // damaged content
	ClassFutureVersion       // written by a newer lopen
	ClassFenced              // the lock was lost: stop writing
	ClassRemoved             // the folder was removed: the session can be written again from memory
)

var classNames = [...]string{"unknown", "invalid", "busy", "transient", "no-space", "denied", "device", "corrupt", "future-version", "fenced", "removed"}

func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return fmt.Sprintf("class %d", c)
}

// Hint returns one sentence that tells a person what to do about an error of the class.
func (c Class) Hint() string {
	switch c {
	case ClassNoSpace:
		return "free space on this disk (df -h and df -i show what is short)"
	case ClassDenied:
		return "make the folder writable again (owner, mode, a read-only mount)"
	case ClassDevice:
		return "look at the disk (dmesg shows what the kernel says), then try again"
	case ClassBusy:
		return "wait for the holder, or end it"
	case ClassTransient:
		return "the system is short of a resource: try again"
	case ClassFenced:
		return "the session's folder or lock was replaced: start again"
	case ClassRemoved:
		return "it is made again from memory"
	case ClassFutureVersion:
		return "update lopen"
	case ClassCorrupt:
		return "the files are left as they are: keep a copy before anything is tried"
	case ClassInvalid:
		return "nothing was changed: give what the message asks for"
	}
	return "see to what the message names, then try again"
}

// errors.Is(err, sentinel) is true for an [*Error] of the sentinel's class. So it is for
// [envelope.ErrCorrupt] and [envelope.ErrFutureVersion].
var (
	ErrInvalid = errors.New("invalid")
	ErrBusy    = errors.New("busy")
)

// sentinels pairs the sentinels with their classes. It is no map: errors.Is passes any
// target, and a target of an unhashable type would make the look-up panic.
var sentinels = [...]struct {
	err   error
	class Class
}{
	{ErrInvalid, ClassInvalid}, {ErrBusy, ClassBusy}, {envelope.ErrCorrupt, ClassCorrupt}, {envelope.ErrFutureVersion, ClassFutureVersion},
}

// Outcome is what is known of a file after a failed call.
type Outcome uint8

// The outcomes.
const (
	NotCommitted   Outcome = iota // the file has the old content
	NotDurable                    // the file has the new content; a power cut may bring the old one back
	OutcomeUnknown                // a rename failed and the folder cannot be read: the file has one of the two, whole
)

// An Error is a failed storage call.
type Error struct {
	Op      string // what was done: "replace", "lock"
	Path    string
	Class   Class
	Outcome Outcome
	Err     error // the cause; it wraps the OS error if there is one
}

// NewError returns an Error whose class follows from its cause, as ClassOf says.
func NewError(op, path string, outcome Outcome, err error) *Error {
	return &Error{Op: op, Path: path, Class: ClassOf(err), Outcome: outcome, Err: err}
}

func (e *Error) Error() string {
	cause := fmt.Sprint(e.Err)
	var pe *fs.PathError // its path is relative to some folder, so e.Path is shown instead
	var le *os.LinkError
	if errors.As(e.Err, &pe) {
		cause = strings.Replace(cause, pe.Error(), pe.Op+": "+pe.Err.Error(), 1)
	} else if errors.As(e.Err, &le) {
		cause = strings.Replace(cause, le.Error(), le.Op+": "+le.Err.Error(), 1)
	}
	s := cause
	if e.Op != "" { // else another error around it says what was done, and where
		s = fmt.Sprintf("%s %s: %s", e.Op, e.Path, cause)
	}
	switch e.Outcome {
	case NotDurable:
		s += " (written, but a power cut may undo it)"
	case OutcomeUnknown:
		s += " (whether it was written cannot be told)"
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Details returns the fields that a log records in addition to the text: path, class and,
// if there is one, the OS error.
func (e *Error) Details() map[string]any {
	d := map[string]any{"path": e.Path, "class": e.Class.String()}
	var errno syscall.Errno
	if errors.As(e.Err, &errno) {
		d["os_error"] = errno.Error()
	}
	return d
}

// Is makes errors.Is(err, ErrBusy) and the like follow the class.
func (e *Error) Is(target error) bool {
	for _, s := range sentinels {
		if s.err == target {
			return s.class == e.Class
		}
	}
	return false
}

// ClassOf returns the class of the first [*Error] in err's chain, else the class that
// follows from a [*BusyError] or the OS error in the chain.
func ClassOf(err error) Class {
	var e *Error
	if errors.As(err, &e) && e.Class != classUnknown {
		return e.Class
	}
	var busy *BusyError
	if errors.As(err, &busy) {
		return ClassBusy
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return classOfErrno(errno)
	}
	if errors.Is(err, fs.ErrPermission) {
		return ClassDenied
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return ClassTransient
	}
	return classUnknown
}

func classOfErrno(errno syscall.Errno) Class {
	switch errno {
	case syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG:
		return ClassNoSpace
	case syscall.EACCES, syscall.EPERM, syscall.EROFS:
		return ClassDenied
	case syscall.EINTR, syscall.EAGAIN, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM:
		return ClassTransient
	case syscall.EIO, syscall.ESTALE, syscall.ENXIO, syscall.ENODEV, syscall.ETIMEDOUT, syscall.ENOTCONN:
		return ClassDevice
	case syscall.EINVAL, syscall.ENAMETOOLONG, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP:
		return ClassInvalid
	}
	return classOfSystemErrno(errno)
}
