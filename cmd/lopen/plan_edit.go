package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/plan"
)

// taskHelp explains TASK, the same for every command that takes one.
const taskHelp = ".\n\nTASK is an ID, a unique part of the text, or :LINE."

// newPlanEdit makes a command that changes one thing in a plan. change gets the
// arguments behind MODULE; done prints what differs between the plans before
// and after. then, if not nil, is called while the module is still locked.
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
		if err != nil {
			return usageIf(err, plan.ErrText, plan.ErrUnusable, plan.ErrPlace)
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
