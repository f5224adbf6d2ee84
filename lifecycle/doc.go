// Package lifecycle is the front door of Lopen's storage: a [Store] is the
// .lopen folder of one project, a [Session] is one session of it that this
// process holds for writing.
//
//	store, _, err := lifecycle.Init(project, lifecycle.Options{})
//	sess, err := store.Create(ctx, "auth")
//	err = sess.Change(session.TriggerPhaseChanged, func(e *session.Edit) error {
//		e.Header().Phase = session.PhasePlanning
//		return nil
//	})
//	err = sess.Sync(ctx)   // durable from here on
//	err = store.Close(ctx)
//
// [Store.Verify] reports damage, and [Store.Open] quarantines a damaged session.
// [Store.Recover] makes a new session from what can be read and leaves the damaged one
// alone. A session that was edited outside stays and is shown; [Store.AcceptEdit] takes
// the edit into its log.
//
// # Concurrency
//
// A Store and a Session may be used from any goroutine. Three locks exclude other
// processes. The store lock (.lopen/.lock) is held for the moment in which a session is
// created, moved or named. The lease (sessions/{id}/.lock) is held by the one process that
// writes the session. The module's lock (modules/{module}/.lock) is held by the run that
// works on the module's plan. No process waits for a lease, so none waits for one while it
// holds the store lock. Checkpoints and blobs have further locks.
//
// Reading takes no lock. The session's log decides; with the readable files a reader can
// skip the records that they cover. A reader that meets a change in progress begins again.
//
// # Crash safety
//
// A session is made in a folder with a temporary name, which is renamed when the session
// is complete. So after a power cut the session is there whole or not at all. Its counter
// in ids.json is durable before that, so that no ID is given twice.
// Every commit is one write to the log and one fdatasync; see writer/journal.
package lifecycle

import (
	"errors"
	"fmt"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// The types of errors are repeated here, so that a user of this package need not import
// the layers below.
type (
	// Error is the error of a failed storage call: the operation, the path, the class,
	// the outcome and the OS error.
	Error = writer.Error
	// BusyError is returned when a session is held; it names the holder.
	BusyError = writer.BusyError
	// Owner is the record of the holder of a lease.
	Owner = writer.Owner
	// PausedError is returned by Save from a failed commit until Unpause.
	PausedError = actors.PausedError
	// Class is the kind of a storage error.
	Class = writer.Class
)

// The classes that a caller decides by.
const (
	ClassNoSpace   = writer.ClassNoSpace
	ClassDenied    = writer.ClassDenied
	ClassDevice    = writer.ClassDevice
	ClassRemoved   = writer.ClassRemoved
	ClassBusy      = writer.ClassBusy
	ClassTransient = writer.ClassTransient
	ClassFenced    = writer.ClassFenced
)

var (
	// ErrNoStore is returned by Open when the project has no .lopen folder.
	ErrNoStore = errors.New("no .lopen folder here")
	// ErrNotFound is returned when there is no session, record, message or checkpoint
	// with the given ID or name.
	ErrNotFound = folder.ErrNotFound
	// ErrNotComplete is returned by DeleteCompleted for a session that is not complete.
	ErrNotComplete = errors.New("it is not complete")
	// ErrAmbiguous is returned by Resolve when a prefix fits several sessions.
	ErrAmbiguous = errors.New("fits more than one session")
	// ErrCorrupt is returned when a session's files are damaged.
	ErrCorrupt = envelope.ErrCorrupt
	// ErrEdited is returned when a session's files were edited outside: they are well-formed
	// and not what was written.
	ErrEdited = session.ErrEdited
	// ErrFutureVersion is returned when a newer lopen wrote the files.
	ErrFutureVersion = envelope.ErrFutureVersion
	// ErrBusy is returned when another process holds the session.
	ErrBusy = writer.ErrBusy
	// ErrInvalid is returned for a bad name, ID or layout, before anything is written.
	ErrInvalid = writer.ErrInvalid
	// ErrClosed is returned by calls on a session whose Close has begun.
	ErrClosed = actors.ErrClosed
	// ErrBacklogFull is returned by Append when too much waits for the disk. Nothing was
	// accepted.
	ErrBacklogFull = actors.ErrBacklogFull
)

// LogCause adds err to a line of a log, in the field "error". For a storage error it adds
// the fields "path", "class" and "os_error" too.
func LogCause(e *zerolog.Event, err error) *zerolog.Event { return actors.Cause(e, err) }

// ClassOf returns the class of a storage error.
func ClassOf(err error) Class { return writer.ClassOf(err) }

// A WorktreeError is returned when the linked work tree of a session cannot be used.
type WorktreeError struct {
	Folder string // absolute path
	session.Worktree
	Err error
}

func (e *WorktreeError) Error() string {
	return fmt.Sprintf("open work tree %s: %v", e.Folder, e.Err)
}

func (e *WorktreeError) Unwrap() error { return e.Err }
