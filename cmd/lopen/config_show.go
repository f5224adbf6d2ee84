package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/writer/plain"
)

func newConfigShow(a *app) *cobra.Command {
	return a.jsonFlags(&cobra.Command{
		Use:   "show",
		Short: "Show the settings and where each comes from",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			project, values, err := a.here()
			if err != nil {
				return err
			}
			if a.out.machine() {
				return a.printJSON(values.All())
			}
			w := tabwriter.NewWriter(a.stdout, 0, 4, 2, ' ', 0)
			for _, e := range values.All() {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", e.Key, plain.Shell(fmt.Sprint(e.Value)), e.Source, e.Whose, e.Help)
			}
			if where := a.sendsTo(project); where != "" {
				fmt.Fprintf(w, "fleet\t%s\tjoined\tuser\tgets the sessions, plans and files of runs: lopen fleet leave\n", where)
			}
			return w.Flush()
		},
	})
}
