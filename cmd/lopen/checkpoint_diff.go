package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
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
				changes, err := cps.compare(cmd.Context(), id, args)
				switch {
				case err != nil:
					return err
				case nameOnly:
					return a.printChanges(changes)
				case !stat && !a.out.machine():
					return a.printPatches(cps, changes)
				}
				rows, err := cps.diffRows(changes)
				switch {
				case err != nil:
					return err
				case a.out.machine():
					return a.printJSON(rows)
				}
				return printStat(a.stdout, rows, len(rows))
			})
		},
	})
	sessionFlag(cmd, &name)
	cmd.Flags().BoolVar(&stat, "stat", false, "how many lines, not which")
	cmd.Flags().BoolVar(&nameOnly, "name-only", false, "a line a file: A created, M modified, D deleted, R moved, m mode")
	return cmd
}

// compare returns what differs between two checkpoints that are named, or between one and the files
// now.
func (c *chain) compare(ctx context.Context, id session.ID, names []string) ([]files.Change, error) {
	from, err := c.find(names[0])
	if err != nil {
		return nil, err
	}
	var to *checkpoint.Tree
	if len(names) > 1 {
		e, err := c.find(names[1])
		if err != nil {
			return nil, err
		}
		to = c.Tree(e.Root)
	} else {
		meta := checkpoint.Meta{Reason: checkpoint.Manual, Target: from.Number}
		if id != (session.ID{}) {
			meta.Session = id.String()
		}
		if c.origin[from.ID] != nil {
			meta.Target = 0 // its number is one of another chain
		}
		if c.Gone != nil {
			return nil, c.Gone
		}
		if _, to, err = c.Look(ctx, meta); err != nil {
			return nil, err
		}
	}
	return checkpoint.Diff(c.Tree(from.Root), to)
}

// diffRow is a change as `checkpoint diff --json` prints it.
type diffRow struct {
	Kind files.Kind `json:"kind"`
	Path string     `json:"path"`
	From string     `json:"from,omitempty"`
	checkpoint.Lines
	Unstored string `json:"unstored,omitempty"` // numbers of files and bytes that no checkpoint has
}

// diffRows counts the lines of changes.
func (c *chain) diffRows(changes []files.Change) ([]diffRow, error) {
	rows := []diffRow{}
	for _, ch := range changes {
		lines, err := c.Lines(ch.Old, ch.New)
		if err != nil {
			return nil, err
		}
		_, unstored := ch.Unstored()
		rows = append(rows, diffRow{ch.Kind, ch.Path, ch.From, lines, unstored})
	}
	return rows, nil
}

// printStat prints changes with their numbers of lines. all is how many there are.
func printStat(w io.Writer, rows []diffRow, all int) error {
	added, deleted := 0, 0
	for _, r := range rows {
		numbers := fmt.Sprintf("+%d -%d", r.Added, r.Deleted)
		if r.Binary {
			numbers = "binary"
		}
		if r.Unstored != "" {
			numbers = r.Unstored + ", not stored"
		}
		fmt.Fprintf(w, "%s %s  %s\n", letters[r.Kind], shown(r.Path), numbers)
		added, deleted = added+r.Added, deleted+r.Deleted
	}
	lines := "lines"
	if more := all - len(rows); more > 0 {
		lines = "lines of those above"
		fmt.Fprintf(w, "and %s\n", plain.Some(more, "more file"))
	}
	_, err := fmt.Fprintf(w, "files: %d, %s: +%d -%d\n", all, lines, added, deleted)
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
