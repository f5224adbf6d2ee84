package fleet

import (
	"time"
)

// Hasten makes the times of a Fleet that was not used yet short enough for a test.
func (f *Fleet) Hasten(lease, call time.Duration) {
	f.times = times{lease: lease, renew: lease / 6, call: call, retry: 20 * time.Millisecond, longest: 100 * time.Millisecond}
}

// SendsTasks has a Fleet send sessions of more tasks.
func (f *Fleet) SendsTasks(n int) { f.tasks = n }

// Restored returns what a Session said of records that the database had lost.
func (s *Session) Restored() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.restored
}

// Renewing returns of how many sessions a Fleet renews the lease.
func (f *Fleet) Renewing() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.held)
}

// Holder returns what the leases of a Fleet are held by.
func (f *Fleet) Holder() string { return holderOf(f.secret) }

// Password returns the one that the next connection uses.
func (f *Fleet) Password() string { return f.pool.Config().ConnConfig.Password }
