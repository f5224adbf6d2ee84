package noop

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/output"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// A Session is there until it is closed.
type Session struct {
	*lifecycle.Live
	project writer.FS // Immutable.
	said    *said

	mu   sync.Mutex
	seen *files.Snapshot // Guarded by mu: what Look last saw.
}

// Messages are those that were appended before the last Sync, at least, redacted as
// they would be in a file.
func (s *Session) Messages() iter.Seq2[session.Message, error] {
	return func(yield func(session.Message, error) bool) {
		for _, body := range s.said.all() {
			if !yield(session.DecodeMessage(body)) {
				return
			}
		}
	}
}

// Checkpoint keeps nothing and says so.
func (s *Session) Checkpoint(context.Context, checkpoint.Reason, string) (*checkpoint.Entry, []files.Change, error) {
	return nil, nil, fmt.Errorf("checkpoint of session %s: nothing is kept here: %w", s.ID(), errors.ErrUnsupported)
}

// Patch finds no checkpoint to begin at.
func (s *Session) Patch(_ context.Context, task string, _ int) ([]byte, error) {
	return nil, fmt.Errorf("patch of %s: nothing is kept here: %w", task, errors.ErrUnsupported)
}

// CheckpointsOver is 0: nothing is kept.
func (s *Session) CheckpointsOver() int64 { return 0 }

// Rewind finds no checkpoint to go back to.
func (s *Session) Rewind(_ context.Context, to checkpoint.ID, _ lifecycle.RewindOptions) (lifecycle.Rewound, error) {
	return lifecycle.Rewound{}, missing("rewind to checkpoint %s", to.Short())
}

// SetBack finds no checkpoint to go back to.
func (s *Session) SetBack(context.Context, string) (lifecycle.Rewound, string, error) {
	return lifecycle.Rewound{}, "no checkpoints are kept", nil
}

// Look says which of the project's files changed since the last Look of the session.
func (s *Session) Look(ctx context.Context) ([]files.Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := files.Take(ctx, s.project, s.seen, files.Options{})
	if err != nil {
		return nil, fmt.Errorf("look at the files of session %s: %w", s.ID(), err)
	}
	var changes []files.Change
	if s.seen != nil {
		changes = files.Compare(s.seen, now)
	}
	s.seen = now
	return changes, nil
}

// Past is empty: there is no earlier holder.
func (s *Session) Past(context.Context) (*lifecycle.Past, error) { return &lifecycle.Past{}, nil }

// Release drops nothing: there is no file to read it from again.
func (s *Session) Release() error { return nil }

// Incarnation is none: there is no folder.
func (s *Session) Incarnation() string { return "" }

// PauseRequested is false: no other process can find the session.
func (s *Session) PauseRequested() bool { return false }

// HoldChild returns nil: no later holder looks for the command.
func (s *Session) HoldChild() (*lifecycle.Child, error) { return nil, nil }

// ChildHeld is false: there is no earlier command.
func (s *Session) ChildHeld() (bool, error) { return false, nil }

// WakeRequested is false: no other process can find the session.
func (s *Session) WakeRequested() bool { return false }

// CommandEnded is nil: there is no earlier holder.
func (s *Session) CommandEnded() (*lifecycle.Ended, error) { return nil, nil }

// Output is nil: nothing is kept.
func (s *Session) Output(int, output.Attempt) (*output.Writer, error) { return nil, nil }
