package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/lopen-dev/lopen/lifecycle"
)

// event is one entry of the transcript.
type event struct {
	Type      string    `json:"type"` // prompt, output or check
	At        time.Time `json:"at"`
	Task      string    `json:"task"`
	Iteration int       `json:"iteration"`
	Stream    string    `json:"stream,omitempty"` // stdout or stderr
	Text      string    `json:"text"`
}

// tell keeps an event where a transcript is wanted. When too much waits for the
// disk it waits too, which holds nothing but the command's output.
func (r *Runner) tell(ctx context.Context, e event) {
	if !r.cfg.Transcript || e.Text == "" {
		return
	}
	e.At, e.Task, e.Iteration = time.Now().UTC(), r.at.unit, r.at.iteration
	data, err := json.Marshal(e)
	if err == nil {
		err = r.sess.AppendEvent(data)
	}
	for errors.Is(err, lifecycle.ErrBacklogFull) {
		if err = r.sess.Sync(ctx); err == nil {
			err = r.sess.AppendEvent(data)
		}
	}
	var paused *lifecycle.PausedError
	if err != nil && !errors.As(err, &paused) {
		r.cfg.UI.Warn("a part of the transcript is lost: %v", err)
	}
}

const (
	// chunk is from how many bytes on output is told before its command ends.
	chunk = 64 << 10
	// maxHeld is how much is held back for the end of a private key.
	maxHeld = 1 << 20
)

// A scribe tells of what passes through it: whole lines, so that a credential is
// seen in one piece, and a private key that has begun waits for its end. Its writer
// is one goroutine.
type scribe struct {
	to   io.Writer // the terminal
	tell func(text string)
	held []byte
}

func (s *scribe) Write(p []byte) (int, error) {
	s.held = append(s.held, p...)
	if len(s.held) >= chunk {
		cut := bytes.LastIndexByte(s.held, '\n') + 1
		begin, end := bytes.LastIndex(s.held, []byte("-----BEGIN ")), bytes.LastIndex(s.held, []byte("-----END "))
		if begin > end && begin < cut {
			cut = begin
		}
		if cut == 0 && len(s.held) > maxHeld {
			cut = bytes.LastIndexAny(s.held, ",;\r") + 1 // of a long line; not between a name and its value
			if cut == 0 {
				cut = len(s.held)
			}
		}
		if cut > 0 {
			s.tell(string(s.held[:cut]))
			s.held = append(s.held[:0], s.held[cut:]...)
		}
	}
	if s.to == nil {
		return len(p), nil
	}
	return s.to.Write(p)
}

// flush tells of the rest when the command has ended.
func (s *scribe) flush() {
	s.tell(string(s.held))
	s.held = nil
}
