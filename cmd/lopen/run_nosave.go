package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/plan/criteria"
)

// runUnsaved runs the plan on a store that keeps nothing. The project's own store, nil
// where there is none, is only looked at: for the plan, the settings, and who else is
// at work. A run that begins meanwhile is not kept out, as that would take a lock
// file.
func (r *runCall) runUnsaved(ctx context.Context, project string, saved *lifecycle.Store, docs prompt.Documents, p *plan.Plan) (err error) {
	ui := r.screen(ctx)
	defer ui.stop()
	if saved != nil {
		if err := saved.ModuleFree(r.module); err != nil {
			return r.busyHint(err)
		}
		if err := loop.NoOrphans(saved, r.module, r.besideLeft, ui); err != nil {
			return err
		}
	}
	store, err := lifecycle.OpenUnsaved(project, r.storeOptions(project))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore(store)) }()
	sess, err := store.CreateWith(ctx, r.module, func(_ session.ID, h *session.Header) { h.Worktree = r.called(project) })
	if err != nil {
		return err
	}
	values, as, err := r.remembered(saved, session.Settings{})
	if err != nil {
		return err
	}
	cfg, err := r.config(ctx, project, docs, as, values)
	if err != nil {
		return err
	}
	if r.again {
		if p, _, err = r.redone(p, nil); err != nil {
			return err
		}
	}
	cfg.Store, cfg.Session, cfg.UI = &unsavedPlan{plan: p, saved: saved}, sess, unsavedScreen{ui}
	ui.log = sess.Logger()
	cfg.Checkpoint, cfg.Output, cfg.Transcript = false, false, false
	cfg.ResumeHint = fmt.Sprintf("begin again with: lopen run %s (nothing was saved: --no-save)", r.module)
	ui.Say("--no-save: nothing is kept of this run: no session, no checkpoint, no ticked box")
	r.sayAsBefore(ui, cfg.Check)
	err = r.work(ctx, cfg)
	ui.stop()
	if err == nil {
		fmt.Fprintln(r.stderr, "nothing was saved (--no-save): the boxes are as they were")
	}
	return err
}

// unsavedPlan is the one plan of a run that saves nothing. Nobody else edits it. Owned by
// the loop.
type unsavedPlan struct {
	plan  *plan.Plan
	saved *lifecycle.Store // the project's own, nil for none; it is only read
}

// Plan is the plan as EditPlan left it.
func (u *unsavedPlan) Plan(string) (*plan.Plan, error) { return u.plan, nil }

// CreatePlan returns fs.ErrExist: the run began with a plan.
func (u *unsavedPlan) CreatePlan(module string, _ []byte) error {
	return fmt.Errorf("create plan of module %s: %w", module, fs.ErrExist)
}

// ReloadPlan is Plan.
func (u *unsavedPlan) ReloadPlan(string, *plan.Plan) (*plan.Plan, error) { return u.plan, nil }

// EditPlan carries a change out in memory.
func (u *unsavedPlan) EditPlan(_ string, _ *plan.Plan, change plan.Change) (*plan.Plan, error) {
	p, err := change(u.plan, u.plan)
	if p != nil {
		u.plan = p
	}
	return p, err
}

// Decisions returns none: what is decided is for the runs that are saved.
func (u *unsavedPlan) Decisions(string) ([]tasks.Decision, error) { return nil, nil }

// ForgetDecisions has nothing to remove.
func (u *unsavedPlan) ForgetDecisions(string, []tasks.Decision, []string) error { return nil }

// Specification is that of the project's own store.
func (u *unsavedPlan) Specification(module string) (*criteria.Record, error) {
	if u.saved == nil {
		return nil, fs.ErrNotExist
	}
	return u.saved.Specification(module)
}

// RememberSpecification remembers nothing.
func (u *unsavedPlan) RememberSpecification(string, *criteria.Record) error { return nil }

// unsavedScreen does not offer to edit the plan: the run has read it already, and
// nothing of it need be on the disk.
type unsavedScreen struct{ loop.UI }

func (s unsavedScreen) Choose(question string, choices []loop.Choice) (rune, error) {
	return s.UI.Choose(question, slices.DeleteFunc(slices.Clone(choices), func(c loop.Choice) bool { return c.Key == 'e' }))
}
