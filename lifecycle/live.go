package lifecycle

import (
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A Live is what an open session does without looking at a file of its own: it
// changes the State and appends, through its writer goroutine. A [Session] is one
// with files; lifecycle/noop has one without.
type Live struct {
	*actors.Actor
	id     session.ID
	now    func() time.Time
	log    zerolog.Logger
	redact *redact.Redactor
	hidden atomic.Int64
}

// NewLive makes the session of an actor that has been started. Of opts the clock and
// the log count; a nil Redactor hides nothing.
func NewLive(a *actors.Actor, opts Options, r *redact.Redactor) *Live {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Live{Actor: a, id: a.State().ID(), now: opts.Now, log: actors.SessionLog(opts.Logger, a.State().ID()), redact: r}
}

// ID is the session's identity.
func (s *Live) ID() session.ID { return s.id }

// Logger is the session's log: each line has the session's ID. It belongs to the
// session; a caller that wants more fields derives one of its own.
func (s *Live) Logger() *zerolog.Logger { return &s.log }
