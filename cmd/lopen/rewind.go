package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/plain"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// rewindFlags are those of `checkpoint rewind` and `undo`.
type rewindFlags struct {
	session            string
	scope              string
	dryRun, force, yes bool
}

func (rf *rewindFlags) add(cmd *cobra.Command) {
	sessionFlag(cmd, &rf.session)
	f := cmd.Flags()
	f.StringVar(&rf.scope, "scope", "both", "`files|state|both`")
	f.BoolVar(&rf.dryRun, "dry-run", false, "say what would change, change nothing")
	f.BoolVar(&rf.force, "force", false, "also overwrite what somebody else changed since the last checkpoint, and leave\nwhat may not be written as it is")
	f.BoolVarP(&rf.yes, "yes", "y", false, "do not ask")
}

func (rf *rewindFlags) options() (lifecycle.RewindOptions, error) {
	o := lifecycle.RewindOptions{Files: rf.scope != "state", State: rf.scope != "files", Force: rf.force}
	switch rf.scope {
	case "files", "state", "both":
		return o, nil
	}
	return o, usagef("--scope %q: give files, state or both", rf.scope)
}

func newCheckpointRewind(a *app) *cobra.Command {
	var rf rewindFlags
	cmd := a.reads(&cobra.Command{
		Use:   "rewind CP",
		Short: "Bring files, tasks or both back to a checkpoint; lopen undo takes it back",
		Long: `Bring files, tasks or both back to a checkpoint. What somebody else than the loop changed
since the last checkpoint is kept and named, and so is what the checkpoint did not know of.
A checkpoint is made first: lopen undo goes back to it. A rewind that is cut off is finished
by the next command that opens the session. Where a file or folder may not be written nothing is
changed; with --force everything else is, and what may not is named.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.rewind(cmd.Context(), rf, func(cps *lifecycle.Checkpoints) (checkpoint.ID, error) { return findCheckpoint(cps, args[0]) })
		},
	})
	rf.add(cmd)
	return cmd
}

func newUndo(a *app) *cobra.Command {
	var rf rewindFlags
	cmd := a.reads(&cobra.Command{
		Use:   "undo",
		Short: "Take the last rewind back",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.rewind(cmd.Context(), rf, func(*lifecycle.Checkpoints) (checkpoint.ID, error) { return 0, nil })
		},
	})
	rf.add(cmd)
	return cmd
}

// rewind says what would change, asks on a terminal, and does it. find names the
// checkpoint; 0 is the one that undo goes back to.
func (a *app) rewind(ctx context.Context, rf rewindFlags, find func(*lifecycle.Checkpoints) (checkpoint.ID, error)) error {
	opts, err := rf.options()
	if err != nil {
		return err
	}
	var to checkpoint.ID
	var would lifecycle.Rewound
	err = a.lookingAt(rf.session, func(store *lifecycle.Store, id session.ID, cps *lifecycle.Checkpoints) (err error) {
		if to, err = find(cps); err != nil || rf.yes && !rf.dryRun {
			return err
		}
		if would, err = store.PlanRewind(ctx, id, to, opts); err != nil {
			return err
		}
		switch {
		case rf.dryRun && a.out.machine():
			return a.printJSON(newRewindRow(would))
		case rf.dryRun:
			return a.showRewind(a.stdout, store, id, would, true)
		case !a.interactive():
			return usagef("nobody can be asked here: look with --dry-run, then give --yes")
		}
		return a.showRewind(a.stderr, store, id, would, true)
	})
	if err != nil || rf.dryRun {
		return err
	}
	if !rf.yes {
		answer, err := a.ask(ctx, fmt.Sprintf("Rewind to %s? [y/N] ", would.To))
		if err != nil || answer == "" || answer[0] != 'y' && answer[0] != 'Y' {
			return err
		}
	}
	return a.withSession(ctx, rf.session, rf.force, func(store *lifecycle.Store, sess *lifecycle.Session) error {
		var done lifecycle.Rewound
		if to == 0 {
			done, err = sess.Undo(ctx, opts)
		} else {
			done, err = sess.Rewind(ctx, to, opts)
		}
		if err != nil {
			return err
		}
		if a.out.machine() {
			return a.printJSON(newRewindRow(done))
		}
		if err := a.showRewind(a.stdout, store, sess.ID(), done, false); err != nil {
			return err
		}
		if done.Before != 0 {
			fmt.Fprintf(a.stderr, "rewound to %s; lopen undo takes it back\n", done.To)
		}
		return nil
	})
}

// rewindRow is a rewind as --json prints it.
type rewindRow struct {
	To      checkpoint.ID     `json:"to"`
	Before  *checkpoint.ID    `json:"before,omitempty"`
	Changes []rewindChange    `json:"changes"`
	Kept    []checkpoint.Kept `json:"kept"`
	Tasks   []rewindTask      `json:"tasks"`
}

type rewindChange struct {
	Kind checkpoint.Kind `json:"kind"`
	Path string          `json:"path"`
}

type rewindTask struct {
	ID    string `json:"id"`
	State string `json:"state"`
}

func newRewindRow(r lifecycle.Rewound) rewindRow {
	row := rewindRow{To: r.To, Changes: []rewindChange{}, Kept: append([]checkpoint.Kept{}, r.Kept...), Tasks: []rewindTask{}}
	if r.Before != 0 {
		row.Before = &r.Before
	}
	for _, c := range r.Changes {
		row.Changes = append(row.Changes, rewindChange{c.Kind, c.Path})
	}
	for _, t := range r.Tasks {
		row.Tasks = append(row.Tasks, rewindTask{t.ID, string(t.State)})
	}
	return row
}

// showRewind tells what a rewind changes, with patches before it is done.
func (a *app) showRewind(w *plain.Stream, store *lifecycle.Store, id session.ID, r lifecycle.Rewound, patches bool) error {
	cps, err := store.Checkpoints(id)
	if err != nil {
		return err
	}
	defer cps.Close()
	for _, c := range r.Changes {
		fmt.Fprintf(w, "%-9s %s\n", c.Kind, shown(c.Path))
	}
	for _, k := range r.Kept {
		to := ""
		if k.To != "" {
			to = " to " + shown(k.To)
		}
		fmt.Fprintf(w, "%-9s %s (%s%s)\n", "keep", shown(k.Path), k.Why, to)
	}
	for _, t := range r.Tasks {
		fmt.Fprintf(w, "%-9s %s: %s\n", "task", t.ID, t.State)
	}
	if len(r.Changes)+len(r.Tasks) == 0 {
		fmt.Fprintln(w, "nothing changes")
	}
	if !patches {
		return nil
	}
	for _, c := range r.Changes {
		patch, err := cps.Patch(c.Old, c.New)
		if err != nil {
			return err
		}
		fmt.Fprint(w.Content(), patch)
	}
	return nil
}
