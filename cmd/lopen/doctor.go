package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newDoctor(a *app) *cobra.Command {
	return a.jsonFlags(&cobra.Command{
		Use:   "doctor",
		Short: "Look at disk, locks and sessions, and say what to mend",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.readStore(func(store *lifecycle.Store) error {
				all, bad := append(store.Doctor(cmd.Context()), leftBehind(store)...), 0
				all = append(all, lostPlans(store)...)
				all = append(all, a.trackedStore(cmd.Context(), store)...)
				all = append(all, a.wrongSettings(store)...)
				if _, err := trust.DefaultDir(a.getenv); err != nil {
					all = append(all, repair.Check{Name: "approvals", Found: err.Error(), Problem: true, Mend: strings.TrimSpace(hint(err))})
				}
				all = append(all, a.wayToFleet(store.Project().Name())...)
				var err error
				for _, f := range all {
					sign := "✓"
					switch {
					case f.Problem:
						sign = "✗"
						bad++
					case f.Mend != "":
						sign = "!"
					}
					if a.out.machine() {
						continue
					}
					fmt.Fprintf(a.stdout, "%s %-12s %s\n", sign, f.Name, plain.Line(f.Found))
					if f.Mend != "" {
						fmt.Fprintf(a.stdout, "  %-12s %s\n", "", plain.Line(f.Mend))
					}
				}
				if a.out.machine() {
					err = a.printJSON(all)
				}
				if err == nil && bad > 0 {
					err = &problemsError{plain.Some(bad, "problem") + " found"}
				}
				return err
			})
		},
	})
}

// wrongSettings says what is wrong with the settings.
func (a *app) wrongSettings(store *lifecycle.Store) (all []repair.Check) {
	a.warnedIgnored = true // here they are lines of their own
	v, err := a.storeSettings(store, nil)
	if err != nil {
		return []repair.Check{{Name: "settings", Found: err.Error(), Problem: true, Mend: "correct or remove it: until then no run begins, and hooks keep nothing"}}
	}
	for _, text := range v.Wrong() {
		all = append(all, repair.Check{Name: "settings", Found: text, Problem: true, Mend: "correct or remove it"})
	}
	return all
}
