package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
)

// A planEdit is what a command does that changes a module's plan for a person. It implements
// [decisions.Change].
type planEdit struct {
	args []string // behind MODULE
	st   *session.State
	// change is given the plan as it is when it is locked.
	change func(e *planEdit, p *plan.Plan) (plan.Change, error)
	// decide is given the plan before and after; nil: what the boxes and marks of tasks with a new ID say.
	decide func(e *planEdit, before, after *plan.Plan) map[string]session.TaskState
	task   plan.Task                    // of the plan before; set by change if the command is about one
	wants  map[string]session.TaskState // what was decided, for sayTaken
}

// find finds the task that the command is about.
func (e *planEdit) find(p *plan.Plan) (err error) {
	e.task, err = findTask(p, e.args[0])
	return err
}

func (e *planEdit) Edit(p *plan.Plan) (plan.Change, error) {
	c, err := e.change(e, p)
	if err != nil && !errors.Is(err, plan.ErrUnknownTask) {
		err = &usageError{err}
	}
	return c, err
}

func (e *planEdit) Decide(before, after *plan.Plan) map[string]session.TaskState {
	if e.wants = carried(before, after); e.decide != nil {
		e.wants = e.decide(e, before, after)
	}
	return e.wants
}

// carried is what boxes and marks say of tasks that have another ID after an edit: a task that
// was done stays done under its new name, also while a command runs.
func carried(before, after *plan.Plan) map[string]session.TaskState {
	want := map[string]session.TaskState{}
	for t := range after.All() {
		was, known := before.Task(t.ID)
		switch {
		case known && was.Checked == t.Checked || t.Box < 0:
		case t.Checked:
			want[t.ID] = session.TaskComplete
		case known:
			want[t.ID] = session.TaskPending
		case t.Mark.State == plan.MarkSkipped && len(t.Children) == 0:
			want[t.ID] = session.TaskSkipped
		}
	}
	return want
}

// newPlanEdit makes a command that changes one thing in a plan, also while a run goes on. done
// prints what differs between the plans before and after.
func newPlanEdit(a *app, cmd *cobra.Command, edit planEdit, done func(before, after *plan.Plan)) *cobra.Command {
	cmd.Long = cmd.Short + ".\n\n" + taskHelp
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		module := args[0]
		store, _, err := a.openPlan(module)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closeStore(store)) }()
		e := edit
		e.args = args[1:]
		if e.st, err = moduleState(store, module); err != nil {
			return err
		}
		before, after, err := store.DecidePlan(module, &e)
		if errors.Is(err, plan.ErrUnknownTask) {
			return fmt.Errorf("%w; all of them: lopen plan show %s", err, module)
		}
		if err != nil {
			return usageIf(err, plan.ErrText, plan.ErrUnusable, plan.ErrPlace)
		}
		if is := e.already(before, after); is != "" {
			fmt.Fprintf(a.stderr, "nothing to do: %s is %s already\n", e.task.ID, is)
			return a.settle(cmd.Context(), store, module, nil)
		}
		done(before, after)
		a.warnDangling(before, after)
		return a.settle(cmd.Context(), store, module, &e)
	}
	return cmd
}

// already returns what the task is that a command was to make so, "" where the command changed
// the plan, or has something to change in the session.
func (e *planEdit) already(before, after *plan.Plan) (is string) {
	for t := range after.All() {
		was, _ := before.Task(t.ID)
		if was.Checked != t.Checked || was.Mark != t.Mark {
			return ""
		}
		to, decided := e.wants[t.ID]
		if !decided || len(t.Children) > 0 {
			continue
		}
		if e.st != nil {
			if s, known := e.st.Task(t.ID); known && s.State != to {
				return ""
			}
		}
		is = stateWords[to]
	}
	return is
}

var stateWords = map[session.TaskState]string{session.TaskComplete: "ticked", session.TaskPending: "open", session.TaskSkipped: "skipped", session.TaskFailed: "marked failed"}

// warnDangling names the tasks that wait for what an edit took away or gave
// another ID.
func (a *app) warnDangling(before, after *plan.Plan) {
	for t := range after.All() {
		for _, id := range t.After {
			_, was := before.Task(id)
			if _, is := after.Task(id); was && !is {
				fmt.Fprintf(a.stderr, "warning: %s (line %d) waits for %s, which the plan has no more\n", t.ID, t.Line, id)
			}
		}
	}
}

// printNew prints the IDs that one plan has and the other does not.
func (a *app) printNew(without, with *plan.Plan) {
	for t := range with.All() {
		if _, ok := without.Task(t.ID); !ok {
			fmt.Fprintln(a.stdout, t.ID)
		}
	}
}

// placeArgs is where a task goes, as flags name it.
type placeArgs struct{ under, before, after string }

func placeFlags(cmd *cobra.Command) *placeArgs {
	at := &placeArgs{}
	f := cmd.Flags()
	f.StringVar(&at.under, "under", "", "last beneath `TASK`, or last of a component")
	f.StringVar(&at.before, "before", "", "before `TASK`")
	f.StringVar(&at.after, "after", "", "behind `TASK`")
	return at
}

func (at *placeArgs) find(p *plan.Plan) (pl plan.Place, err error) {
	for _, f := range []struct {
		query string
		id    *string
	}{{at.under, &pl.Under}, {at.before, &pl.Before}, {at.after, &pl.After}} {
		if f.query == "" {
			continue
		}
		t, err := findTask(p, f.query)
		if err != nil {
			return pl, err
		}
		*f.id = t.ID
	}
	return pl, nil
}
