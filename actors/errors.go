package actors

import (
	"errors"
	"fmt"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// ErrClosed is returned by calls on an actor whose Close has begun.
var ErrClosed = errors.New("session is closed")

// ErrBacklogFull is returned by Append when the entries would need more memory than
// Options.Backlog allows. None was accepted; when Sync has returned nil there is room.
var ErrBacklogFull = errors.New("too much waits for the disk")

// A PausedError is what Save, Append, Sync and Flush return, and what Critical
// delivers, from a failed commit or publication until Unpause succeeds. Close
// returns it too, or in a [NotDurableError], when its last try fails. It wraps
// the cause.
type PausedError struct {
	Session session.ID
	Cause   error
	// Durable says that everything accepted before the pause is durable: the
	// commit took the last reserve of the disk, or only the readable files could
	// not be written.
	Durable bool
}

func (e *PausedError) Error() string {
	durable := ""
	if e.Durable {
		durable = " (what was saved before is durable)"
	}
	return fmt.Sprintf("save session %s: paused%s: %v", e.Session, durable, e.Cause)
}

func (e *PausedError) Unwrap() error { return e.Cause }

// A NotDurableError is what Close returns when its context ended, or the last
// commit failed, while the newest accepted State was not durable.
type NotDurableError struct {
	Session session.ID
	Saves   uint64 // calls of Save that no commit covers; 0 when a stuck commit hides the number
	Entries int    // appended entries that no commit covers; 0 when a stuck commit hides the number
	Cause   error
}

func (e *NotDurableError) Error() string {
	if e.Saves == 0 && e.Entries == 0 {
		return fmt.Sprintf("close session %s: the newest state is not durable: %v", e.Session, e.Cause)
	}
	if e.Entries > 0 {
		return fmt.Sprintf("close session %s: the newest state is not durable (%d saves, %d entries): %v", e.Session, e.Saves, e.Entries, e.Cause)
	}
	return fmt.Sprintf("close session %s: the newest state is not durable (%d saves): %v", e.Session, e.Saves, e.Cause)
}

func (e *NotDurableError) Unwrap() error { return e.Cause }

// errContext is the error of a call without a context.
var errContext = errors.New("the context is nil")
