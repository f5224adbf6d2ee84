package noop

import (
	"sync"

	"github.com/lopen-dev/lopen/actors"
)

// said is the Committer of a session without files. It keeps the messages.
type said struct {
	mu     sync.Mutex
	seq    uint64
	bodies [][]byte // each message as JSON, in order. Guarded by mu.
}

func (s *said) Commit(b actors.Batch) (actors.Committed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range b.Entries {
		if e.Message != nil {
			s.bodies = append(s.bodies, e.Body)
		}
	}
	s.seq++
	return actors.Committed{Seq: s.seq}, nil
}

func (s *said) all() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies[:len(s.bodies):len(s.bodies)]
}

func (s *said) Publication(bool) func() error { return nil }
func (s *said) Published(error)               {}
func (s *said) Check() error                  { return nil }
func (s *said) Recover() error                { return nil }
func (s *said) Close() error                  { return nil }
