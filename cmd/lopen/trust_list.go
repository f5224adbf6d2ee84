package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/writer/plain"
)

// approvalJSON is one row of `trust list --json`.
type approvalJSON struct {
	Project    string    `json:"project"`
	Repository string    `json:"repository,omitempty"`
	Command    []string  `json:"command,omitempty"`
	Check      string    `json:"check,omitempty"`
	ApprovedAt time.Time `json:"approvedAt"`
}

func newTrustList(a *app) *cobra.Command {
	return a.jsonFlags(&cobra.Command{
		Use:   "list",
		Short: "List the commands that you approved, by project, with credentials hidden",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			store, err := a.approvals()
			if err != nil {
				return err
			}
			all, err := store.All()
			if err != nil {
				fmt.Fprintf(a.stderr, "warning: %v\n", err)
			}
			var hide redact.Redactor
			rows := make([]approvalJSON, len(all))
			for i, p := range all {
				argv, _ := hide.Args(p.Argv)
				check, _ := hide.String(p.Shell)
				rows[i] = approvalJSON{p.Folder, p.Repository, argv, check, p.At}
			}
			if a.out.machine() {
				return a.printJSON(rows)
			}
			for i, row := range rows {
				if i == 0 || rows[i-1].Project != row.Project || rows[i-1].Repository != row.Repository {
					fmt.Fprintln(a.stdout, plain.Line(row.Project))
				}
				fmt.Fprintf(a.stdout, "  %s  %s\n", row.ApprovedAt.Local().Format(time.DateTime), trust.Command{Argv: row.Command, Shell: row.Check})
			}
			return nil
		},
	})
}
