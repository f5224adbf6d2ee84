package lifecycle

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A Live is what an open session does without looking at a file of its own: it
// changes the State and appends, through its writer goroutine. A [Session] is one
// with files; lifecycle/noop has one without. All methods may be called from any
// goroutine.
//
// The actor is not part of what a caller sees: it takes entries as they are, and what
// has not passed Append, AppendEvent and Record is neither redacted nor checked.
type Live struct {
	actor  *actors.Actor
	id     session.ID
	now    func() time.Time
	log    zerolog.Logger
	redact *redact.Redactor
}

// NewLive makes the session of an actor that has been started. Of opts the clock, the
// log and the redaction count.
func NewLive(a *actors.Actor, opts Options) *Live {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Live{actor: a, id: a.State().ID(), now: opts.Now, log: actors.SessionLog(opts.Logger, a.State().ID()), redact: opts.Policy.redactor()}
}

// ID is the session's identity.
func (s *Live) ID() session.ID { return s.id }

// Logger is the session's log: each line has the session's ID. It belongs to the
// session; a caller that wants more fields derives one of its own.
func (s *Live) Logger() *zerolog.Logger { return &s.log }

// State returns the newest accepted State, without a lock. It may not be durable yet.
func (s *Live) State() *session.State { return s.actor.State() }

// Save accepts st, or with nil the newest State, to be committed. It never waits. nil
// means accepted, not durable: this State or a newer one is committed. While the
// session is paused the State is kept all the same and a [*PausedError] is returned.
// After Close has begun it is ErrClosed, and the State may or may not be part of the
// last commit.
func (s *Live) Save(st *session.State, t session.Trigger) error { return s.actor.Save(st, t) }

// Update changes the newest State by compare and swap, in memory; fn is called again
// when another goroutine was faster. The next Save, Sync, Flush or Close commits the
// change, or the autosave. An error of fn changes nothing and is returned as it is.
func (s *Live) Update(fn func(*session.State) (*session.State, error)) error {
	return s.actor.Update(fn)
}

// Sync returns nil when everything that was accepted before the call is durable. It
// returns the [*PausedError] while the session is paused, ErrClosed after Close, and
// ctx's error when that ends first; the commit goes on then.
func (s *Live) Sync(ctx context.Context) error { return s.actor.Sync(ctx) }

// Flush is Sync, and on nil the session's readable files show the State, durably.
func (s *Live) Flush(ctx context.Context) error { return s.actor.Flush(ctx) }

// Critical delivers one error per pause. The channel is never closed.
func (s *Live) Critical() <-chan error { return s.actor.Critical() }

// Paused returns the error of the pause that lasts, or nil.
func (s *Live) Paused() error { return s.actor.Paused() }

// Unpause tries again after the cause of a pause is gone. On nil everything that was
// accepted is durable and the readable files show it. On an error the pause stays,
// with the newer cause. On a session that is not paused it is Flush.
func (s *Live) Unpause(ctx context.Context) error { return s.actor.Unpause(ctx) }

// Close commits what was accepted, publishes it and lets go of the session. It is
// idempotent: every call waits for the same end and returns the same error. When ctx
// ends first the error says what is not durable; the writer goes on and keeps the
// session's lease until the stuck call has returned.
//
// A session that is still active is paused by it, with the reason "paused": only one
// whose process died is found active and counts as crashed. One that was found crashed
// stays so if nothing was saved since.
func (s *Live) Close(ctx context.Context) error { return s.actor.Close(ctx) }

// Done is closed when the writer goroutine has ended and the lease is free.
func (s *Live) Done() <-chan struct{} { return s.actor.Done() }

func (s *Live) redactJSON(object []byte) ([]byte, error) {
	out, _, err := s.redact.JSON(object)
	return out, err
}

// Redact is text as the session would keep it: with its credentials hidden.
func (s *Live) Redact(text string) string {
	out, _ := s.redact.String(text)
	return out
}

// RedactArgs is argv as the session would keep it: see [redact.Redactor.Args].
func (s *Live) RedactArgs(argv []string) []string {
	out, _ := s.redact.Args(argv)
	return out
}
