package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// rewindFlags are those of `checkpoint rewind`, `checkpoint restore` and `undo`.
type rewindFlags struct {
	session                             string
	scope                               string
	dryRun, diff, contested, force, yes bool
}

func (rf *rewindFlags) add(cmd *cobra.Command) {
	sessionFlag(cmd, &rf.session)
	f := cmd.Flags()
	f.BoolVar(&rf.dryRun, "dry-run", false, "say of each path what would change, change nothing")
	f.BoolVar(&rf.diff, "diff", false, "show what would change line by line")
	f.BoolVar(&rf.contested, "contested", false, "also what changed while a task of this session and others were at work, or one\nthat was cut off; not where the setting unattended is true")
	f.BoolVar(&rf.force, "force", false, "also what somebody else changed, and leave what may not be written as it is;\nwhat only somebody else made is never deleted")
	f.BoolVarP(&rf.yes, "yes", "y", false, "do not ask")
}

func (rf *rewindFlags) addScope(cmd *cobra.Command) {
	cmd.Flags().StringVar(&rf.scope, "scope", "both", "`files|state|both`")
}

func (rf *rewindFlags) options() (lifecycle.RewindOptions, error) {
	o := lifecycle.RewindOptions{Files: rf.scope != "state", State: rf.scope != "files", Contested: rf.contested, Force: rf.force}
	switch rf.scope {
	case "files", "state", "both":
		return o, nil
	}
	return o, usagef("--scope %q: give files, state or both", rf.scope)
}

const rewindLong = `
Brought back is what the tasks of this session alone changed since. What somebody else
changed is kept and named, with who and with the checkpoint that has it, and so is what
is ignored and what is in another repository. .git is never touched: commits and branches
stay as they are. A checkpoint is made first: lopen undo goes back to it. A rewind that is
cut off is finished by the next command that opens the session. Where a file or folder may
not be written nothing is changed; with --force everything else is, and what may not is
named.
CP is a number, the begin of an ID, last, before:TASK, after:TASK or failed:TASK.`

func newCheckpointRewind(a *app) *cobra.Command {
	var rf rewindFlags
	cmd := a.reads(&cobra.Command{
		Use:   "rewind CP",
		Short: "Bring files, tasks or both back to a checkpoint; lopen undo takes it back",
		Long:  "Bring files, tasks or both back to a checkpoint." + rewindLong,
		Args:  cobra.ExactArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return a.rewind(cmd.Context(), rf, args[0], nil) },
	})
	rf.add(cmd)
	rf.addScope(cmd)
	return cmd
}

// rewind says what would change, asks on a terminal, and does it. name is the checkpoint,
// "" the one that undo goes back to; paths are those of a restore, from where the command
// was called, nil of anything else.
func (a *app) rewind(ctx context.Context, rf rewindFlags, name string, paths []string) error {
	opts, err := rf.options()
	if err != nil {
		return err
	}
	if err := a.watched(rf); err != nil {
		return err
	}
	var to checkpoint.ID
	var would lifecycle.Rewound
	err = a.lookingAt(rf.session, func(store *lifecycle.Store, id session.ID, cps *chain) error {
		if name != "" {
			e, err := cps.find(name)
			if err != nil {
				return err
			}
			to = e.ID
			for _, p := range paths {
				path, err := a.restorable(store, cps.Tree(e.Root), p)
				if err != nil {
					return err
				}
				opts.Paths = append(opts.Paths, path)
			}
			if paths != nil && len(paths) == 0 {
				if !e.SetBack() {
					return usagef("give the PATH of what is to be brought back: files or folders, or . for everything")
				}
				if opts.Paths, err = cps.setBack(e); err != nil {
					return err
				}
				if len(opts.Paths) == 0 {
					return fmt.Errorf("what was set back from checkpoint %s is not known: %w: name it, or bring everything back with: lopen checkpoint rewind %s --scope files", numbered(e), lifecycle.ErrNotFound, e.ID.Short())
				}
			}
		}
		if rf.yes && !rf.dryRun && !rf.contested {
			return nil
		}
		if would, err = store.PlanRewind(ctx, id, to, opts); err != nil {
			return err
		}
		switch {
		case rf.dryRun && a.out.machine():
			return a.printJSON(newRewindRow(would))
		case rf.dryRun:
			return a.preview(a.stdout, cps, would, true, rf.diff)
		case !rf.yes && !a.interactive():
			return usagef("nobody can be asked here: look with --dry-run, then give --yes")
		}
		return a.preview(a.stderr, cps, would, rf.contested, rf.diff)
	})
	if err != nil || rf.dryRun {
		return err
	}
	if !rf.yes {
		answer, err := a.ask(ctx, fmt.Sprintf("Rewind to %s? [y/N] ", numbered(would.To)))
		if err != nil || answer == "" || answer[0] != 'y' && answer[0] != 'Y' {
			return err
		}
	}
	return a.withSession(ctx, rf.session, rf.force, func(_ *lifecycle.Store, sess *lifecycle.Session) error {
		var done lifecycle.Rewound
		if name == "" {
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
		showRewind(a.stdout, done, false)
		if done.Before != nil {
			fmt.Fprintf(a.stderr, "rewound to %s; lopen undo takes it back\n", numbered(done.To))
		}
		return nil
	})
}

// watched refuses --contested where nobody watches.
func (a *app) watched(rf rewindFlags) error {
	if !rf.contested || rf.dryRun {
		return nil
	}
	project, err := a.project()
	if err != nil {
		return err
	}
	values, err := a.projectSettings(project, nil)
	if err == nil && values.Bool("unattended") {
		err = usagef("--contested is for a person to decide, and the setting unattended says that nobody is there")
	}
	return err
}
