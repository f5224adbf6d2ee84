package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
)

// moduleState returns the State of the session that the module's next run resumes,
// or else of the one that was changed last. It is nil where there is none or where
// it cannot be read: a damaged session must not hide the plan.
func moduleState(store *lifecycle.Store, module string) (*session.State, error) {
	info, ok, err := store.Unfinished(module)
	if err != nil {
		return nil, err
	}
	id := info.ID
	if !ok {
		if id, err = store.Latest(module); errors.Is(err, lifecycle.ErrNotFound) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	}
	st, _, _ := store.Read(id)
	return st, nil
}

// decide takes what a person said with plan tick and plan untick over into the
// session where the plan's boxes cannot say it: a task that was skipped or failed
// has an open box already, one that a fork is to do again has a ticked one, and after a
// kill the next run cannot tell a person's edit from one of the command. It
// returns when that is durable. The module's lock is held. A session that was
// complete is paused afterwards, so that the next run resumes it.
func (a *app) decide(ctx context.Context, store *lifecycle.Store, after *plan.Plan, module string, want map[string]bool) error {
	st, err := moduleState(store, module)
	if err != nil || st == nil {
		return err
	}
	decided := undecided(st, after, want)
	if len(decided) == 0 {
		return nil
	}
	sess, err := store.Open(st.ID())
	if err != nil {
		return err
	}
	now := time.Now()
	err = sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
		for _, t := range decided {
			tasks.Set(e, t.ID, func(is *session.Task) {
				is.Box = tasks.Box(t)
				if t.Checked {
					is.State, is.LastError, is.CompletedAt = session.TaskComplete, "", now
				} else {
					is.State, is.Attempts = session.TaskPending, 0
				}
			})
		}
		h := e.Header()
		if t, _ := e.Task(h.ActiveTask); t.State != session.TaskInProgress {
			h.ActiveTask = ""
		}
		if h.Status == session.StatusComplete && slices.ContainsFunc(decided, func(t plan.Task) bool { return !t.Checked }) {
			h.Status, h.ExitReason, h.Phase, h.CompletedAt = session.StatusPaused, session.ExitPaused, session.PhaseBuilding, time.Time{}
		}
		return nil
	})
	if err == nil {
		err = sess.Flush(ctx)
	}
	if err = errors.Join(err, sess.Close(ctx)); err != nil {
		return err
	}
	marks := map[string]plan.Mark{}
	for _, t := range decided {
		was, _ := st.Task(t.ID)
		is, _ := sess.State().Task(t.ID)
		fmt.Fprintf(a.stdout, "[%s] %s: %s in session %s, %s now\n", tick(t.Checked), t.ID, was.State, st.ID(), is.State)
		if t.Mark != (plan.Mark{}) {
			marks[t.ID] = plan.Mark{}
		}
	}
	if len(marks) > 0 {
		_, err = store.EditPlan(module, after, plan.Marks(marks))
	}
	return err
}

// undecided lists the leaves of a plan whose boxes are as wanted while the State
// has them otherwise, and which the next run would leave so.
func undecided(st *session.State, p *plan.Plan, want map[string]bool) (all []plan.Task) {
	for t := range p.All() {
		ticked, wanted := want[t.ID]
		is, known := st.Task(t.ID)
		if !wanted || !known || len(t.Children) > 0 || t.Checked != ticked {
			continue
		}
		passed := is.State == session.TaskSkipped || is.State == session.TaskFailed
		cut := st.ActiveTask() != "" && ticked != (is.State == session.TaskComplete)
		if cut || passed || ticked && is.State != session.TaskComplete && is.Box == session.BoxTicked {
			all = append(all, t)
		}
	}
	return all
}

func tick(ticked bool) string {
	if ticked {
		return "x"
	}
	return " "
}

// over says that nothing of a plan is left to do: each leaf is ticked, or was
// skipped in the module's last session. What a person skipped does not run unasked.
func over(store *lifecycle.Store, module string, p *plan.Plan) (bool, *session.State) {
	st, err := moduleState(store, module)
	if err != nil {
		return false, nil
	}
	leaves := 0
	for t := range p.All() {
		if len(t.Children) > 0 || t.Kind == plan.KindComponent {
			continue
		}
		leaves++
		if t.Checked {
			continue
		}
		if st == nil {
			return false, nil
		}
		if is, _ := st.Task(t.ID); is.State != session.TaskSkipped {
			return false, nil
		}
	}
	return leaves > 0, st
}

// nothingLeft says so where a new session would have nothing to do.
func (r *runCall) nothingLeft(store *lifecycle.Store) (bool, error) {
	p, err := store.Plan(r.module)
	if err != nil || r.noResume {
		return false, nil //nolint:nilerr // the run says what is wrong with the plan
	}
	done, st := over(store, r.module, p)
	if !done {
		return false, nil
	}
	if st != nil && r.only != "" {
		if t, _ := st.Task(r.only); t.State == session.TaskSkipped {
			return true, loop.WasSkipped(st, r.only)
		}
	}
	n, total := p.Progress()
	fmt.Fprintf(r.stderr, "nothing is left to do: %d/%d tasks of %s are done\n", n, total, lifecycle.PlanPath(r.module))
	if n < total {
		fmt.Fprintf(r.stderr, "skipped: %s\n", loop.Skipped(st, ""))
	}
	return true, nil
}
