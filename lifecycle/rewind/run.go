package rewind

import (
	"context"
	"errors"
	"fmt"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// Session is what a rewind does to the session that it is of. Its holder alone has one.
type Session interface {
	// Before makes the checkpoint that undo goes back to. The session's line does not
	// continue from it.
	Before(ctx context.Context, r *session.Rewinding, target *checkpoint.Entry) (*checkpoint.Entry, error)
	// Begin puts the begin on record. It is durable on nil.
	Begin(ctx context.Context, r *session.Rewinding) error
	// After makes the checkpoint of what the rewind made, from which the session's line
	// continues; its parent is before.
	After(ctx context.Context, r *session.Rewinding, target, before *checkpoint.Entry) (*checkpoint.Entry, error)
	// End puts the end on record together with a State, nil for the one there is. It is
	// durable on nil, and the readable files show it.
	End(ctx context.Context, r *session.Rewinding, st *session.State, changes []checkpoint.Change) error
	// GiveUp puts on record that the rewind changed nothing: undo goes back to where it
	// went before. It is durable on nil.
	GiveUp(ctx context.Context, r *session.Rewinding, undo string) error
}

// Run carries out what Preview planned. After an error that wraps
// [checkpoint.ErrUnchanged] the files are as they were. After another one the rewind may
// have begun: then Finish has to be called, by the next holder where need be.
func (p *Planner) Run(ctx context.Context, s Session, r *session.Rewinding, would Result) (Result, error) {
	before, err := s.Before(ctx, r, would.To)
	if err != nil {
		return Result{}, err
	}
	if _, err := p.Chain.Find(would.To.ID); err != nil { // it was removed meanwhile
		return Result{}, fmt.Errorf("%w: %w", checkpoint.ErrUnchanged, err)
	}
	r.Before = before.ID.String()
	undo := p.Mark.Undo
	if err := s.Begin(ctx, r); err != nil {
		// The begin is accepted and may become durable later, when nobody wants it any more.
		_ = s.GiveUp(ctx, r, undo)
		return Result{}, err
	}
	done, err := p.Finish(ctx, s, r)
	switch {
	case err == nil:
		return done, nil
	case !errors.Is(err, checkpoint.ErrUnchanged):
		return done, fmt.Errorf("%w; %s", err, HowToFinish(r))
	}
	if lost := s.GiveUp(ctx, r, undo); lost != nil { // the next holder tries it again
		err = errors.Join(err, lost)
	}
	return done, err
}

// Finish does what the begin on record says and puts the end on record, with the State
// that belongs to it. It may be done again from the begin on. The error wraps
// [checkpoint.ErrNotFound] where a checkpoint that it takes is gone.
func (p *Planner) Finish(ctx context.Context, s Session, r *session.Rewinding) (Result, error) {
	target, err := p.Chain.Lookup(r.To)
	if err != nil {
		return Result{}, err
	}
	before, err := p.Chain.Lookup(r.Before)
	if err != nil {
		return Result{}, err
	}
	plan, done, err := p.plan(ctx, r, target, before, p.Chain.Tree(before.Root))
	if err != nil {
		return done, err
	}
	done.Before = before
	ended := *r
	if r.Files {
		applied, err := p.Chain.Apply(ctx, plan)
		done.Retained = append(done.Retained, applied.Retained...)
		if err != nil {
			return done, err
		}
		after, err := s.After(ctx, r, target, before)
		if err != nil {
			return done, err
		}
		ended.After = after.ID.String()
	}
	var st *session.State
	if r.State {
		if st, err = p.stateBefore(target); err == nil {
			st, err = followBoxes(p.Plans, st)
		}
		if err != nil {
			return done, err
		}
	}
	return done, s.End(ctx, &ended, st, done.Changes)
}

// HowToFinish says what to do about a rewind that has begun and cannot be ended.
func HowToFinish(r *session.Rewinding) string {
	return fmt.Sprintf("see to the path, and whatever opens the session next finishes the rewind; to leave what may not be written as it is: lopen checkpoint rewind %s --force --yes", r.To[:min(len(r.To), 8)])
}
