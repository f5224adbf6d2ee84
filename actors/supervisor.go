package actors

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A Supervisor owns the actors of one process. The zero value is ready to use.
// Any goroutine may call its methods.
type Supervisor struct {
	mu     sync.Mutex
	live   map[*Actor]struct{} // Guarded by mu.
	closed bool                // Guarded by mu.
}

// Start starts an actor and holds it until it has ended. After Close it returns
// ErrClosed and the caller still owns c.
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
			delete(s.live, a) // here, and not in a goroutine per actor that waits for its end
		default:
		}
	}
	a := Start(initial, c, opts)
	s.live[a] = struct{}{}
	return a, nil
}

// Close closes all actors concurrently, so that one stuck disk delays no other
// session, and returns their errors joined. It is idempotent.
func (s *Supervisor) Close(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("close sessions: %w", errContext)
	}
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
			return nil // errgroup keeps only the first error; errs has them all
		})
	}
	_ = g.Wait()
	return errors.Join(errs...)
}

// Ended reports whether every actor has ended: no writer goroutine runs any more.
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
