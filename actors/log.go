package actors

import (
	"errors"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// SessionLog returns a log whose lines have the session's ID in the field "session".
// Every line about a session is written through one, so that a log of many sessions can
// be filtered by it.
func SessionLog(l zerolog.Logger, id session.ID) zerolog.Logger {
	return l.With().Stringer("session", id).Logger()
}

// Cause adds err to a line, in the field "error". An error with a method Details adds
// those fields too; a storage error has its path, its class and the OS error.
func Cause(e *zerolog.Event, err error) *zerolog.Event {
	var detailed interface {
		error
		Details() map[string]any
	}
	if e.Enabled() && errors.As(err, &detailed) {
		e.Fields(detailed.Details())
	}
	return e.Err(err)
}
