package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// rewindFlags are those of `checkpoint rewind`, `checkpoint restore` and `undo`.
type rewindFlags struct {
	session                             string
	scope                               string
	dryRun, diff, contested, force, yes bool
	giveUp                              bool
}

func (rf *rewindFlags) add(cmd *cobra.Command) {
	sessionFlag(cmd, &rf.session)
	rf.addHow(cmd)
}

// addHow adds what does not say which session it is.
func (rf *rewindFlags) addHow(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&rf.dryRun, "dry-run", false, "say of each path what would change, change nothing")
	f.BoolVar(&rf.diff, "diff", false, "show what would change line by line")
	f.BoolVar(&rf.contested, "contested", false, "also what changed while a task of this session and others were at work, or one\nthat was cut off; not where the setting unattended is true")
	f.BoolVar(&rf.force, "force", false, "also what somebody else changed or has open, and leave what may not be written as it is;\nwhat only somebody else made is never deleted")
	f.BoolVarP(&rf.yes, "yes", "y", false, "do not ask")
}

func (rf *rewindFlags) addScope(cmd *cobra.Command) {
	cmd.Flags().StringVar(&rf.scope, "scope", "", "`files|state|both` (default both; files of an agent's own session, of a checkpoint\nof PATHs, and of one from before any session)")
}

func (rf *rewindFlags) options() (rewind.Options, error) {
	o := rewind.Options{Files: rf.scope != "state", State: rf.scope != "files", Contested: rf.contested, Force: rf.force}
	switch rf.scope {
	case "", "files", "state", "both":
		return o, nil
	}
	return o, usagef("--scope %q: give files, state or both", rf.scope)
}

const rewindLong = `
Brought back is what the tasks of this session alone changed since. What somebody else
changed is kept and named, with who and with the checkpoint that has it, and so is what
is ignored and what is in another repository. .git is never touched: commits and
branches stay as they are. A checkpoint is made first: lopen undo goes back to it. A
rewind that is cut off is finished by the next command that opens the session, which
says so. Where a file or folder may not be changed nothing is changed; with --force
everything else is, and what may not is named. What somebody has open for writing is
kept and named with the process; --force takes it, and what that process writes from
then on is lost. A rewind that meets an error takes back what it has changed.
` + checkpointHelp

func newCheckpointRewind(a *app) *cobra.Command {
	var rf rewindFlags
	cmd := a.jsonFlags(&cobra.Command{
		Use:   "rewind CP | --give-up",
		Short: "Bring files, tasks or both back to a checkpoint; lopen undo takes it back",
		Long:  "Bring files, tasks or both back to a checkpoint." + rewindLong,
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case rf.giveUp && len(args) > 0:
				return usagef("--give-up takes no checkpoint: it ends the rewind that was cut off, where the files are")
			case rf.giveUp:
				return a.giveUp(cmd.Context(), rf.session)
			case len(args) == 0:
				return usagef("name the checkpoint: lopen checkpoint list shows them")
			}
			return a.rewindTo(cmd.Context(), rf, args[0], nil)
		},
	})
	rf.add(cmd)
	rf.addScope(cmd)
	cmd.Flags().BoolVar(&rf.giveUp, "give-up", false, "without CP: end a rewind that was cut off, leave all files as they are now, and say\nwhich it has changed")
	return cmd
}

// rewindTo is rewind to a checkpoint that was named, and not by "".
func (a *app) rewindTo(ctx context.Context, rf rewindFlags, name string, paths []string) error {
	if name == "" {
		return usagef("an empty CP names no checkpoint: lopen checkpoint list shows them")
	}
	return a.rewind(ctx, rf, name, paths)
}

// A rewindCall is one call of `checkpoint rewind`, `checkpoint restore` or `undo`.
type rewindCall struct {
	*app
	rewindFlags
	name    string        // of the checkpoint; "" for the one that undo goes back to
	paths   []string      // of a restore, from where the command was called; nil of anything else
	to      checkpoint.ID // what name stands for
	target  rewindTarget  // what a person is told of it
	git     []string      // the words of git, for the folder of the session's work tree
	options rewind.Options
}

// rewind shows what would change, asks on a terminal, and does it.
func (a *app) rewind(ctx context.Context, rf rewindFlags, name string, paths []string) error {
	// What a stopped turn changed is shown as its own only once the turn has ended.
	stopped := a.settleNamed(ctx, rf.session)
	r, agreed, err := a.planRewind(ctx, rf, name, paths)
	if err != nil || !agreed {
		return err
	}
	// What was decided before the rewind must not be taken after it.
	if r.options.State {
		if err := a.editStoreWith(lifecycle.Policy{RewindPermitted: rf.force}, func(store *lifecycle.Store) error {
			id, err := store.Resolve(rf.session)
			if err != nil {
				return err
			}
			return a.settle(ctx, store, id.Module, nil)
		}); err != nil {
			return err
		}
	}
	err = a.editSession(ctx, rf.session, rf.force, func(_ *lifecycle.Store, sess *lifecycle.Session) error {
		_, err := r.do(ctx, sess)
		return err
	})
	if errors.Is(err, lifecycle.ErrBusy) && stopped != nil {
		return stopped
	}
	return err
}

// planRewind shows what would change, and asks on a terminal.
func (a *app) planRewind(ctx context.Context, rf rewindFlags, name string, paths []string) (r *rewindCall, agreed bool, err error) {
	r = &rewindCall{app: a, rewindFlags: rf, name: name, paths: paths}
	if r.options, err = rf.options(); err != nil {
		return nil, false, err
	}
	if err := a.refuseUnattended(rf); err != nil {
		return nil, false, err
	}
	agreed, err = r.look(ctx)
	return r, agreed, err
}

// leaveState leaves the State of an agent's own session as it is: its tasks are what a person asked, which
// no rewind takes back.
func (r *rewindCall) leaveState(made session.Origin) error {
	if made == session.OriginRun {
		return nil
	}
	if r.scope == "state" || r.scope == "both" {
		return usagef("--scope %s: what an agent was asked in its own session is not taken back; give files", r.scope)
	}
	r.options.State = false
	return nil
}

// look finds the checkpoint, shows what would change, and asks whether to do that.
func (r *rewindCall) look(ctx context.Context) (agreed bool, err error) {
	var would rewind.Result
	if err = r.readCheckpoints(r.session, func(store *lifecycle.Store, id session.ID, cps *chain) error {
		if err := r.find(store, id, cps); err != nil {
			return err
		}
		if err := r.leaveState(cps.made); err != nil {
			return err
		}
		if r.git = []string{"git"}; !git.Same(cps.folder, store.Project().Name()) {
			r.git = append(r.git, "-C", cps.folder)
		}
		if r.yes && !r.dryRun && !r.contested {
			return nil
		}
		if would, err = store.PlanRewind(ctx, id, r.to, r.options); err != nil {
			return r.failed(err)
		}
		r.target = newRewindTarget(store, id, would.To)
		return r.preview(cps, would)
	}); err != nil || r.dryRun || r.yes {
		return err == nil && !r.dryRun, err
	}
	return r.agreed(ctx, fmt.Sprintf("Rewind %s to %s?", r.target.session, r.target.to))
}

// find finds the checkpoint, and the paths of a restore.
func (r *rewindCall) find(store *lifecycle.Store, id session.ID, cps *chain) error {
	if r.name == "" {
		return nil
	}
	e, err := cps.find(r.name)
	if err != nil {
		return err
	}
	r.to = e.ID
	if r.scope == "" && e.FilesAlone() {
		fmt.Fprintf(r.stderr, "checkpoint %s has no tasks to go back to: its files alone are brought back\n", numbered(e))
		r.options.State = false
	}
	named := *e
	if cps.origin[e.ID] != nil { // its number is one of another chain
		named.Number = 0
	}
	r.target = newRewindTarget(store, id, &named)
	for _, p := range r.paths {
		path, err := r.restorable(cps.folder, cps.Tree(e.Root), p)
		if err != nil {
			return err
		}
		r.options.Paths = append(r.options.Paths, path)
	}
	if _, err := e.Among(r.options.Paths); err != nil {
		return usageIf(err, lifecycle.ErrInvalid)
	}
	if r.paths == nil || len(r.paths) > 0 {
		return nil
	}
	if !e.SetBack() {
		return usagef("give the PATH of what is to be brought back: files or folders, or . for everything")
	}
	if r.options.Paths, err = cps.setBack(e); err == nil && len(r.options.Paths) == 0 {
		err = fmt.Errorf("what was set back from checkpoint %s is not known: %w: name it, or bring everything back with: lopen checkpoint rewind %s --scope files", numbered(e), lifecycle.ErrNotFound, e.ID.Short())
	}
	return err
}

// preview shows what would change: the result of a dry run, else what the question is about.
func (r *rewindCall) preview(cps *chain, would rewind.Result) error {
	switch {
	case r.dryRun && r.out.machine():
		return r.printJSON(newRewindRow(would))
	case r.dryRun:
		r.target.show(r.stdout)
		return showRewindPlan(r.stdout, cps, r.git, would, true, r.diff)
	case !r.yes && !r.interactive():
		return usagef("nobody can be asked here: look with --dry-run, then give --yes")
	}
	r.target.show(r.stderr)
	return showRewindPlan(r.stderr, cps, r.git, would, r.contested, r.diff)
}

func (r *rewindCall) do(ctx context.Context, sess *lifecycle.Session) (done rewind.Result, err error) {
	switch was := sess.Finished(); {
	case r.name == "":
		done, err = sess.Undo(ctx, r.options)
	case was != nil && was.To.ID == r.to && r.paths == nil:
		done = *was // it was given again to be finished
	default:
		done, err = sess.Rewind(ctx, r.to, r.options)
	}
	if err != nil {
		return done, damagedData(r.failed(err))
	}
	if r.out.machine() {
		return done, r.printJSON(newRewindRow(done))
	}
	showRewind(r.stdout, r.git, done, false)
	if done.Before != nil {
		undo := "lopen undo"
		if r.session != "" { // undo alone is that of the newest
			undo += " --session " + sess.ID().String()
		}
		fmt.Fprintf(r.stderr, "rewound to %s; %s takes it back\n", cmp.Or(r.target.to, numbered(done.To)), undo)
	}
	return done, nil
}

// failed says of an undo whose checkpoint is not there that it is lost: whatever is removed, what
// undo goes back to stays.
func (r *rewindCall) failed(err error) error {
	if r.name != "" || !errors.Is(err, checkpoint.ErrNotFound) {
		return usageIf(err, lifecycle.ErrInvalid)
	}
	return &goneError{"undo: the data of the checkpoint that it goes back to is gone or damaged: " + doctorHint, lifecycle.ErrCorrupt}
}

// refuseUnattended refuses --contested where nobody watches.
func (a *app) refuseUnattended(rf rewindFlags) error {
	if !rf.contested || rf.dryRun {
		return nil
	}
	_, values, err := a.here()
	if err == nil && values.Unattended {
		err = usagef("--contested is for a person to decide, and the setting unattended says that nobody is there")
	}
	return err
}
