package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle/sidecar"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newTransactionLog(a *app) *cobra.Command {
	return a.jsonFlags(&cobra.Command{
		Use:   "log [ID]",
		Short: "List the commits of a transaction, the newest first",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.readTransaction(args, func(all *transactions, t *sidecar.Transaction) error {
				commits, err := all.Log(cmd.Context(), t)
				if err != nil {
					return err
				}
				if a.out.machine() {
					return a.printJSON(append([]sidecar.Commit{}, commits...))
				}
				for _, c := range commits {
					of := ""
					if !c.Checkpoint.IsZero() {
						of = c.Checkpoint.Short()
					}
					fmt.Fprintf(a.stdout, "%s\t%s\t%s\t%s\n", c.ID[:12], c.At.Local().Format(time.DateTime), of, plain.Line(c.Subject))
				}
				return nil
			})
		},
	})
}
