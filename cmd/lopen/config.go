package main

import (
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/lifecycle"
)

func newConfigShow(a *app) *cobra.Command {
	return a.reads(&cobra.Command{
		Use:   "show",
		Short: "Show the settings and where each comes from",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			var config []byte
			store, err := a.open()
			if err == nil {
				defer release(store)
				config, err = store.Config()
			}
			if err != nil && !errors.Is(err, lifecycle.ErrNoStore) {
				return err
			}
			values, err := a.settings(config, nil)
			if err != nil {
				return err
			}
			if a.out.machine() {
				return a.printJSON(values.All())
			}
			w := tabwriter.NewWriter(a.stdout, 0, 4, 2, ' ', 0)
			for _, e := range values.All() {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", e.Key, trust.Line(fmt.Sprint(e.Value)), e.Source, e.Help)
			}
			return w.Flush()
		},
	})
}

func newConfigSet(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "set KEY VALUE",
		Short: "Set a setting of this project, in .lopen/config.json",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.making(func(project string, store *lifecycle.Store) error {
				old, err := store.Config()
				if err != nil {
					return err
				}
				config, err := settings.Set(old, args[0], args[1])
				if err != nil {
					return &usageError{err}
				}
				if err := store.SetConfig(config); err != nil {
					return err
				}
				if args[0] != "check" || args[1] == "" {
					return nil
				}
				approvals, err := a.approvals()
				if err != nil {
					return err
				}
				a.approve(approvals, a.known(cmd.Context(), project), trust.Command{Shell: args[1]})
				return nil
			})
		},
	}
}
