package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/plain"
)

// findingRow is what `doctor --json` prints of one finding.
type findingRow struct {
	Name    string `json:"name"`
	Found   string `json:"found"`
	Problem bool   `json:"problem"`
	Mend    string `json:"mend,omitempty"`
}

func newDoctor(a *app) *cobra.Command {
	return a.jsonFlags(&cobra.Command{
		Use:   "doctor",
		Short: "Look at disk, locks and sessions, and say what to mend",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := a.open()
			if err != nil {
				return err
			}
			defer release(store)
			rows, bad := []findingRow{}, 0
			for _, f := range store.Doctor(cmd.Context()) {
				rows = append(rows, findingRow(f))
				if f.Problem {
					bad++
				}
			}
			if a.out.machine() {
				err = a.printJSON(rows)
			} else {
				for _, f := range rows {
					sign := "✓"
					switch {
					case f.Problem:
						sign = "✗"
					case f.Mend != "":
						sign = "!"
					}
					fmt.Fprintf(a.stdout, "%s %-12s %s\n", sign, f.Name, plain.Line(f.Found))
					if f.Mend != "" {
						fmt.Fprintf(a.stdout, "  %-12s %s\n", "", plain.Line(f.Mend))
					}
				}
			}
			if err == nil && bad > 0 {
				err = &problemsError{fmt.Sprintf("%d problems found", bad)}
			}
			return err
		},
	})
}
