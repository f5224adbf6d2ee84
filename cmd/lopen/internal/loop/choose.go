package loop

import (
	"fmt"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/writer/plain"
)

// next returns the unit that runs next, with its leaves. An empty unit means that nothing is
// left to run.
func (r *runner) next() (unit string, leaves []string, err error) {
	st := r.sess.State()
	if unit, leaves = newAgenda(st, r.cfg, r.lastStart.unfinished()).next(); unit != "" {
		return unit, leaves, nil
	}
	for _, id := range []string{r.cfg.Select.From, r.cfg.Select.Through} {
		if _, ok := st.Task(id); !ok && id != "" {
			return "", nil, r.pause(session.TriggerPaused, session.ExitPaused, &Exit{ExitUser, "the task is no longer in the plan: " + id})
		}
	}
	in := r.cfg.Select.of(st)
	if p, waiting := in.counts(st); len(waiting) > 0 && p.Failed == 0 {
		return "", nil, r.stuck(in, waiting)
	}
	return "", nil, nil
}

// within reports whether a task is the unit or is beneath it.
func within(st *session.State, id, unit string) bool {
	for id != "" {
		if id == unit {
			return true
		}
		t, ok := st.Task(id)
		if !ok {
			return false
		}
		id = t.Parent
	}
	return false
}

// stuck ends a run in which every open task that is selected waits.
func (r *runner) stuck(in selected, waiting []tasks.Waiting) error {
	var outside []string
	for _, w := range waiting {
		for _, id := range w.For {
			why := "which is not done"
			if _, ok := r.sess.State().Task(id); !ok {
				why = "which the plan does not have"
			} else if !in.has(id) {
				why = "which is not done and not selected"
				outside = append(outside, id)
			}
			r.cfg.UI.Warn("blocked: %s waits for %s, %s", w.Task, id, why)
		}
	}
	if len(outside) > 0 {
		r.report()
		return r.pause(session.TriggerPaused, session.ExitPaused, &Exit{ExitUser,
			fmt.Sprintf("nothing else that is selected can run: run first what it waits for, lopen run %s --task %s", r.cfg.Module, plain.Quote(outside[0]))})
	}
	return r.pause(session.TriggerPaused, session.ExitPaused, &Exit{ExitUser,
		fmt.Sprintf("nothing can run: %d tasks wait for each other or for what is not there; mend their \"after:\" in %s", len(waiting), lifecycle.PlanPath(r.cfg.Module))})
}
