package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/plan"
)

// taskHelp explains TASK, the same for every command that takes one.
const taskHelp = ".\n\nTASK is an ID, a unique part of the text, or :LINE."

// newPlanEdit makes a command that changes one thing in a plan. change gets the
// arguments behind MODULE; what is printed is what done says of the plans before
// and after. then, where it is not nil, goes on while the module is still held.
func newPlanEdit(a *app, cmd *cobra.Command, change func(p *plan.Plan, args []string) (plan.Change, error), done func(before, after *plan.Plan),
	then func(ctx context.Context, store *lifecycle.Store, after *plan.Plan, args []string) error,
) *cobra.Command {
	cmd.Long = cmd.Short + taskHelp
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		store, p, err := a.openPlan(args[0])
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closeStore(store)) }()
		if err := a.refuseInside(store); err != nil {
			return err
		}
		edit, err := change(p, args[1:])
		if err != nil {
			return &usageError{err}
		}
		lock, err := store.LockModule(args[0])
		if errors.Is(err, lifecycle.ErrBusy) {
			return fmt.Errorf("the plan is its run's: pause it first, lopen session pause %s: %w", args[0], err)
		}
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, lock.Unlock()) }()
		after, err := store.EditPlan(args[0], p, edit)
		if errors.Is(err, plan.ErrText) || errors.Is(err, plan.ErrUnusable) || errors.Is(err, plan.ErrPlace) {
			return &usageError{err}
		}
		if err != nil {
			return err
		}
		done(p, after)
		a.warnDangling(p, after)
		if then == nil {
			return nil
		}
		return then(cmd.Context(), store, after, args)
	}
	return cmd
}

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

func newPlanAdd(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "add MODULE TEXT", Short: "Add a task, at the end or where a flag says", Args: cobra.ExactArgs(2)}
	at := placeFlags(cmd)
	return newPlanEdit(a, cmd, func(p *plan.Plan, args []string) (plan.Change, error) {
		to, err := at.find(p)
		return plan.Add(args[0], to), err
	}, a.printNew, nil)
}

func newPlanMove(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "move MODULE TASK", Short: "Move a task with all beneath it, to the end or where a flag says", Args: cobra.ExactArgs(2)}
	at := placeFlags(cmd)
	return newPlanEdit(a, cmd, func(p *plan.Plan, args []string) (plan.Change, error) {
		t, err := p.Find(args[0])
		if err != nil {
			return nil, err
		}
		to, err := at.find(p)
		return plan.Move(t.ID, to), err
	}, a.printNew, nil)
}

func newPlanRename(a *app) *cobra.Command {
	return newPlanEdit(a, &cobra.Command{Use: "rename MODULE TASK TEXT", Short: "Give a task another text, and so another ID", Args: cobra.ExactArgs(3)},
		func(p *plan.Plan, args []string) (plan.Change, error) {
			t, err := p.Find(args[0])
			return plan.Rename(t.ID, args[1]), err
		}, a.printNew, nil)
}

func newPlanRemove(a *app) *cobra.Command {
	return newPlanEdit(a, &cobra.Command{Use: "remove MODULE TASK", Short: "Take a task out with all beneath it", Args: cobra.ExactArgs(2)},
		func(p *plan.Plan, args []string) (plan.Change, error) {
			t, err := p.Find(args[0])
			return plan.Remove(t.ID), err
		},
		func(before, after *plan.Plan) { a.printNew(after, before) }, nil)
}

func newPlanMark(a *app) *cobra.Command {
	marks := map[string]plan.Mark{"failed": {State: plan.MarkFailed}, "in-progress": {State: plan.MarkInProgress}, "none": {}}
	return newPlanEdit(a, &cobra.Command{Use: "mark MODULE TASK failed|in-progress|none", Short: "Write what a box cannot say behind a task's text", Args: cobra.ExactArgs(3)},
		func(p *plan.Plan, args []string) (plan.Change, error) {
			t, err := p.Find(args[0])
			mark, known := marks[args[1]]
			switch {
			case err != nil:
			case !known:
				err = usagef("%q: give failed, in-progress or none", args[1])
			case t.Box < 0 || t.Checked && mark != (plan.Mark{}):
				err = usagef("%s takes no mark: only an open task does", t.ID)
			}
			return plan.Marks(map[string]plan.Mark{t.ID: mark}), err
		},
		func(before, after *plan.Plan) {
			for t := range after.All() {
				if was, _ := before.Task(t.ID); was.Mark != t.Mark {
					fmt.Fprintf(a.stdout, "%s\n", strings.TrimSuffix(fmt.Sprintf("%s: %s", t.ID, t.Mark), ": "))
				}
			}
		}, nil)
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
		t, err := p.Find(f.query)
		if err != nil {
			return pl, err
		}
		*f.id = t.ID
	}
	return pl, nil
}
