package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
)

// Checkpoint stores the project's files while there is no session, as [Session.Checkpoint] does for one: durably,
// with the reason [checkpoint.Manual]. Its entry names no session and no task, so that it is on no session's line:
// any session may go back to its files, and goes on without it.
func (s *Store) Checkpoint(ctx context.Context, pin bool) (e *checkpoint.Entry, err error) {
	cps, err := s.makeCheckpoints(nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cps.Close()) }()
	meta := checkpoint.Meta{At: s.opts.Now().UTC(), Reason: checkpoint.Manual}
	if s.opts.Git != nil {
		meta.Git = s.opts.Git(s.project.Name())
	}
	e, err = cps.Create(ctx, meta)
	if err == nil && pin {
		err = cps.Pin(ctx, e.ID, true)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint of no session: %w", err)
	}
	if err := cps.Remember(); err != nil {
		s.opts.Logger.Warn().Err(err).Msg("the next checkpoint reads every file again")
	}
	s.opts.Logger.Info().Uint64("number", e.Number).Stringer("checkpoint", e.ID).Msg("checkpoint made without a session")
	return e, nil
}
