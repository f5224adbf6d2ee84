package actors

import (
	"errors"
	"time"

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

// logClosed logs the end of the session, at warn when closing it failed.
func (a *Actor) logClosed() {
	e := a.log.Info()
	if a.closeErr != nil {
		e = Cause(a.log.Warn(), a.closeErr)
	}
	e.Dur("duration_ms", time.Since(a.begun)).Msg("session closed")
}

func (a *Actor) logCommit(res Committed, begun time.Time) {
	e := a.log.Debug()
	if !e.Enabled() {
		return
	}
	triggers := zerolog.Dict()
	for t, n := range a.pending.Triggers {
		if n > 0 {
			triggers.Uint64(session.Trigger(t).String(), n)
		}
	}
	first := a.pending.First
	if first.IsZero() {
		first = begun
	}
	now := time.Now()
	e.Uint64("seq", res.Seq).
		Uint64("saves", a.pending.Saves()).
		Dict("triggers", triggers).
		Int("entries", len(a.pending.Entries)).
		Int("bytes", res.Bytes).
		Int64("commit_us", now.Sub(begun).Microseconds()).
		Int64("durable_us", now.Sub(first).Microseconds()).
		Msg("commit")
}
