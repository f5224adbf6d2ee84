package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/writer/plain"
)

// approvalJSON is one row of `trust list --json`: a command, a check, or what was set with config set.
type approvalJSON struct {
	Project    string     `json:"project"`
	Repository string     `json:"repository,omitempty"`
	Command    []string   `json:"command,omitempty"`
	Check      string     `json:"check,omitempty"`
	Setting    string     `json:"setting,omitempty"`
	Value      string     `json:"value,omitempty"`
	ApprovedAt *time.Time `json:"approvedAt,omitempty"`
}

func newTrustList(a *app) *cobra.Command {
	return a.jsonFlags(&cobra.Command{
		Use:   "list",
		Short: "List what you approved and set, by project, with credentials hidden",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			store, err := a.approvals()
			if err != nil {
				return err
			}
			rows, err := approvalRows(store)
			if err != nil {
				fmt.Fprintf(a.stderr, "warning: %v\n", err)
			}
			if a.out.machine() {
				return a.printJSON(rows)
			}
			for i, row := range rows {
				if i == 0 || rows[i-1].Project != row.Project || rows[i-1].Repository != row.Repository {
					fmt.Fprintln(a.stdout, plain.Line(row.Project))
				}
				if row.ApprovedAt == nil {
					fmt.Fprintf(a.stdout, "  set %s\n", quoted([]string{row.Setting, row.Value}))
					continue
				}
				fmt.Fprintf(a.stdout, "  %s  %s\n", row.ApprovedAt.Local().Format(time.DateTime), trust.Command{Argv: row.Command, Shell: row.Check})
			}
			return nil
		},
	})
}

// approvalRows are what the user approved, and behind it what they set. What cannot be read is left out; the error names it.
func approvalRows(store *trust.Store) ([]approvalJSON, error) {
	all, err := store.All()
	here, herr := store.AllHere()
	if !errors.Is(err, herr) { // else it is the same one
		err = errors.Join(err, herr)
	}
	var hide redact.Redactor
	rows := make([]approvalJSON, len(all))
	for i, p := range all {
		argv, _ := hide.Args(p.Argv)
		check, _ := hide.String(p.Shell)
		rows[i] = approvalJSON{Project: p.Folder, Repository: p.Repository, Command: argv, Check: check, ApprovedAt: &p.At}
	}
	for _, h := range here {
		for _, name := range slices.Sorted(maps.Keys(h.Settings)) {
			value, _ := hide.String(string(h.Settings[name].Value))
			rows = append(rows, approvalJSON{Project: h.Folder, Setting: name, Value: value})
		}
	}
	return rows, err
}
