package actors

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A Supervisor owns the actors of one process. Its zero value is ready. All
// its methods may be called from any goroutine.
type Supervisor struct {
	mu     sync.Mutex
	live   map[*Actor]struct{} // Guarded by mu.
	closed bool                // Guarded by mu.
}

// Start starts an actor and keeps it until it has ended. After Close it returns
// ErrClosed and leaves c to the caller.
func (s *Supervisor) Start(initial *session.State, c Committer, opts Options) (*Actor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if s.live == nil {
		s.live = make(map[*Actor]struct{})
	}
	for a := range s.live {
		select {
		case <-a.done:
			delete(s.live, a) // ended by its own Close; forgotten here instead of in a goroutine that waits for it
		default:
		}
	}
	a := Start(initial, c, opts)
	s.live[a] = struct{}{}
	return a, nil
}

// Close closes all actors side by side, so that one stuck disk delays no other
// session, and returns all their errors joined. It is idempotent.
func (s *Supervisor) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	live := make([]*Actor, 0, len(s.live))
	for a := range s.live {
		live = append(live, a)
	}
	s.mu.Unlock()

	errs := make([]error, len(live))
	var g errgroup.Group
	for i, a := range live {
		g.Go(func() error {
			errs[i] = a.Close(ctx)
			return nil // every session's error counts, not only the first
		})
	}
	_ = g.Wait()
	return errors.Join(errs...)
}

// Ended says whether every actor has ended: none is inside a call any more.
func (s *Supervisor) Ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a := range s.live {
		select {
		case <-a.done:
		default:
			return false
		}
	}
	return true
}
