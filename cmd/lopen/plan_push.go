package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

func newPlanPush(a *app) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "push MODULE...",
		Short: "Make the plan of a module here the one of the fleet",
		Long: `Make the plan of a module here the one of the fleet, so that lopen work --fleet finds it. A plan
that was changed there meanwhile is not replaced: the difference is printed, and the exit code
is 2. Take over by hand what is right, and say --force.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, module := range args {
				if err := session.ValidateModule(module); err != nil {
					return &usageError{err}
				}
			}
			return a.inFleet(func(_ string, f *fleet.Fleet) error {
				return a.editStore(func(store *lifecycle.Store) error {
					for _, module := range args {
						p, err := f.PushPlan(cmd.Context(), store, module, force)
						if err != nil {
							return a.planConflict(store, module, notFound(err))
						}
						fmt.Fprintf(a.stdout, "%s\trevision %d\t%d/%d\n", module, p.Revision, p.Total-p.Open, p.Total)
					}
					return nil
				})
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "also where it was changed in the fleet")
	return cmd
}

// planConflict prints how two plans differ, where that is what an error is about.
func (a *app) planConflict(store *lifecycle.Store, module string, err error) error {
	var conflict *fleet.ConflictError
	if !errors.As(err, &conflict) {
		return err
	}
	here, readErr := store.Plan(module)
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	fmt.Fprint(a.stdout, checkpoint.Unified(fmt.Sprintf("fleet, revision %d", conflict.Revision), "here", string(conflict.Bytes), string(here.Source())))
	return &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("%v\n  put this one in its place: lopen plan push %s --force", err, module)}
}
