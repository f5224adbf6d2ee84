package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer/plain"
)

// lostPlan returns why a module's plan is lost or damaged although a session remembers tasks of it, and
// the State that does; "" if that is not so.
func lostPlan(store *lifecycle.Store, module string) (why string, st *session.State) {
	p, err := store.Plan(module)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		why = "it is gone"
	case errors.Is(err, plan.ErrUnusable) && !errors.Is(err, plan.ErrUTF16):
		why = err.Error()
	case err != nil: // nothing of it is lost
		return "", nil
	case len(p.Tasks()) == 0:
		why = "it has no task"
	default:
		return "", nil
	}
	st, err = moduleState(store, module)
	if err != nil || st == nil || st.Header().Origin != session.OriginRun || st.Progress().Total == 0 {
		return "", nil
	}
	return why, st
}

// remembered is the line of an error of a plan that a session remembers; "" if none does.
func remembered(store *lifecycle.Store, module string) string {
	if store == nil {
		return ""
	}
	why, st := lostPlan(store, module)
	if why == "" {
		return damagedSession(store, module)
	}
	return fmt.Sprintf("\n  session %s remembers %s of it; to have it back: lopen plan create %s --remembered", st.ID(), plain.Some(st.Progress().Total, "task"), module)
}

// damagedSession is the line of an error of a plan whose module's session is damaged; "" if it is not.
func damagedSession(store *lifecycle.Store, module string) string {
	info, _, _ := store.Unfinished(module)
	if !errors.Is(info.Err, lifecycle.ErrCorrupt) || errors.Is(info.Err, lifecycle.ErrEdited) {
		return ""
	}
	return fmt.Sprintf("\n  session %s is damaged; to have its tasks back: lopen session recover %[1]s, then lopen plan create %s --remembered", info.ID, module)
}

// lostPlans are the plans that are lost or damaged, for doctor.
func lostPlans(store *lifecycle.Store) (all []repair.Check) {
	modules, err := store.Modules()
	if err != nil {
		return []repair.Check{{Name: "plans", Found: err.Error(), Problem: true}}
	}
	for _, module := range modules {
		if _, err := store.Plan(module); errors.Is(err, plan.ErrUTF16) {
			all = append(all, repair.Check{Name: "plan", Found: err.Error(), Problem: true})
		}
		if why, st := lostPlan(store, module); why != "" {
			all = append(all, repair.Check{Name: "plan", Found: fmt.Sprintf("%s: %s, and session %s remembers %s", lifecycle.PlanPath(module), why, st.ID(), plain.Some(st.Progress().Total, "task")),
				Problem: true, Mend: fmt.Sprintf("lopen plan create %s --remembered", module)})
		}
	}
	return all
}

// rememberedPlan writes the plan of a module again as its newest session remembers the tasks. What is
// there is set aside.
func (a *app) rememberedPlan(module string) error {
	return a.editStore(func(store *lifecycle.Store) (err error) {
		lock, err := store.LockModule(module)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, lock.Unlock()) }()
		why, st := lostPlan(store, module)
		if why == "" {
			return &loop.Exit{Code: loop.ExitFailed, Reason: fmt.Sprintf("the plan %s has tasks, or no session of %s remembers any: nothing was written%s", lifecycle.PlanPath(module), module, damagedSession(store, module))}
		}
		to, err := store.SetPlanAside(module, why)
		switch {
		case err == nil:
			fmt.Fprintf(a.stderr, "what was there is in %s\n", shown(to))
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		fmt.Fprintf(a.stderr, "from session %s; texts that are no task are not in it\n", st.ID())
		return a.writePlan(store, module, planOf(st))
	})
}

// planOf is a plan of the tasks of a State.
func planOf(st *session.State) []byte {
	var text strings.Builder
	fmt.Fprintf(&text, "# %s\n", st.ID().Module)
	var add func(ids []string, heading, depth int)
	add = func(ids []string, heading, depth int) {
		for i, id := range ids {
			t, _ := st.Task(id)
			if t.Kind == session.KindComponent || t.Kind == session.KindModule {
				fmt.Fprintf(&text, "\n%s %s\n", strings.Repeat("#", min(heading, 6)), plain.Markdown(t.Name))
				add(t.Children, heading+1, 0)
				continue
			}
			if i == 0 && depth == 0 {
				text.WriteByte('\n')
			}
			fmt.Fprintf(&text, "%s- [%s] %s", strings.Repeat("  ", depth), tick(t.State == session.TaskComplete), plain.Markdown(t.Name))
			if t.State == session.TaskSkipped && len(t.Children) == 0 {
				fmt.Fprintf(&text, " <!-- lopen: %s -->", plan.MarkSkipped)
			}
			if len(t.DependsOn) > 0 {
				fmt.Fprintf(&text, " <!-- after: %s -->", strings.Join(t.DependsOn, ", "))
			}
			text.WriteByte('\n')
			add(t.Children, heading, depth+1)
		}
	}
	add(st.Roots(), 2, 0)
	return []byte(text.String())
}
