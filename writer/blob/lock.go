package blob

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lopen-dev/lopen/writer"
)

// pollDelay is the pause between two attempts at the lock.
const pollDelay = 5 * time.Millisecond

// A Hold excludes sweeps. Take it before the first look at a blob, and release it when
// the manifest that names the stored blobs is durable.
type Hold struct {
	Reading

	mu sync.RWMutex // read-locked by each Put and Commit, so that Release waits for them
	fl writer.Flock // Guarded by mu; nil once released.
}

// Hold takes the shared lock. There may be any number of Holds. Hold waits for a sweep
// until ctx ends, and at most ten seconds; then it returns an error of class busy that
// wraps the cause and a [*writer.BusyError] with the owner of the sweep. A Hold that is
// never released excludes all sweeps until its process ends.
func (s *Store) Hold(ctx context.Context) (*Hold, error) {
	if ctx == nil {
		return nil, &writer.Error{Op: "hold blobs", Path: s.path(lockName), Class: writer.ClassInvalid, Err: errors.New("the context is nil")}
	}
	ctx, cancel := writer.WithPatience(ctx)
	defer cancel()
	tick := time.NewTicker(pollDelay)
	defer tick.Stop()
	for {
		fl, err := s.tryLock("hold blobs", writer.Flock.TryRLock)
		if err != nil {
			return nil, err
		}
		if fl != nil {
			return &Hold{Reading: Reading{s: s}, fl: fl}, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, s.busy("hold blobs", fmt.Errorf("a sweep is going on: %w: %w", context.Cause(ctx), &writer.BusyError{Path: s.path(lockName), Owner: writer.LastOwner(s.dir, lockName)}))
		}
	}
}

// Release waits for the Puts in progress and releases the lock. It is idempotent. What
// was stored stays stored, even after an error.
func (h *Hold) Release() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fl == nil {
		return nil
	}
	fl := h.fl
	h.fl = nil
	h.Reading.Release()
	return h.s.unlock("release blobs", fl)
}

// busy returns the error for a lock that is taken.
func (s *Store) busy(op string, err error) error {
	return &writer.Error{Op: op, Path: s.path(lockName), Class: writer.ClassBusy, Err: err}
}

func (s *Store) unlock(op string, fl writer.Flock) error {
	if err := fl.Close(); err != nil {
		return writer.NewError(op, s.path(lockName), writer.NotCommitted, err)
	}
	return nil
}

// tryLock takes the lock with try, shared or exclusive. It returns nil if the lock is taken
// in a way that excludes this. writer.TryLock cannot be used: it would wait for the holder
// of a shared lock, which it takes for a caller of writer.Holder.
func (s *Store) tryLock(op string, try func(writer.Flock) (bool, error)) (writer.Flock, error) {
	fl, _, err := writer.Flocked(s.dir, op, lockName, func(fl writer.Flock) (ok bool, err error) {
		err = writer.Retry(func() (err error) {
			ok, err = try(fl)
			return err
		})
		return ok, err
	})
	return fl, err
}
