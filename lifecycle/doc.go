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
// A Store and a Session may be used from any goroutine. Between processes three
// locks keep order. The store lock (.lopen/.lock) is held for the moment in which a
// session is created, moved or named. The lease (sessions/{id}/.lock) is held by the one
// process that writes the session. The module's lock (modules/{module}/.lock) is held by
// the run that works on the module's plan. The store lock is never held while a lease is
// waited for: leases are only tried. Checkpoints and blobs have further locks.
//
// Reading takes no lock. The session's log decides; the readable files only spare a
// reader the records that they cover. A reader that meets the writer in the middle of
// a change begins again.
//
// # Crash safety
//
// A session is made in a folder under a temporary name and renamed into place
// when it is complete: after a power cut it is there whole or not at all. Its
// counter in ids.json is durable before that, so an ID is never given twice.
// Every commit is one write to the log and one fdatasync; see writer/journal.
package lifecycle

import (
	"errors"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// The types of the errors that storage returns, under the names that the users
// of this package need without importing the layers below.
type (
	// Error is what every failed storage call carries: what was done, on
	// which path, the class, what became of the file, and the OS error.
	Error = writer.Error
	// BusyError says who holds a session.
	BusyError = writer.BusyError
	// Owner is the record of a lease's holder.
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
	// of the ID or name asked for.
	ErrNotFound = folder.ErrNotFound
	// ErrNotComplete is returned by DeleteCompleted for a session that is not complete.
	ErrNotComplete = errors.New("it is not complete")
	// ErrAmbiguous is returned by Resolve when a prefix fits several sessions.
	ErrAmbiguous = errors.New("fits more than one session")
	// ErrCorrupt is returned when a session's files are damaged.
	ErrCorrupt = envelope.ErrCorrupt
	// ErrEdited is returned when somebody edited a session's files outside: what
	// they say keeps the rules, and is not what was written.
	ErrEdited = session.ErrEdited
	// ErrFutureVersion is returned when a newer lopen wrote the files.
	ErrFutureVersion = envelope.ErrFutureVersion
	// ErrBusy is returned when another process holds the session.
	ErrBusy = writer.ErrBusy
	// ErrInvalid is returned for a bad name, ID or layout, before anything is written.
	ErrInvalid = writer.ErrInvalid
	// ErrClosed is returned by calls on a session whose Close has begun.
	ErrClosed = actors.ErrClosed
	// ErrBacklogFull is returned by Append when too much waits for the disk: nothing
	// was taken.
	ErrBacklogFull = actors.ErrBacklogFull
)

// LogCause adds an error to a line of a log: as "error", and of a storage error its
// "path", its "class" and the "os_error" as well.
func LogCause(e *zerolog.Event, err error) *zerolog.Event { return actors.Cause(e, err) }

// ClassOf says which kind of storage error err is.
func ClassOf(err error) Class { return writer.ClassOf(err) }
