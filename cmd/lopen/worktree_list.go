package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newWorktreeList(a *app) *cobra.Command {
	return a.jsonFlags(&cobra.Command{
		Use:   "list",
		Short: "List the work trees of sessions, and branches lopen/SESSION that were left",
		Long: `List the linked work trees of sessions, the newest session first: session, status, branch,
how many commits the branch has that HEAD of the project does not have, the folder, whether
something there is not committed, who works there, and what is not as it should be. Then come branches lopen/SESSION
whose session is not here any more.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.readStore(func(store *lifecycle.Store) error {
				v, err := a.worktrees(cmd.Context(), store)
				if err != nil {
					return err
				}
				rows, err := v.all(cmd.Context())
				if err != nil {
					return err
				}
				if a.out.machine() {
					return a.printJSON(rows)
				}
				return a.showWorktrees(rows)
			})
		},
	})
}

func (a *app) showWorktrees(rows []worktreeRow) error {
	w := tabwriter.NewWriter(a.stdout, 0, 4, 2, ' ', 0)
	for _, r := range rows {
		merged := plain.Some(r.Ahead, "commit") + " to merge"
		switch {
		case r.Merged:
			merged = "merged"
		case r.Ahead == 0:
			merged = "-"
		}
		var notes []string
		if r.Dirty {
			notes = append(notes, "something is not committed")
		}
		if r.Holder != "" {
			notes = append(notes, "held by "+plain.Line(r.Holder))
		}
		if r.Problem != "" {
			notes = append(notes, plain.Line(r.Problem))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", dash(r.Session), dash(r.Status), plain.Line(dash(r.Branch)), merged, plain.Line(dash(r.Path)), strings.Join(notes, "; "))
	}
	return w.Flush()
}

// dash is a text, or a dash in the place of none.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
