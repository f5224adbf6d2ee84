package blob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/lopen-dev/lopen/writer"
)

const (
	pollDelay = 5 * time.Millisecond // between two looks at the lock
	attempts  = 4                    // at a lock file that is replaced meanwhile
)

// A Hold keeps sweeps away. It is taken before the first look at a blob and
// released when the manifest that names what was stored is durable.
type Hold struct {
	s *Store

	mu sync.RWMutex // shared by each Put, so that the lock is not let go under it
	fl writer.Flock // Guarded by mu; nil once released.
}

// Hold takes the shared lock. There may be any number of holds; a sweep is
// waited for until ctx ends, or ten seconds is over, which is an error of class
// busy that wraps the cause and a [*writer.BusyError] with who sweeps. Anything may call
// it. A Hold that is never released keeps all sweeps away
// until its process ends.
func (s *Store) Hold(ctx context.Context) (*Hold, error) {
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
			return &Hold{s: s, fl: fl}, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, s.busy("hold blobs", fmt.Errorf("a sweep is going on: %w: %w", context.Cause(ctx), &writer.BusyError{Path: s.path(lockName), Owner: writer.LastOwner(s.dir, lockName)}))
		}
	}
}

// Release lets sweeps in again, after the Puts that are in progress. It is
// idempotent. Its error has no bearing on what was stored.
func (h *Hold) Release() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fl == nil {
		return nil
	}
	fl := h.fl
	h.fl = nil
	return h.s.unlock("release blobs", fl)
}

// busy is the error of a lock that somebody else has.
func (s *Store) busy(op string, err error) error {
	return &writer.Error{Op: op, Path: s.path(lockName), Class: writer.ClassBusy, Err: err}
}

func (s *Store) unlock(op string, fl writer.Flock) error {
	if err := fl.Close(); err != nil {
		return writer.NewError(op, s.path(lockName), writer.NotCommitted, err)
	}
	return nil
}

// tryLock takes the lock in the way that try says; nil when somebody has it in a
// way that forbids it. writer.TryLock is not for this: it takes a shared lock
// for a passing look, and waits for its end.
func (s *Store) tryLock(op string, try func(writer.Flock) (bool, error)) (writer.Flock, error) {
	for range attempts {
		// flock opens by path. The file is made here, where nothing leads outside
		// and no symlink is followed; that both are the same one is looked at below.
		f, _, err := writer.OpenRegular(s.dir, op, lockName, os.O_CREATE|os.O_RDWR)
		if err != nil {
			return nil, err
		}
		if err := f.Close(); err != nil {
			return nil, writer.NewError(op, s.path(lockName), writer.NotCommitted, err)
		}
		fl := s.dir.Flock(lockName, os.O_RDWR)
		var ok bool
		err = writer.Retry(func() (err error) {
			ok, err = try(fl)
			return err
		})
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since
		}
		if err != nil {
			return nil, writer.NewError(op, s.path(lockName), writer.NotCommitted, err)
		}
		if !ok {
			return nil, nil
		}
		held, err := fl.Stat()
		if err == nil {
			var there fs.FileInfo
			if there, err = s.dir.Lstat(lockName); err == nil && writer.SameFile(held, there) {
				return fl, nil
			}
		}
		_ = fl.Close() // replaced between the open and the flock, or unknown
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, writer.NewError(op, s.path(lockName), writer.NotCommitted, err)
		}
	}
	return nil, &writer.Error{Op: op, Path: s.path(lockName), Class: writer.ClassFenced, Err: errors.New("the lock file or its folder is replaced again and again")}
}
