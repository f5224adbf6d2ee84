package main

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"reflect"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
)

// selection is the part of the plan that --task, --from and --through name.
func (r *runCall) selection(p *plan.Plan) (s loop.Selection, err error) {
	for _, f := range []struct {
		query string
		ids   []*string
	}{{r.task, []*string{&s.From, &s.Through}}, {r.from, []*string{&s.From}}, {r.through, []*string{&s.Through}}} {
		if f.query == "" {
			continue
		}
		t, err := findTask(p, f.query)
		if err != nil {
			return s, err
		}
		for _, id := range f.ids {
			*id = t.ID
		}
	}
	switch {
	case r.again && s == loop.Selection{}:
		return s, usagef("--again needs --task, --from or --through: what is to be done again")
	case s != loop.Selection{} && len(s.Leaves(p)) == 0:
		return s, usagef("no task lies from %s through %s: in the plan the second one comes first", s.From, s.Through)
	}
	return s, nil
}

// onceEach makes a function that does nothing for the settings and the work tree for which it
// last succeeded.
func (r *runCall) onceEach(configure func(session.Settings) error) func(session.Settings) error {
	var last *session.Settings
	var tree string
	return func(old session.Settings) error {
		if last != nil && tree == r.tree && reflect.DeepEqual(*last, old) {
			return nil
		}
		err := configure(old)
		if err == nil {
			last, tree = &old, r.tree
		}
		return err
	}
}

// settleFirst takes what a command noted and was killed before it could settle, where the run
// does not: it has nothing left to do, so that the note would count against what is edited
// later, or --again decides anew. The caller holds the module's lock.
func (r *runCall) settleFirst(ctx context.Context, store *lifecycle.Store) error {
	_, unfinished, err := store.Unfinished(r.module)
	if err != nil || unfinished && !r.again {
		return err
	}
	noted, err := store.Decisions(r.module)
	if err != nil || len(noted) == 0 {
		return nil //nolint:nilerr // the run says that it takes nothing
	}
	return r.settleLocked(ctx, store, r.module)
}

// redo makes, for --again, what is selected pending, durably and as plan untick does: a run that is killed
// right after it is resumed by the next one. configure says whether the run can begin at all.
// The caller holds the module's lock.
func (r *runCall) redo(ctx context.Context, store *lifecycle.Store, configure func(session.Settings) error) error {
	if !r.again {
		return nil
	}
	p, err := store.Plan(r.module)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it is made when the run begins, and nothing of it is done
	}
	if err != nil {
		return err
	}
	st, err := r.wouldResume(store, p)
	if err != nil {
		return err
	}
	var old session.Settings
	if st != nil {
		old = st.Header().Settings
	}
	if err := configure(old); err != nil {
		return err
	}
	after, err := store.EditPlan(r.module, p, r.unticked(p))
	if err != nil || st == nil {
		return err
	}
	ids, again := r.undone(st, after)
	return r.decideIn(ctx, store, st, after, ids, again)
}

// redone is what redo makes of a plan and of the State of the session that the run resumes,
// in memory. st may be nil.
func (r *runCall) redone(p *plan.Plan, st *session.State) (*plan.Plan, *session.State, error) {
	after, err := r.unticked(p)(p, p)
	if err != nil || st == nil {
		return after, st, err
	}
	e := st.Edit()
	ids, again := r.undone(st, after)
	applyAll(e, ids, again)
	st, err = e.State()
	return after, st, err
}

// undone are the selected tasks that a session does not have as pending with all attempts. One
// that is complete is paused by that: another session would run what was skipped in it.
func (r *runCall) undone(st *session.State, after *plan.Plan) (ids []string, again tasks.Decided) {
	again = tasks.Decided{}
	for _, t := range r.selected.Leaves(after) {
		if is, ok := st.Task(t.ID); ok && (is.State != session.TaskPending || is.Attempts > 0) {
			ids = append(ids, t.ID)
			again[t.ID] = tasks.Decision{State: session.TaskPending}
		}
	}
	return ids, again
}

// unticked unticks the boxes of what --again selects, and takes its marks away.
func (r *runCall) unticked(p *plan.Plan) plan.Change {
	boxes, marks := map[string]bool{}, map[string]plan.Mark{}
	for _, t := range r.selected.Leaves(p) {
		maps.Copy(boxes, plan.Closure(p, t.ID, false))
		if t.Mark != (plan.Mark{}) {
			marks[t.ID] = plan.Mark{}
		}
	}
	return boxesAndMarks(boxes, marks)
}
