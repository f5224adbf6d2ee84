package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

func newCheckpointList(a *app) *cobra.Command {
	var name string
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "list",
		Short: "List the project's checkpoints, the oldest first",
		Long: `List the project's checkpoints, the oldest first: number, the begin of the ID, age,
reason, session, task, progress, what changed since the one before, the size of the files,
and whether it is pinned or contested: more than one task, or one that was cut off, was at
work since the one before. First come those of other work trees, which are named by their
IDs, and those that were imported with a session and are of another project's files. With --session those of that session, and those of the one that
it comes from up to there.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			rows := []checkpointRow{}
			list := func(store *lifecycle.Store, _ session.ID, cps *chain) error {
				failed, err := store.FailedTrees(cps.all)
				for _, e := range slices.Concat(cps.others, cps.all) {
					if name == "" || cps.line[e.ID] {
						row := cps.row(e)
						row.Failed = failed[e.Number] && cps.origin[e.ID] == nil
						rows = append(rows, row)
					}
				}
				return err
			}
			err := a.readCheckpoints(name, list)
			if err != nil && (!errors.Is(err, lifecycle.ErrNotFound) || name != "") {
				return err
			}
			if a.out.machine() {
				return a.printJSON(rows)
			}
			w := tabwriter.NewWriter(a.stdout, 0, 4, 2, ' ', 0)
			for _, r := range rows {
				fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%d/%d done\tfiles changed: %d\t%s\t%s\n", r.Number, r.ID.Short(), ago(time.Since(r.At)), r.Reason, sessionOf(r.Entry), r.Task,
					r.Tasks.Completed, r.Tasks.Total, r.Changed, bytesText(r.Bytes), strings.Join(r.marks(), ", "))
			}
			return w.Flush()
		},
	})
	sessionFlag(cmd, &name)
	return cmd
}

// marks are what the list says behind a checkpoint.
func (r *checkpointRow) marks() (marks []string) {
	if r.Pinned {
		marks = append(marks, "pinned")
	}
	if r.Failed {
		marks = append(marks, "pinned as failed:"+r.Task)
	}
	if r.Imported != "" {
		marks = append(marks, "imported")
	}
	if r.Worktree != "" {
		marks = append(marks, "in another work tree")
	}
	if r.Only != nil {
		marks = append(marks, strings.TrimPrefix(ofList(r.Entry), " "))
	}
	if r.Contested {
		marks = append(marks, "contested")
	}
	return marks
}
