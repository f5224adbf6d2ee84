package loop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/nearest"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/decisions"
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
	r.planMade = true
	r.cfg.UI.Say("plan made from the Acceptance Criteria of %s: %s", r.cfg.Documents.Spec, lifecycle.PlanPath(r.cfg.Module))
	return r.cfg.Store.Plan(r.cfg.Module)
}

// maxNotes is how many differences of a plan are said.
const maxNotes = 100

// reconcile updates the State to the plan as it is now and to what a person decided by commands,
// reports the differences, and writes the boxes and marks that differ from the State.
func (r *runner) reconcile(ctx context.Context, when tasks.When) error {
	p, err := r.loadPlan()
	if err != nil {
		return err
	}
	noted := r.noted() // after the plan: a command notes what it decides before it edits the plan
	if p == r.reconciled && len(noted) == 0 {
		return nil // the plan has not changed, and its boxes agree with the State
	}
	res, err := r.compare(p, when, tasks.Newest(noted))
	if err != nil {
		return err
	}
	r.sayNotes(p, res.Notes)
	if err := r.adopt(res); err != nil {
		return err
	}
	if len(noted) > 0 {
		if err := r.sync(ctx); err != nil {
			return err
		}
	}
	r.plan, r.reconciled = p, nil
	if len(res.Boxes)+len(res.Marks) == 0 {
		r.reconciled = p
	}
	if len(res.Boxes) > 0 {
		if err := r.replicate(ctx); err != nil {
			return err
		}
	}
	if err := r.writeBoxes(ctx, res.Boxes); err != nil {
		return err
	}
	if err := r.writeMarks(ctx, res.Marks); err != nil {
		return err
	}
	r.forget(noted)
	return nil
}

// sayNotes says how the plan differs from the State.
func (r *runner) sayNotes(p *plan.Plan, notes []tasks.Note) {
	for i, n := range notes {
		if i == maxNotes {
			r.cfg.UI.Say("plan: %d differences more", len(notes)-i)
			break
		}
		if n.Kind == tasks.Broken && n.Type == "" {
			n.Type = strings.Join(nearest.Task(p, n.Was, n.Task), " or ")
		}
		r.cfg.UI.Say("plan: %s", n)
	}
}

// compare is tasks.Reconcile. Of boxes that nobody knows who changed it asks the person.
func (r *runner) compare(p *plan.Plan, when tasks.When, decided tasks.Decided) (res tasks.Result, err error) {
	res, err = decided.Reconcile(r.sess.State(), p, when)
	if err == nil && len(res.Unclear) > 0 && r.cfg.ByTerminal && !r.cfg.Unattended {
		var yes bool
		if yes, err = r.askUnclear(res.Unclear); err != nil {
			return res, err
		}
		if yes {
			res, err = decided.Reconcile(r.sess.State(), p, tasks.Between)
		}
	}
	if err != nil {
		return res, fmt.Errorf("take over the plan: %w", err)
	}
	return res, nil
}

// noted returns what a person decided by commands since the last call of forget. If that cannot
// be read, the run continues without it, as it would if nothing had been decided.
func (r *runner) noted() []tasks.Decision {
	all, err := r.cfg.Store.Decisions(r.cfg.Module)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.warnOnce("decisions", fmt.Sprintf("what was decided by commands like lopen plan tick is not taken: %v", err))
		return nil
	}
	return slices.DeleteFunc(all, func(d tasks.Decision) bool { return decisions.Among(r.taken, d) })
}

// forget removes decisions that the State has durably. If it fails, the run does not take them
// again, and for a later run they say what is so already.
func (r *runner) forget(noted []tasks.Decision) {
	if len(noted) == 0 {
		return
	}
	r.taken = append(r.taken, noted...)
	if err := r.cfg.Store.ForgetDecisions(r.cfg.Module, r.taken, nil); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.log.Warn().Err(err).Msg("decisions that were taken are not forgotten")
		return
	}
	r.taken = nil
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
	if err := r.editPlan(ctx, plan.Boxes(boxes)); err != nil {
		return err
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

// editPlan edits the plan. It waits for the end of storage errors, and for another lopen that
// edits the plan. Of a conflict it warns: the rest of the change is made.
func (r *runner) editPlan(ctx context.Context, change plan.Change) error {
	var conflict *plan.ConflictError
	edit := func(context.Context) error {
		p, err := r.cfg.Store.EditPlan(r.cfg.Module, r.plan, change)
		for tries := 1; errors.Is(err, lifecycle.ErrBusy) && tries < busyTries && ctx.Err() == nil; tries++ {
			r.warnOnce("plan-busy", fmt.Sprintf("plan: %v; waiting for it", err))
			p, err = r.cfg.Store.EditPlan(r.cfg.Module, r.plan, change)
		}
		if err != nil && !errors.As(err, &conflict) {
			return err
		}
		if p != nil {
			r.plan = p
		}
		return nil
	}
	if err := edit(ctx); err != nil {
		if err := r.waitStorage(ctx, err, edit); err != nil {
			return err
		}
	}
	if conflict != nil {
		r.cfg.UI.Warn("plan: %v", conflict)
	}
	return nil
}

// busyTries is how often a run tries to edit a plan that another lopen holds, ten seconds each:
// one that was stopped in that moment.
const busyTries = 60

// writeMarks writes or removes the marks of skipped tasks, which boxes cannot express. The State
// has the same information, so a line that takes no mark is only a warning.
func (r *runner) writeMarks(ctx context.Context, skipped map[string]bool) error {
	if len(skipped) == 0 {
		return nil
	}
	marks := make(map[string]plan.Mark, len(skipped))
	for id, yes := range skipped {
		if marks[id] = (plan.Mark{}); yes {
			marks[id] = plan.Mark{State: plan.MarkSkipped}
		}
	}
	err := r.editPlan(ctx, plan.Marks(marks))
	var exit *Exit
	if err == nil || ctx.Err() != nil || errors.As(err, &exit) {
		return err
	}
	r.cfg.UI.Warn("plan: %v", err)
	return nil
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
