package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"text/template"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lopen-dev/lopen/cache/sections"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/awake"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/documents"
	"github.com/lopen-dev/lopen/writer/plain"
)

// runFlags are the flags of run that are no settings.
type runFlags struct {
	task         string
	from         string
	through      string
	again        bool
	resume       string
	noResume     bool
	prompt       string
	dryRun       bool
	pauseTimeout time.Duration
	noCheckpoint bool
	noCheck      bool
	noSave       bool
	transaction  bool
	worktree     bool
	commit       bool
	branch       bool
	requireGreen bool
	keepFailed   bool
	besideLeft   bool
	until        string
}

func newRun(a *app) *cobra.Command {
	var rf runFlags
	cmd := &cobra.Command{
		Args:  cobra.ArbitraryArgs,
		Use:   "run [MODULE] [flags] [-- CMD [ARG...]]",
		Short: "Start CMD on each task of a module's plan until all are done",
		Long:  runHelp,
		Example: `  lopen run auth --check 'make test' -- claude -p --permission-mode acceptEdits
  lopen run auth --check 'make test' -- codex exec --sandbox workspace-write -
  lopen run auth            goes on with the command that the session remembers
  lopen run                 the same, where one module alone is not finished`,
		RunE: func(cmd *cobra.Command, args []string) error {
			before, command := atDash(cmd, args)
			if len(before) > 1 {
				if dashes := a.putDashes(cmd); dashes != "" {
					return usagef("%s", dashes)
				}
				return usagef("give one MODULE at most, and the command after --: lopen run MODULE -- CMD")
			}
			r := runCall{app: a, runFlags: rf, command: command, flags: rf.given(cmd.Flags()), checkTyped: cmd.Flags().Changed("check")}
			if len(before) > 0 {
				r.module = before[0]
			}
			r.commitTyped, r.branchTyped = cmd.Flags().Changed("commit"), cmd.Flags().Changed("branch")
			r.pauseTimeoutSet = cmd.Flags().Changed("pause-timeout")
			return r.run(cmd.Context())
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if dashes := a.putDashes(cmd); dashes != "" {
			return usagef("%w; %s", err, dashes)
		}
		return usagef("%w; see `%s --help`", err, cmd.CommandPath())
	})
	rf.add(cmd.Flags())
	cmd.MarkFlagsMutuallyExclusive("task", "from")
	cmd.MarkFlagsMutuallyExclusive("task", "through")
	cmd.MarkFlagsMutuallyExclusive("resume", "no-resume")
	cmd.MarkFlagsMutuallyExclusive("resume", "no-save")
	cmd.MarkFlagsMutuallyExclusive("transcript", "no-save")
	cmd.MarkFlagsMutuallyExclusive("output", "no-save")
	cmd.MarkFlagsMutuallyExclusive("transaction", "no-save")
	cmd.MarkFlagsMutuallyExclusive("worktree", "no-save")
	cmd.MarkFlagsMutuallyExclusive("worktree", "resume")
	cmd.MarkFlagsMutuallyExclusive("worktree", "branch")
	cmd.MarkFlagsMutuallyExclusive("transaction", "no-checkpoint")
	cmd.MarkFlagsMutuallyExclusive("commit", "no-save")
	cmd.MarkFlagsMutuallyExclusive("check", "no-check")
	return cmd
}

const runHelp = `Start CMD on each task of a module's plan until all are done.

A task is done when CMD ends well and --check exits 0; lopen then ticks its box. The plan,
.lopen/modules/MODULE/plan.md, is yours, also while a run goes on: what you add, reword, move
or remove counts before the next task, and so does what you decide with lopen plan tick,
untick, skip, revive and mark. A box that changes in the file while CMD works is set
back, as CMD does not decide what is done; one that you change between two runs counts.

A task that has used up its attempts gets a mark behind its text, <!-- lopen: failed,
3 attempts -->, and the next run tries it again: lopen help plan mark. One that you skip, here
or with lopen plan skip, has the mark <!-- lopen: skipped -->, and is named at the end.

--task, --from and --through run a part of the plan. What waits for a task outside of it is
blocked. What is done there is not done again without --again. The session is paused then:
lopen run MODULE goes on with the rest.

` + taskHelp

// add adds the flags in the order of the help: what is used most comes first.
func (rf *runFlags) add(f *pflag.FlagSet) {
	f.SortFlags = false
	settingFlag(f, "check", "shell `COMMAND` that judges a task: exit 0 is done")
	settingFlag(f, "unit", "what one start of CMD works on: `leaf|task|component`")
	settingFlag(f, "agent", "the `NAME` of the agent: claude, codex, opencode, one of your own, or none (default: by CMD's name)")
	f.Var(&listValue{}, "fallback", "agent `NAME` that works while the ones before it are limited; repeatable")
	f.StringVar(&rf.task, "task", "", "run one `TASK` only, with what is beneath it")
	f.StringVar(&rf.from, "from", "", "run from `TASK` on, in the plan's order")
	f.StringVar(&rf.through, "through", "", "run up to `TASK`, with what is beneath it")
	f.BoolVar(&rf.again, "again", false, "with --task, --from or --through: untick these first, also what was skipped or failed")
	f.StringVar(&rf.resume, "resume", "", "go on with the session `ID`")
	f.BoolVar(&rf.noResume, "no-resume", false, "start a new session")
	settingFlag(f, "timeout", "end an attempt after `DURATION` (0: never)")
	settingFlag(f, "idle-timeout", "end an attempt, or its check, after `DURATION` without output (0: never; unattended 30m where it is not set)")
	settingFlag(f, "wait", "wait at most `DURATION` in all for the agent's limit")
	f.DurationVar(&rf.pauseTimeout, "pause-timeout", 0, "wait at most `DURATION` for a storage error to end (default never on a terminal, else 10m)")
	settingFlag(f, "max-cost", "pause when this run has cost `USD` (0: no limit)")
	settingFlag(f, "max-tokens", "pause when this run has used `N` tokens (0: no limit)")
	f.StringVar(&rf.until, "until", "", "start nothing from `TIME` on, like 07:00")
	settingFlag(f, "max-iterations", "start CMD at most `N` times (0: no limit)")
	settingFlag(f, "failure-threshold", "`N` attempts at a task before it has failed")
	f.BoolVar(&rf.requireGreen, "require-green", false, "stop when the check fails before the first task")
	f.BoolVar(&rf.keepFailed, "keep-failed", false, "leave the files of a failed task as they are (unattended)")
	f.BoolVar(&rf.besideLeft, "beside", false, "work although what an earlier run left behind may still work and cannot be ended")
	settingBool(f, "require-change", "a task that changed no file has failed")
	f.BoolVar(&rf.transaction, "transaction", false, "keep what the tasks change as a unit: lopen transaction commit or rollback")
	f.BoolVar(&rf.worktree, "worktree", false, "work in a git work tree beside the project, on the branch lopen/SESSION, and commit there")
	f.BoolVar(&rf.commit, "commit", false, "commit each task's files to git, with its hooks and signing; a resume goes on with it")
	f.BoolVar(&rf.branch, "branch", false, "with --commit: on a branch of its own, lopen/SESSION, begun at HEAD")
	f.BoolVar(&rf.noCheck, "no-check", false, "run without a check although the module had one: each exit 0 of CMD counts as done")
	f.BoolVar(&rf.noCheckpoint, "no-checkpoint", false, "do not keep the files before and after each task")
	settingBool(f, "output", "keep what each attempt printed: lopen session output")
	settingBool(f, "transcript", "keep each attempt's prompt and raw output as well")
	settingBool(f, "unattended", "never ask: a task that used up its attempts has failed, the rest goes on")
	f.BoolVar(&rf.noSave, "no-save", false, "keep nothing: no session, no ticked box, no byte below .lopen")
	f.StringVar(&rf.prompt, "prompt", "", "template `FILE` in place of the built-in prompt: lopen help prompt")
	f.BoolVar(&rf.dryRun, "dry-run", false, "list what would run, print the first prompt and the size and origin of its parts, change nothing")
}

// given are the settings that were typed.
func (rf *runFlags) given(f *pflag.FlagSet) map[string]string {
	flags := changedSettings(f)
	if rf.noCheck {
		flags["check"] = ""
	}
	return flags
}

// runCall is one call of run.
type runCall struct {
	*app
	runFlags
	module          string
	command         []string // typed after --
	flags           map[string]string
	checkTyped      bool
	asBefore        *before // what a new session takes over, nil for nothing
	otherCheck      string  // what the settings name, where the session's or the module's check counts
	commitTyped     bool    // also --commit=false
	branchTyped     bool
	pauseTimeoutSet bool

	tree     string             // the folder in whose files the run works, as far as it is known
	base     string             // the commit at which the work tree of a new session begins; "" is HEAD
	selected loop.Selection     // of --task, --from and --through
	used     []trust.Command    // what this run may run, as it was approved
	began    git.Identity       // of the project when it was approved
	template *template.Template // of --prompt, or the built-in one
	docs     prompt.Documents   // of the project

	crew *crew      // the other runs of a work; nil where the run is alone
	pane *pane      // of the work's screen
	ran  session.ID // the session that was run

	damaged *lifecycle.DamagedError // in the place of which an unattended run began afresh; else nil

	fleet *fleet.Fleet // that the project has joined; nil without one
}

// run finds the project, its settings and its store, and the module.
func (r *runCall) run(ctx context.Context) (err error) {
	if r.module != "" {
		if err := session.ValidateModule(r.module); err != nil {
			return &usageError{err}
		}
	}
	project, here, err := r.places()
	if err != nil {
		return err
	}
	r.tree = here
	values, err := r.projectSettings(project, r.flags)
	if err != nil {
		return err
	}
	opts := r.storeOptions(project)
	if opts.Policy, err = storePolicy(values); err != nil {
		return err
	}
	store, err := lifecycle.Open(project, opts)
	if err != nil && !errors.Is(err, lifecycle.ErrNoStore) {
		return err
	}
	defer func() {
		if store != nil {
			err = errors.Join(err, closeStore(store))
		}
	}()
	if r.module == "" {
		if r.module, err = r.onlyUnfinished(project, store); r.module == "" {
			return err
		}
	}
	if store != nil {
		if err := r.busyInside(project); err != nil {
			return err
		}
	}
	defer r.openFleet(project, values)()
	if store, err = r.continueElsewhere(ctx, project, store, opts, values); err != nil {
		return err
	}
	return r.runModule(ctx, project, store, values, opts)
}

// runModule reads the module's plan and runs it. A nil store is made once it is known that the
// plan can be run.
func (r *runCall) runModule(ctx context.Context, project string, store *lifecycle.Store, values *settings.Values, opts lifecycle.Options) (err error) {
	spec := specPath(values, r.module)
	docs, err := documents.Open(r.tree)
	if err != nil {
		return err
	}
	defer docs.Close()
	outlines := openSections(r.app, docs, r.tree, values, !r.noSave)
	defer outlines.Close()
	where := prompt.Documents{FS: docs, Spec: spec, Outlines: outlines.Outline}
	r.docs = where
	p, err := r.findPlan(project, store, docs, spec)
	if err != nil {
		return err
	}
	r.warnPlan(lifecycle.PlanPath(r.module), p)
	if err := r.parse(p); err != nil {
		return err
	}
	if r.dryRun {
		return r.printDryRun(store, p, where)
	}
	if len(r.command) > 0 {
		if err := child.Look(r.command, r.tree, r.environ); err != nil {
			return err
		}
	}
	if err := r.canCommit(ctx, store); err != nil {
		return err
	}
	if r.noSave {
		return r.runUnsaved(ctx, project, store, where, p)
	}
	if store == nil {
		if _, err := r.choices(session.Settings{}, values); err != nil {
			return err
		}
		if store, err = r.create(project, opts); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closeStore(store)) }()
	}
	defer watchDocuments(ctx, outlines, r.logger, spec)()
	return r.runLocked(ctx, project, store, values, where)
}

// specPath is where a module's specification lies below the project's folder.
func specPath(v *settings.Values, module string) string {
	return filepath.ToSlash(filepath.Join(v.RequirementsDir, module, "SPECIFICATION.md"))
}

// runLocked locks the module, chooses the session and runs it.
func (r *runCall) runLocked(ctx context.Context, project string, store *lifecycle.Store, values *settings.Values, docs prompt.Documents) (err error) {
	lock, err := r.lockModule(ctx, store)
	if err != nil {
		return r.busyHint(err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	ui := r.screen(ctx)
	defer ui.stop()
	if err := loop.EndOrphans(ctx, store, r.module, r.besideLeft, ui); err != nil {
		return err
	}
	r.warnPreflight(ctx, store)
	var cfg loop.Config
	configure := r.onceEach(func(old session.Settings) (err error) {
		defer r.crew.byItself()()
		if values, old, err = r.remembered(store, old); err == nil {
			cfg, err = r.config(ctx, project, docs, old, values)
			cfg.Budget.Today = today(store)
		}
		return err
	})
	if err := r.settleFirst(ctx, store); err != nil {
		return err
	}
	if err := r.redo(ctx, store, configure); err != nil {
		return err
	}
	sess, fresh, err := r.choose(ctx, store, ui, func() error { return configure(session.Settings{}) })
	if err != nil {
		return err
	}
	if r.crew == nil {
		r.pruneQuietly(ctx, store, values)
	}
	if sess == nil {
		return nil
	}
	r.ran = sess.ID()
	if r.tree, err = r.workTree(ctx, store, sess); err == nil && !fresh {
		if err = r.confirmRecovered(ctx, sess.State()); err == nil {
			err = configure(sess.State().Header().Settings)
		}
	}
	if err == nil {
		err = errors.Join(r.rememberCheck(store, &cfg, values), r.commitsTo(ctx, project, sess, &cfg))
	}
	if err != nil {
		return errors.Join(err, closeStore(sess))
	}
	cfg.Store, cfg.Session, cfg.UI, cfg.Tree, ui.log = store, sess, ui, r.tree, sess.Logger()
	return r.runSession(ctx, project, store, sess, ui, cfg, values, fresh)
}

// runSession runs a session that is open.
func (r *runCall) runSession(ctx context.Context, project string, store *lifecycle.Store, sess *lifecycle.Session, ui *pane, cfg loop.Config, values *settings.Values, fresh bool) error {
	shipped := r.shipped(ctx, store, sess, &cfg, values)
	end, err := r.transactional(ctx, store, sess, &cfg)
	if err != nil {
		return errors.Join(err, shipped(nil), closeStore(sess))
	}
	defer end()
	r.sayBegin(ui, sess, fresh, cfg.Check)
	cfg.ExitCode = func(err error) int { return exitCode(r.lookAt(err)) }
	err = r.work(ctx, cfg)
	ui.stop()
	err = shipped(err)
	return r.lookAt(r.after(ctx, project, store, sess, cfg.Unattended, err))
}

// after prints what became of a run that ended with err. A work does that for all of its runs.
func (r *runCall) after(ctx context.Context, project string, store *lifecycle.Store, sess *lifecycle.Session, unattended bool, err error) error {
	r.approveAgain(context.WithoutCancel(ctx), project)
	if r.crew != nil {
		return err
	}
	r.sayCommits(context.WithoutCancel(ctx), store, sess)
	if unattended {
		r.reportEnd(store, sess.ID())
	}
	if err == nil {
		r.printWhere(store, sess)
	}
	return err
}

// screen is the person in front of the run.
func (r *runCall) screen(ctx context.Context) *pane {
	if r.pane != nil {
		return r.pane
	}
	return newScreen(ctx, r.app).pane("")
}

func (r *runCall) sayBegin(ui *pane, sess *lifecycle.Session, fresh bool, check string) {
	if r.otherCheck != "" {
		defer ui.Say("what judges its tasks is %s, as before, and not what the settings say, %s: --check takes that", plain.Shell(check), plain.Shell(r.otherCheck))
	}
	if p := sess.State().Progress(); fresh {
		ui.Say("session %s", sess.ID())
		r.sayAsBefore(ui, check)
	} else {
		ui.Say("session %s goes on: %d/%d tasks done", sess.ID(), p.Done, p.Total)
	}
	if sess.State().Header().Worktree != nil {
		ui.Say("it works in the work tree %s", shown(r.tree))
	}
}

// work runs the plan, in a folder that is held open. While nobody watches it, the machine does not fall asleep.
func (r *runCall) work(ctx context.Context, cfg loop.Config) error {
	tree, err := documents.OpenRoot(cfg.Tree)
	if err != nil {
		return err
	}
	defer tree.Close()
	if cfg.Folder, err = tree.Stat("."); err == nil && cfg.Tree != cfg.Project {
		err = worktreeOf(cfg.Project, cfg.Tree) // once more: now it cannot become another one
	}
	if err != nil {
		return err
	}
	if cfg.Unattended && r.crew == nil {
		defer awake.Keep("lopen run "+r.module, &r.logger)()
	}
	return loop.Run(ctx, cfg)
}

// planPatience bounds the wait for commands that edit the plan: each has the module for a moment.
const planPatience = 5 * time.Second

// lockModule takes the module's lock. A command that edits the plan is waited for.
func (r *runCall) lockModule(ctx context.Context, store *lifecycle.Store) (*lifecycle.ModuleLock, error) {
	ctx, cancel := context.WithTimeout(ctx, planPatience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		lock, err := store.LockModule(r.module)
		if !heldByPlan(err) {
			return lock, err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

func (r *runCall) busyHint(err error) error {
	var busy *lifecycle.BusyError
	switch {
	case heldByPlan(err):
		return fmt.Errorf("the plan of module %s is being edited: %w", r.module, err)
	case errors.As(err, &busy):
		return fmt.Errorf("module %s is being run: %w\n  look:  lopen session watch %s\n  pause: lopen session pause %s", r.module, err, r.module, r.module)
	}
	return err
}

func (r *runCall) printWhere(store *lifecycle.Store, sess *lifecycle.Session) {
	id := sess.ID().String()
	fmt.Fprintf(r.stderr, "state:   %s\nshow it: lopen session show %s\n", filepath.Join(store.Path(), "sessions", id, "state.json"), plain.Quote(id))
}

// watchDocuments keeps the outlines of a run's documents fresh in the background until
// the function that it returns is called.
func watchDocuments(ctx context.Context, c *sections.Cache, log zerolog.Logger, names ...string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := c.Watch(ctx, names); err != nil {
			log.Debug().Err(err).Msg("documents are read when they are asked for")
		}
	}()
	return func() { cancel(); <-done }
}
