package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// errNotThere says that a checkpoint has nothing at a path.
var errNotThere = fmt.Errorf("the checkpoint has no such path: %w", lifecycle.ErrNotFound)

func newCheckpointShow(a *app) *cobra.Command {
	var name string
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "show CP [PATH]",
		Short: "Show what a checkpoint holds, of all files or of one file or folder",
		Long:  "Show what a checkpoint holds, of all files or of one file or folder.\n\n" + checkpointHelp,
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.readCheckpoints(name, func(store *lifecycle.Store, _ session.ID, cps *chain) error {
				e, err := cps.find(args[0])
				if err != nil {
					return err
				}
				path, err := a.pathOf(args[1:])
				if err != nil {
					return err
				}
				row := cps.row(e)
				if row.Entries, err = beneath(cps.Tree(e.Root), path); err != nil {
					return err
				}
				if a.out.machine() {
					return a.printJSON(row)
				}
				fmt.Fprintf(a.stdout, "%s  %s  %s %s, %s, record %d, %d/%d tasks done, %s\n", numbered(e), e.At.Local().Format(time.DateTime), e.Reason, e.Task,
					sessionOf(e), e.Seq, e.Tasks.Completed, e.Tasks.Total, bytesText(e.Bytes))
				about := fmt.Sprintf("%s changed, %s", plain.Some(e.Changed, "path"), plain.Some(e.Messages, "message"))
				for _, t := range e.Active {
					about += ", at work on " + plain.Line(t.Task)
				}
				if len(e.Tasks.Dependencies) > 0 {
					about += ", after " + plain.Line(strings.Join(e.Tasks.Dependencies, ", "))
				}
				fmt.Fprintln(a.stdout, about)
				if e.Only != nil {
					fmt.Fprintf(a.stdout, "a checkpoint%s: all else is as in the one before\n", ofList(e))
				}
				if e.Git != (checkpoint.Git{}) {
					fmt.Fprintf(a.stdout, "git: %s\n", gitText(e.Git))
				}
				for _, f := range row.Entries {
					fmt.Fprintf(a.stdout, "%s %10d %s\n", f.Mode, f.Size, shown(f.Path))
				}
				return a.warnUnrecorded(store, e)
			})
		},
	})
	sessionFlag(cmd, &name)
	return cmd
}

// beneath is what a tree has at a path and in it.
func beneath(tree *checkpoint.Tree, path string) ([]checkpointEnt, error) {
	all := []checkpointEnt{}
	for f, err := range tree.All() {
		if err != nil {
			return nil, err
		}
		if path != "." && f.Path != path && !strings.HasPrefix(f.Path, path+"/") {
			continue
		}
		ent := checkpointEnt{Path: f.Path, Mode: f.Mode.String(), Size: f.Size, Target: f.Target}
		if f.Mode.IsRegular() {
			ent.SHA256 = f.Hash.String()
		}
		all = append(all, ent)
	}
	if path == "." || len(all) > 0 {
		return all, nil
	}
	_, err := at(tree, path)
	return nil, err
}

// at is what a tree has at a path. The error is errNotThere where there is nothing.
func at(tree *checkpoint.Tree, path string) (*files.Fingerprint, error) {
	f, known, err := tree.Find(path)
	switch {
	case err != nil:
		return nil, err
	case f == nil && !known:
		return nil, fmt.Errorf("%s: it was there and could not be recorded: %w", shown(path), lifecycle.ErrNotFound)
	case f == nil:
		return nil, fmt.Errorf("%s: %w", shown(path), errNotThere)
	case f.Mode&files.ModeHidden == files.ModeHidden:
		return nil, fmt.Errorf("%s: it was there and was not stored, because a rule hides it that a task wrote: %w", shown(path), lifecycle.ErrNotFound)
	}
	return f, nil
}

// gitText is a repository's HEAD on a line.
func gitText(g checkpoint.Git) string {
	head := g.Head
	switch {
	case g == checkpoint.Git{}:
		return "no repository"
	case head == "":
		head = "no commit"
	case len(head) > 12:
		head = head[:12]
	}
	return head + parenthesis(g.Branch)
}
