package actors

import (
	"errors"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// SessionLog returns a log whose lines have the ID of a session as "session". Every
// line about a session is written to one, so that a log of many sessions can be sorted
// by it.
func SessionLog(l zerolog.Logger, id session.ID) zerolog.Logger {
	return l.With().Stringer("session", id).Logger()
}

// Cause adds an error to a line: as "error", and of one that says more of itself, as a
// storage error does, those fields as well: its path, its class and the OS error.
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
