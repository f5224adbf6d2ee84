package loop

import (
	"fmt"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
)

// next returns the unit that runs next, with its leaves. An empty unit means that nothing is
// left to run.
func (r *runner) next() (unit string, leaves []string, err error) {
	st := r.sess.State()
	if unit, leaves = newAgenda(st, r.cfg, r.lastStart.unfinished()).next(); unit != "" {
		return unit, leaves, nil
	}
	if _, ok := st.Task(r.cfg.Only); !ok && r.cfg.Only != "" {
		return "", nil, r.pause(session.TriggerPaused, session.ExitPaused, &Exit{ExitUser, "the task is no longer in the plan: " + r.cfg.Only})
	}
	_, waiting := tasks.Order(st)
	waiting = slices.DeleteFunc(waiting, func(w tasks.Waiting) bool { return r.cfg.Only != "" && !within(st, w.Task, r.cfg.Only) })
	if len(waiting) > 0 && (r.cfg.Only != "" || st.Progress().Failed == 0) {
		return "", nil, r.stuck(waiting)
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

// stuck ends a run in which every open task waits.
func (r *runner) stuck(waiting []tasks.Waiting) error {
	for _, w := range waiting {
		for _, id := range w.For {
			why := "which is not done"
			if _, ok := r.sess.State().Task(id); !ok {
				why = "which the plan does not have"
			}
			r.cfg.UI.Warn("blocked: %s waits for %s, %s", w.Task, id, why)
		}
	}
	return r.pause(session.TriggerPaused, session.ExitPaused, &Exit{ExitUser,
		fmt.Sprintf("nothing can run: %d tasks wait for each other or for what is not there; mend their \"after:\" in %s", len(waiting), lifecycle.PlanPath(r.cfg.Module))})
}
