package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
)

// decide puts a person's decision into the session where the plan's boxes cannot express it:
// the box of a task that was skipped or failed is open already, that of one that a fork is to
// do again is ticked, and after a kill the next run does not know whether a person or the
// command edited the plan. It returns when that is durable. The caller holds the module's
// lock. A session that was complete is paused afterwards, so that the next run resumes it.
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

func newPlanTick(a *app, ticked bool) *cobra.Command {
	use, short := "tick MODULE TASK", "Tick a task's box; a parent's ticks all beneath it"
	if !ticked {
		use, short = "untick MODULE TASK", "Untick a task's box: it runs again, also when it was skipped or failed"
	}
	return newPlanEdit(a, &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(2)},
		func(p *plan.Plan, args []string) (plan.Change, error) {
			t, err := p.Find(args[0])
			return plan.Boxes(plan.Closure(p, t.ID, ticked)), err
		},
		func(before, after *plan.Plan) {
			for t := range after.All() {
				if was, ok := before.Task(t.ID); ok && was.Checked != t.Checked {
					fmt.Fprintf(a.stdout, "[%s] %s\n", tick(t.Checked), t.ID)
				}
			}
		},
		func(ctx context.Context, store *lifecycle.Store, after *plan.Plan, args []string) error {
			t, err := after.Find(args[1])
			if err != nil {
				return err
			}
			return a.decide(ctx, store, after, args[0], plan.Closure(after, t.ID, ticked))
		})
}
