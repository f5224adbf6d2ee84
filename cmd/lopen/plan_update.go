package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/plan/criteria"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newPlanUpdate(a *app) *cobra.Command {
	u := planUpdate{app: a}
	cmd := &cobra.Command{
		Use:   "update MODULE",
		Short: "Take what is new in the module's specification into its plan",
		Long: `Take what is new in the module's specification into its plan, also while a run goes on.

A criterion that was added becomes an open task behind that of the criterion
before it. One that was reworded gives its open task the new words; if the task
is done, it stays, and the new words become another task. The task of a criterion
that is gone is removed if it is open, was never attempted and nobody changed it.
What is done, what was attempted and what a person wrote stays.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return u.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().BoolVar(&u.dryRun, "dry-run", false, "say what would be done, change nothing")
	cmd.Flags().BoolVar(&u.accept, "accept", false, "leave the plan as it is: it covers what the specification says now")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "accept")
	return cmd
}

// A planUpdate is one call of the command. It implements [decisions.Change].
type planUpdate struct {
	*app
	dryRun, accept bool

	st     *session.State // nil for none
	found  *loop.Differences
	record *criteria.Record // of what the plan covers after Edit's change
	steps  []criteria.Step  // of that change
}

func (u *planUpdate) run(ctx context.Context, module string) (err error) {
	store, p, err := u.openPlan(module)
	if errors.Is(err, lifecycle.ErrNotFound) {
		return fmt.Errorf("%w; or of its specification: lopen plan create %s", err, module)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore(store)) }()
	d, err := u.differencesHere(store, module, p, false)
	switch {
	case err != nil:
		return err
	case d.Lost:
		return fmt.Errorf("%s is gone or empty, so nothing says what the plan should have: it stays as it is: %w", d.Path, lifecycle.ErrNotFound)
	case d.Empty():
		fmt.Fprintf(u.stderr, "nothing to do: the plan covers %s\n", d.Path)
		if d.Same || u.dryRun {
			return nil
		}
		return store.RememberSpecification(module, d.Accepted()) // a box, a comma, the order
	case u.accept:
		if err := store.RememberSpecification(module, d.Accepted()); err != nil {
			return err
		}
		fmt.Fprintf(u.stderr, "the plan stays as it is, and covers %s as that is now\n", d.Path)
		return nil
	}
	if u.st, err = moduleState(store, module); err != nil {
		return err
	}
	u.found = d
	u.printLeft(d)
	if u.dryRun {
		return u.rehearse(p)
	}
	return u.apply(ctx, store, module)
}

// Edit returns the change that takes the differences in.
func (u *planUpdate) Edit(*plan.Plan) (plan.Change, error) {
	return func(_, now *plan.Plan) (next *plan.Plan, err error) {
		if next, u.record, u.steps, err = u.found.Again(now).Update(now, u.progress); err != nil {
			return nil, fmt.Errorf("take %s into the plan: %w", plain.Line(u.found.Path), err)
		}
		return next, nil
	}, nil
}

// Decide returns what the boxes of new tasks say.
func (u *planUpdate) Decide(before, after *plan.Plan) map[string]session.TaskState {
	return carried(before, after)
}

// rehearse says what an update would do.
func (u *planUpdate) rehearse(p *plan.Plan) error {
	update, err := u.Edit(p)
	if err != nil {
		return err
	}
	after, err := update(p, p)
	if err != nil {
		return err
	}
	u.printSteps()
	done, total := after.Progress()
	fmt.Fprintf(u.stderr, "nothing was changed (--dry-run); the plan would have %d tasks, %d of them done\n", total, done)
	return nil
}

// apply makes the update.
func (u *planUpdate) apply(ctx context.Context, store *lifecycle.Store, module string) error {
	before, after, err := store.DecidePlan(module, u)
	if err != nil {
		return usageIf(err, plan.ErrUnusable)
	}
	if err := store.RememberSpecification(module, u.record); err != nil {
		return err
	}
	u.printSteps()
	u.warnDangling(before, after)
	done, total := after.Progress()
	fmt.Fprintf(u.stderr, "%s: %d tasks, %d of them done", lifecycle.PlanPath(module), total, done)
	if done < total && store.ModuleFree(module) == nil {
		fmt.Fprintf(u.stderr, "; next: lopen run %s", module)
		if u.st == nil || u.st.Header().Status == session.StatusComplete { // a new session has no command yet
			fmt.Fprint(u.stderr, " -- CMD")
		}
	}
	fmt.Fprintln(u.stderr)
	return u.settle(ctx, store, module, &planEdit{st: u.st})
}

// printSteps prints what an update does, a line for each criterion.
func (u *planUpdate) printSteps() {
	for _, s := range u.steps {
		line := fmt.Sprintf("%-8s  %s", s.What, s.Task)
		if s.Task == "" {
			line = fmt.Sprintf("%-8s  %s", s.What, plain.Line(s.Text))
		}
		if s.Was != "" && s.Was != s.Task {
			line += "  (before: " + s.Was + ")"
		}
		if s.Why != "" {
			line += ": " + s.Why
		}
		fmt.Fprintln(u.stdout, line)
	}
}

// progress is what the module's session knows of a task.
func (u *planUpdate) progress(id string) criteria.Progress {
	if u.st == nil {
		return criteria.Untouched
	}
	switch t, known := u.st.Task(id); {
	case !known:
		return criteria.Untouched
	case t.State == session.TaskComplete || t.State == session.TaskSkipped:
		return criteria.Settled
	case t.State != session.TaskPending || t.Attempts > 0:
		return criteria.Tried
	}
	return criteria.Untouched
}
