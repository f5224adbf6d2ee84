package rewind

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/plain"
)

// maxNamed bounds the paths that an error names.
const maxNamed = 5

// A TakenBackError is returned for a rewind that met an error after it had changed files, and
// whose changes were taken back. It is [checkpoint.ErrUnchanged] if all of them were.
type TakenBackError struct {
	Cause error                 // nil if the process that met the error was killed
	Kept  []checkpoint.Retained // paths that are not what they were before the rewind
}

func (e *TakenBackError) Error() string {
	text := "the rewind was taken back"
	if e.Cause != nil {
		text = fmt.Sprintf("%v; what the rewind had changed was taken back", e.Cause)
	}
	if len(e.Kept) == 0 {
		return text
	}
	var all []string
	for _, k := range e.Kept {
		all = append(all, fmt.Sprintf("%s (%s)", k.Path, k.Why))
	}
	return text + ", except for " + named(all)
}

func (e *TakenBackError) Unwrap() error { return e.Cause }

// Is reports whether the files are as they were before the rewind.
func (e *TakenBackError) Is(target error) bool {
	return target == checkpoint.ErrUnchanged && len(e.Kept) == 0
}

// errBack is an error after the decision to take a rewind back.
type errBack struct{ error }

func (e errBack) Unwrap() error { return e.error }

// takesBack reports whether a rewind is taken back after an error of Apply. One that failed before
// it changed anything needs that only if an earlier holder had changed something, and then only if
// the system refuses the rest: any other cause may be gone when it is finished. With force the
// rewind goes on as soon as it can.
func (p *Planner) takesBack(r *session.Rewinding, err error, again bool) bool {
	if err == nil || r.Force || p.Permitted {
		return false
	}
	return !errors.Is(err, checkpoint.ErrUnchanged) || again && checkpoint.Refused(err)
}

// decideBack records the decision to take a rewind back, and does it.
func (p *Planner) decideBack(ctx context.Context, s Session, r *session.Rewinding, plan *checkpoint.Plan, cause error) (Result, error) {
	ctx = context.WithoutCancel(ctx) // a rewind that has begun comes to an end
	cause = plainly(cause)
	back := *r
	back.Back = true
	if err := s.Back(ctx, &back); err != nil {
		return Result{}, errors.Join(cause, err)
	}
	return p.takeBack(ctx, s, &back, plan, cause)
}

// takeBack makes the files what they were before a rewind, and records that it is given up. plan
// is that of the rewind; nil if it changes no files.
func (p *Planner) takeBack(ctx context.Context, s Session, r *session.Rewinding, plan *checkpoint.Plan, cause error) (Result, error) {
	taken := &TakenBackError{Cause: cause}
	if plan != nil {
		back := plan.Back()
		back.Permitted = r.Force || p.Permitted
		applied, err := p.Chain.Apply(ctx, back)
		if err != nil {
			err = fmt.Errorf("take back the rewind: %w", plainly(err))
			if changed := p.Chain.Stand(ctx, plan).Changed; len(changed) > 0 {
				err = fmt.Errorf("%w; still changed: %s", err, named(changed))
			}
			if cause != nil {
				err = fmt.Errorf("%w; %w", cause, err)
			}
			return Result{}, errBack{err}
		}
		taken.Kept = applied.Retained
	}
	if err := s.GiveUp(ctx, r, p.Mark.Undo, nil); err != nil {
		return Result{}, errBack{err}
	}
	return Result{}, taken
}

// plainly returns an error of Apply without what it says of the tree as a whole.
func plainly(err error) error {
	var e *writer.Error
	if !errors.As(err, &e) {
		return errors.New(err.Error())
	}
	plain := *e
	plain.Outcome = writer.NotCommitted
	return &plain
}

// named lists paths, the first ones.
func named(all []string) string {
	if n := len(all) - maxNamed; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:maxNamed], ", "), n)
	}
	return strings.Join(all, ", ")
}

// Unfinished returns what is wrong with a session whose last holder was killed in a rewind.
func Unfinished(r *session.Rewinding) string {
	what := "a rewind to checkpoint " + short(r.To)
	if r.Task != "" {
		what = "setting back the files of " + r.Task
	}
	if r.Back {
		return what + " met an error, and taking it back was cut off"
	}
	return what + " was cut off"
}

// HowToFinish returns the commands for a rewind that has begun and is not finished.
func HowToFinish(id session.ID, r *session.Rewinding) string {
	does := "finishes it"
	if r.Back {
		does = "takes it back"
	}
	return fmt.Sprintf("whatever opens the session next %s: lopen checkpoint create --session %s; to leave what may not be changed as it is: lopen checkpoint rewind %s --session %[2]s --force --yes; to leave all files as they are now: lopen checkpoint rewind --give-up --session %[2]s",
		does, id, plain.Quote(short(r.To)))
}

// short returns the ID of a checkpoint as messages show it.
func short(id string) string { return id[:min(len(id), 8)] }

// A GivenUp is a rewind that was given up while it was unfinished.
type GivenUp struct {
	session.Rewinding
	checkpoint.Stand
	Unknown error // why it is not known which files are changed; else nil
}

// GiveUp ends a rewind that is not finished and changes no file. It needs neither files nor
// checkpoints. Undo then returns to what the files were before the rewind, if it has changed any.
func (p *Planner) GiveUp(ctx context.Context, s Session, r *session.Rewinding) (GivenUp, error) {
	up, ended, undo := GivenUp{Rewinding: *r}, *r, p.Mark.Undo
	if r.Files {
		var target, before *checkpoint.Entry
		if target, before, up.Stand, up.Unknown = p.stand(ctx, r); len(up.Changed) > 0 && r.Task == "" {
			// The checkpoint says that the rewind made these changes, so that undo takes them back.
			if after, err := s.After(ctx, r, target, before); err == nil {
				ended.After = after.ID.String()
			}
		}
	}
	if up.Unknown != nil || len(up.Changed)+len(up.Other) > 0 {
		undo = r.Before
	}
	return up, s.GiveUp(ctx, &ended, undo, nil)
}

// stand returns how far an unfinished rewind has come, with its target and the checkpoint before it.
func (p *Planner) stand(ctx context.Context, r *session.Rewinding) (target, before *checkpoint.Entry, is checkpoint.Stand, err error) {
	if p.Chain == nil {
		return nil, nil, is, fmt.Errorf("the checkpoints cannot be opened: %w", checkpoint.ErrNotFound)
	}
	files := *r
	files.State = false
	plan, done, err := p.begun(ctx, &files)
	if err != nil {
		return nil, nil, is, err
	}
	return done.To, done.Before, p.Chain.Stand(ctx, plan), nil
}
