package loop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/plan/convert"
)

// PlanFor returns a module's plan. If there is none, PlanFor drafts it from the Acceptance
// Criteria of the specification, and made is the content for the caller to write. store may be
// nil. The error wraps fs.ErrNotExist if there is neither a plan nor a specification.
func PlanFor(store Plans, docs fs.FS, module, spec string) (p *plan.Plan, made []byte, err error) {
	if store != nil {
		if p, err = store.Plan(module); !errors.Is(err, fs.ErrNotExist) {
			return p, nil, err
		}
	}
	src, err := prompt.ReadSpec(docs, spec)
	if err != nil {
		return nil, nil, err
	}
	if made, err = convert.FromCriteria(module, src); err != nil {
		return nil, nil, fmt.Errorf("make a plan from %s: %w", spec, err)
	}
	made = plan.WithOrigin(made, spec)
	return plan.Parse(made), made, nil
}

// loadPlan reads the plan, and first creates it if there is none. If the plan was removed during
// the run, for example by git clean, loadPlan writes it again as it was last seen.
func (r *runner) loadPlan() (*plan.Plan, error) {
	if r.plan != nil {
		p, err := r.cfg.Store.ReloadPlan(r.cfg.Module, r.plan)
		if !errors.Is(err, fs.ErrNotExist) {
			return p, err
		}
		if err := r.cfg.Store.CreatePlan(r.cfg.Module, r.plan.Source()); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("write the plan again, which was removed: %w", err)
		}
		r.cfg.UI.Warn("%s was removed during the run: written again as it was seen last", lifecycle.PlanPath(r.cfg.Module))
		return r.cfg.Store.Plan(r.cfg.Module)
	}
	p, made, err := PlanFor(r.cfg.Store, r.cfg.Documents.FS, r.cfg.Module, r.cfg.Documents.Spec)
	if err != nil || made == nil {
		return p, err
	}
	if err := r.cfg.Store.CreatePlan(r.cfg.Module, made); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	r.cfg.UI.Say("plan made from the Acceptance Criteria of %s: %s", r.cfg.Documents.Spec, lifecycle.PlanPath(r.cfg.Module))
	return r.cfg.Store.Plan(r.cfg.Module)
}

// reconcile updates the State to the plan as it is now, reports the differences, and writes the
// boxes that differ from the State.
func (r *runner) reconcile(ctx context.Context, when tasks.When) error {
	p, err := r.loadPlan()
	if err != nil {
		return err
	}
	if p == r.reconciled {
		return nil // the plan has not changed, and its boxes agree with the State
	}
	res, err := tasks.Reconcile(r.sess.State(), p, when)
	if err != nil {
		return fmt.Errorf("take over the plan: %w", err)
	}
	if len(res.Unclear) > 0 && r.cfg.ByTerminal && !r.cfg.Unattended {
		yes, err := r.askUnclear(res.Unclear)
		if err != nil {
			return err
		}
		if yes {
			if res, err = tasks.Reconcile(r.sess.State(), p, tasks.Between); err != nil {
				return fmt.Errorf("take over the plan: %w", err)
			}
		}
	}
	for _, n := range res.Notes {
		r.cfg.UI.Say("plan: %s", n)
	}
	if err := r.adopt(res); err != nil {
		return err
	}
	r.plan, r.reconciled = p, nil
	if len(res.Boxes) == 0 {
		r.reconciled = p
	}
	return r.writeBoxes(ctx, res.Boxes)
}

// adopt saves the State that Reconcile returned. It comes before the boxes, which follow the
// State.
func (r *runner) adopt(res tasks.Result) error {
	changed := false
	session.Diff(r.sess.State(), res.State, func(string, *session.Task, *session.Task) bool { changed = true; return false })
	if !changed {
		return nil
	}
	err := r.sess.Update(func(*session.State) (*session.State, error) { return res.State, nil })
	if err = r.ignorePaused(err); err != nil || len(res.Notes) == 0 {
		return err
	}
	return r.change(session.TriggerStepCompleted, func(*session.Edit) error { return nil })
}

func (r *runner) askUnclear(ids []string) (bool, error) {
	for _, id := range ids {
		r.cfg.UI.Say("this box changed while a task was running that was killed: %s", id)
	}
	key, err := r.cfg.UI.Choose("Was it you who changed the plan?", []Choice{
		{'y', "yes, keep the boxes"}, {'n', "no, set them back"},
	})
	return key == 'y', err
}

// writeBoxes sets boxes in the plan and then in the State, which the next commit saves. If lopen
// is killed before that, the next run corrects the difference.
func (r *runner) writeBoxes(ctx context.Context, boxes map[string]bool) error {
	if len(boxes) == 0 {
		return nil
	}
	var conflict *plan.ConflictError
	write := func(context.Context) error {
		p, err := r.cfg.Store.EditPlan(r.cfg.Module, r.plan, plan.Boxes(boxes))
		if err != nil && !errors.As(err, &conflict) {
			return err
		}
		if p != nil {
			r.plan = p
		}
		return nil
	}
	if err := write(ctx); err != nil {
		if err := r.waitStorage(ctx, err, write); err != nil {
			return err
		}
	}
	if conflict != nil {
		r.cfg.UI.Warn("plan: %v", conflict)
	}
	return r.ignorePaused(r.sess.Update(func(st *session.State) (*session.State, error) {
		e := st.Edit()
		for id, ticked := range boxes {
			if t, ok := e.Task(id); ok && t.Box != session.BoxNone {
				t.Box = session.BoxOpen
				if ticked {
					t.Box = session.BoxTicked
				}
				e.Put(t)
			}
		}
		return e.State()
	}))
}

// mark writes marks into the plan, which boxes cannot express. The State has the same
// information, so a failed write is only a warning.
func (r *runner) mark(ids []string, m plan.Mark) {
	marks := make(map[string]plan.Mark, len(ids))
	for _, id := range ids {
		marks[id] = m
	}
	p, err := r.cfg.Store.EditPlan(r.cfg.Module, r.plan, plan.Marks(marks))
	if p != nil {
		r.plan = p
	}
	if err != nil {
		r.cfg.UI.Warn("plan: %v", err)
	}
}
