package rewind

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer"
)

// Session is how a rewind changes its session. Only the holder of the session has one.
type Session interface {
	// Before makes the checkpoint that undo returns to. The session's line does not continue
	// from it.
	Before(ctx context.Context, r *session.Rewinding, target *checkpoint.Entry) (*checkpoint.Entry, error)
	// Begin records the begin. When it returns nil the record is durable.
	Begin(ctx context.Context, r *session.Rewinding) error
	// Back records that a begun rewind is taken back. When it returns nil the record is durable.
	Back(ctx context.Context, r *session.Rewinding) error
	// After makes the checkpoint after the rewind, from which the session's line continues.
	// Its parent is before.
	After(ctx context.Context, r *session.Rewinding, target, before *checkpoint.Entry) (*checkpoint.Entry, error)
	// End records the end together with a State; nil leaves the State as it is. kept are paths of
	// the plan that were left as they are. When End returns nil the record is durable, and the
	// readable files show the State.
	End(ctx context.Context, r *session.Rewinding, st *session.State, changes []checkpoint.Change, kept []checkpoint.Retained) error
	// GiveUp records that the rewind changed nothing and what it kept, and that undo returns to
	// the checkpoint undo, or to none if undo is "". When it returns nil the record is durable.
	GiveUp(ctx context.Context, r *session.Rewinding, undo string, kept []checkpoint.Retained) error
}

// Run executes what Preview planned. After an error that wraps [checkpoint.ErrUnchanged] the
// files are unchanged. After a [*TakenBackError] they are but for what it names. After any other
// error the rewind may have begun; then this or the next holder has to call Finish.
func (p *Planner) Run(ctx context.Context, s Session, r *session.Rewinding, would Result) (Result, error) {
	before, err := s.Before(ctx, r, would.To)
	if err != nil {
		return Result{}, err
	}
	if _, err := p.find(would.To.ID.String(), false); err != nil { // the checkpoint was removed meanwhile
		return Result{}, fmt.Errorf("%w: %w", checkpoint.ErrUnchanged, err)
	}
	r.Before = before.ID.String()
	undo := p.Mark.Undo
	if err := s.Begin(ctx, r); err != nil {
		// The begin was accepted and may still become durable, so it has to be given up.
		_ = s.GiveUp(ctx, r, undo, nil)
		return Result{}, err
	}
	done, err := p.finish(ctx, s, r, false)
	var taken *TakenBackError
	var back errBack
	switch {
	case err == nil, errors.As(err, &taken):
		return done, err
	case errors.As(err, &back):
		return done, fmt.Errorf("%w; %s", err, HowToFinish(p.ID, &session.Rewinding{To: r.To, Back: true}))
	case !errors.Is(err, checkpoint.ErrUnchanged):
		return done, fmt.Errorf("%w; %s", err, HowToFinish(p.ID, r))
	}
	err = p.advised(r, err)
	if lost := s.GiveUp(ctx, r, undo, nil); lost != nil { // the next holder will finish the rewind
		err = errors.Join(err, lost)
	}
	return done, err
}

// advised adds to an error that a path may not be changed what one can do.
func (p *Planner) advised(r *session.Rewinding, err error) error {
	if err == nil || p.tolerates(r) || writer.ClassOf(err) != writer.ClassDenied {
		return err
	}
	return fmt.Errorf("%w; --force leaves what may not be changed as it is and does the rest", err)
}

// Finish executes the rewind of a recorded begin, and records the end with the State. If nothing
// has changed, because all paths were changed meanwhile or may not be written, it records that the
// rewind is given up, and Result.Before is nil. It may be called again after an error or a crash.
// The error wraps [checkpoint.ErrNotFound] if a checkpoint that it needs is gone, and is a
// [*TakenBackError] if the rewind was taken back.
func (p *Planner) Finish(ctx context.Context, s Session, r *session.Rewinding) (Result, error) {
	return p.finish(ctx, s, r, true)
}

// finish is Finish. again says that the rewind was interrupted, and may have changed files.
func (p *Planner) finish(ctx context.Context, s Session, r *session.Rewinding, again bool) (Result, error) {
	plan, done, err := p.begun(ctx, r)
	if err != nil {
		return done, err
	}
	target, before := done.To, done.Before
	if r.Back {
		return p.takeBack(ctx, s, r, plan, nil)
	}
	ended, kept := *r, []checkpoint.Retained(nil)
	if r.Files {
		kept, err = p.apply(ctx, r, plan, &done)
		if p.takesBack(r, err, again) {
			return p.decideBack(ctx, s, r, plan, err)
		}
		if err != nil {
			return done, err
		}
		if done.Nothing() { // undo must not return to a rewind without a change
			done.Before = nil
			return done, s.GiveUp(ctx, r, p.Mark.Undo, kept)
		}
	}
	var st *session.State
	if r.State {
		st, err = p.follow(target)
		if p.takesBack(r, err, again) {
			return p.decideBack(ctx, s, r, plan, err)
		}
		if err != nil {
			return done, err
		}
	}
	if r.Files {
		after, err := s.After(ctx, r, target, before)
		if err != nil {
			return done, err
		}
		ended.After = after.ID.String()
	}
	return done, s.End(ctx, &ended, st, done.Changes, kept)
}

// begun plans a rewind that has begun.
func (p *Planner) begun(ctx context.Context, r *session.Rewinding) (*checkpoint.Plan, Result, error) {
	target, err := p.find(r.To, true)
	if err != nil {
		return nil, Result{}, err
	}
	before, err := p.Chain.Lookup(r.Before)
	if err != nil {
		return nil, Result{}, err
	}
	plan, done, err := p.plan(ctx, r, target, before, p.Chain.Tree(before.Root))
	done.Before = before
	return plan, done, err
}

// apply changes the files, and returns the paths that the log names as kept. For a failed task these
// are all that are not as they were before it.
func (p *Planner) apply(ctx context.Context, r *session.Rewinding, plan *checkpoint.Plan, done *Result) (kept []checkpoint.Retained, err error) {
	applied, err := p.Chain.Apply(ctx, plan)
	done.keep(applied)
	for _, k := range plan.Retained {
		if k.Why == checkpoint.Mounted || r.Task != "" {
			kept = append(kept, k)
		}
	}
	return append(kept, applied.Retained...), err
}

// follow returns the State that a rewind ends with, and has the plan's boxes agree with it.
func (p *Planner) follow(target *checkpoint.Entry) (*session.State, error) {
	st, err := p.stateBefore(target)
	if err != nil {
		return nil, err
	}
	return followBoxes(p.Plans, st)
}

// Plans reads and edits the plans of modules.
type Plans interface {
	// Plan reads a module's plan. The error wraps fs.ErrNotExist if there is none.
	Plan(module string) (*plan.Plan, error)
	// EditPlan changes a plan, durably. base is the plan as it was read.
	EditPlan(module string, base *plan.Plan, change plan.Change) (*plan.Plan, error)
}

// followBoxes ticks and unticks the plan's boxes, and sets the marks of skipped tasks, to agree
// with a State, and returns the State with the boxes as they are then. If there is no plan, it
// returns the State unchanged.
func followBoxes(plans Plans, st *session.State) (*session.State, error) {
	module := st.ID().Module
	p, err := plans.Plan(module)
	if errors.Is(err, fs.ErrNotExist) {
		return st, nil
	}
	if err != nil {
		return nil, err
	}
	want, marks := unlike(p, st)
	if len(want) > 0 {
		if p, err = plans.EditPlan(module, p, plan.Boxes(want)); err != nil {
			return nil, err
		}
	}
	if len(marks) > 0 {
		if p, err = plans.EditPlan(module, p, plan.Marks(marks)); err != nil {
			return nil, err
		}
	}
	e := st.Edit()
	for t := range st.All() {
		box, ok := p.Task(t.ID)
		if !ok || t.Box == session.BoxNone {
			continue
		}
		is := session.BoxOpen
		if box.Checked {
			is = session.BoxTicked
		}
		if t.Box != is {
			t.Box = is
			e.Put(t)
		}
	}
	return e.State()
}

// unlike returns the boxes of a plan, and the marks of skipped tasks, that do not agree with a
// State, as they are to be.
func unlike(p *plan.Plan, st *session.State) (boxes map[string]bool, marks map[string]plan.Mark) {
	boxes, marks = map[string]bool{}, map[string]plan.Mark{}
	for t := range st.All() {
		box, ok := p.Task(t.ID)
		if !ok || t.Box == session.BoxNone {
			continue
		}
		if box.Checked != (t.State == session.TaskComplete) {
			boxes[t.ID] = !box.Checked
		}
		skipped := t.State == session.TaskSkipped
		if len(box.Children) == 0 && skipped != (box.Mark.State == plan.MarkSkipped) {
			if marks[t.ID] = (plan.Mark{}); skipped {
				marks[t.ID] = plan.Mark{State: plan.MarkSkipped}
			}
		}
	}
	return boxes, marks
}
