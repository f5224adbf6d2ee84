package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

func newCheckpointDiff(a *app) *cobra.Command {
	var name string
	var stat, nameOnly bool
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "diff CP [CP]",
		Short: "Show what differs between two checkpoints, or between one and the files now",
		Long:  "Show what differs between two checkpoints, or between one and the files now. A file of\nmore than 1 MiB is only said to differ, and not read.\n\n" + checkpointHelp,
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.readCheckpoints(name, func(_ *lifecycle.Store, id session.ID, cps *chain) error {
				from, err := cps.find(args[0])
				if err != nil {
					return err
				}
				var to *checkpoint.Tree
				if len(args) == 1 {
					meta := checkpoint.Meta{Session: id.String(), Reason: checkpoint.Manual, Target: from.Number}
					if cps.origin[from.ID] != nil {
						meta.Target = 0 // its number is one of another chain
					}
					if cps.Gone != nil {
						return cps.Gone
					}
					_, to, err = cps.Look(cmd.Context(), meta)
				} else {
					var e *checkpoint.Entry
					if e, err = cps.find(args[1]); err == nil {
						to = cps.Tree(e.Root)
					}
				}
				if err != nil {
					return err
				}
				changes, err := checkpoint.Diff(cps.Tree(from.Root), to)
				switch {
				case err != nil:
					return err
				case nameOnly:
					return a.printChanges(changes)
				case a.out.machine():
					return a.printDiffJSON(cps, changes)
				case stat:
					return a.printStat(cps, changes)
				}
				return a.printPatches(cps, changes)
			})
		},
	})
	sessionFlag(cmd, &name)
	cmd.Flags().BoolVar(&stat, "stat", false, "how many lines, not which")
	cmd.Flags().BoolVar(&nameOnly, "name-only", false, "a line a file: A created, M modified, D deleted, R moved, m mode")
	return cmd
}

// diffRow is a change as `checkpoint diff --json` prints it.
type diffRow struct {
	Kind files.Kind `json:"kind"`
	Path string     `json:"path"`
	From string     `json:"from,omitempty"`
	checkpoint.Lines
}

func (a *app) printDiffJSON(cps *chain, changes []files.Change) error {
	rows := []diffRow{}
	for _, c := range changes {
		lines, err := cps.Lines(c.Old, c.New)
		if err != nil {
			return err
		}
		rows = append(rows, diffRow{c.Kind, c.Path, c.From, lines})
	}
	return a.printJSON(rows)
}

func (a *app) printStat(cps *chain, changes []files.Change) error {
	added, deleted := 0, 0
	for _, c := range changes {
		lines, err := cps.Lines(c.Old, c.New)
		if err != nil {
			return err
		}
		numbers := fmt.Sprintf("+%d -%d", lines.Added, lines.Deleted)
		if lines.Binary {
			numbers = "binary"
		}
		fmt.Fprintf(a.stdout, "%s %s  %s\n", letters[c.Kind], shown(c.Path), numbers)
		added, deleted = added+lines.Added, deleted+lines.Deleted
	}
	_, err := fmt.Fprintf(a.stdout, "files: %d, lines: +%d -%d\n", len(changes), added, deleted)
	return err
}

func (a *app) printPatches(cps *chain, changes []files.Change) error {
	for _, c := range changes {
		patch, err := cps.Patch(c.Old, c.New)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprint(a.stdout.Content(), patch); err != nil {
			return err
		}
	}
	return nil
}
