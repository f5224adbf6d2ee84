package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

const (
	// wakePatience is how long RequestWake gives the holder to answer.
	wakePatience = 3 * time.Second
	wakePoll     = 20 * time.Millisecond
)

// WakeRequested says whether another process asked this session to end its wait. It is
// true once for each request, and asking is the answer to it: call it only while waiting.
func (s *Session) WakeRequested() bool { return s.store.root().Remove(s.path(wakeFile)) == nil }

// RequestWake asks the holder of a session to end its wait. The boolean says that it does;
// it is false where nobody holds the session, or its holder does not wait, which takes three
// seconds to find out unless a task is in progress.
func (s *Store) RequestWake(ctx context.Context, id session.ID) (woken bool, err error) {
	owner, err := s.Holder(id)
	if err != nil || owner == nil {
		return false, err
	}
	st, _, err := s.Read(id)
	if err != nil || st.ActiveTask() != "" {
		return false, err
	}
	name, err := s.request(id, wakeFile)
	if err != nil {
		return false, fmt.Errorf("ask session %s to end its wait: %w", id, err)
	}
	ctx, cancel := context.WithTimeout(ctx, wakePatience)
	defer cancel()
	tick := time.NewTicker(wakePoll)
	defer tick.Stop()
	for {
		if _, err := s.root().Lstat(name); errors.Is(err, fs.ErrNotExist) {
			s.Logger(id).Info().Msg("wait ended on request")
			return true, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done(): // one that cannot be taken back was met at the last moment
			return errors.Is(s.root().Remove(name), fs.ErrNotExist), nil
		}
	}
}
