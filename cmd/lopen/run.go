package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
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
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/documents"
)

// runFlags are the flags of run that are no settings.
type runFlags struct {
	task         string
	resume       string
	noResume     bool
	prompt       string
	dryRun       bool
	pauseTimeout time.Duration
	noCheckpoint bool
	noSave       bool
	transaction  bool
	requireGreen bool
	keepFailed   bool
	until        string
}

func newRun(a *app) *cobra.Command {
	var rf runFlags
	cmd := &cobra.Command{
		Args:  cobra.ArbitraryArgs,
		Use:   "run [MODULE] [flags] [-- CMD [ARG...]]",
		Short: "Start CMD on each task of a module's plan until all are done",
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
			r := runCall{app: a, runFlags: rf, command: command, flags: changedSettings(cmd.Flags()), checkTyped: cmd.Flags().Changed("check")}
			if len(before) > 0 {
				r.module = before[0]
			}
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
	cmd.MarkFlagsMutuallyExclusive("resume", "no-resume")
	cmd.MarkFlagsMutuallyExclusive("resume", "no-save")
	cmd.MarkFlagsMutuallyExclusive("transcript", "no-save")
	cmd.MarkFlagsMutuallyExclusive("output", "no-save")
	cmd.MarkFlagsMutuallyExclusive("transaction", "no-save")
	cmd.MarkFlagsMutuallyExclusive("transaction", "no-checkpoint")
	return cmd
}

// add adds the flags in the order of the help: what is used most comes first.
func (rf *runFlags) add(f *pflag.FlagSet) {
	f.SortFlags = false
	settingFlag(f, "check", "shell `COMMAND` that judges a task: exit 0 is done")
	settingFlag(f, "unit", "what one start of CMD works on: `leaf|task|component`")
	settingFlag(f, "agent", "the `NAME` of the agent: claude, codex, opencode, one of your own, or none (default: by CMD's name)")
	f.Var(&listValue{}, "fallback", "agent `NAME` that works while the ones before it are limited; repeatable")
	f.StringVar(&rf.task, "task", "", "run one `TASK` only: an ID, a part of its text, or :LINE")
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
	settingBool(f, "require-change", "a task that changed no file has failed")
	f.BoolVar(&rf.transaction, "transaction", false, "keep what the tasks change as a unit: lopen transaction commit or rollback")
	f.BoolVar(&rf.noCheckpoint, "no-checkpoint", false, "do not keep the files before and after each task")
	settingBool(f, "output", "keep what each attempt printed: lopen session output")
	settingBool(f, "transcript", "keep each attempt's prompt and raw output as well")
	settingBool(f, "unattended", "never ask: a task that used up its attempts has failed, the rest goes on")
	f.BoolVar(&rf.noSave, "no-save", false, "keep nothing: no session, no ticked box, no byte below .lopen")
	f.StringVar(&rf.prompt, "prompt", "", "template `FILE` in place of the built-in prompt: lopen help prompt")
	f.BoolVar(&rf.dryRun, "dry-run", false, "list what would run, print the first prompt and the size and origin of its parts, change nothing")
}

// runCall is one call of run.
type runCall struct {
	*app
	runFlags
	module          string
	command         []string // typed after --
	flags           map[string]string
	checkTyped      bool
	pauseTimeoutSet bool

	only     string             // ID of --task
	used     []trust.Command    // what this run may run, as it was approved
	began    git.Identity       // of the project when it was approved
	template *template.Template // of --prompt, or the built-in one
}

// run finds the project, its settings and its store, and the module.
func (r *runCall) run(ctx context.Context) (err error) {
	if r.module != "" {
		if err := session.ValidateModule(r.module); err != nil {
			return &usageError{err}
		}
	}
	project, err := r.project()
	if err != nil {
		return err
	}
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
		if err := r.busyInside(store); err != nil {
			return err
		}
	}
	return r.runModule(ctx, project, store, values, opts)
}

// runModule reads the module's plan and runs it. A nil store is made once it is known that the
// plan can be run.
func (r *runCall) runModule(ctx context.Context, project string, store *lifecycle.Store, values *settings.Values, opts lifecycle.Options) (err error) {
	spec := specPath(values, r.module)
	docs, err := documents.Open(project)
	if err != nil {
		return err
	}
	defer docs.Close()
	outlines := openSections(r.app, docs, project, values, !r.noSave)
	defer outlines.Close()
	where := prompt.Documents{FS: docs, Spec: spec, Outlines: outlines.Outline}
	p, err := r.findPlan(project, store, docs, spec)
	if err != nil {
		return err
	}
	r.warnPlan(lifecycle.PlanPath(r.module), p)
	if err := r.parse(p); err != nil {
		return err
	}
	if r.dryRun {
		return r.printDryRun(store, p, where, values)
	}
	if len(r.command) > 0 {
		if err := child.Look(r.command, project, r.environ); err != nil {
			return err
		}
	}
	if r.noSave {
		return r.runUnsaved(ctx, project, store, where, p, values)
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

// busyInside refuses a run of the module whose run this command is part of.
func (r *runCall) busyInside(store *lifecycle.Store) error {
	if r.getenv("LOPEN_MODULE") != r.module || r.refuseInside(store) == nil {
		return nil
	}
	return &loop.Exit{Code: loop.ExitBusy, Reason: fmt.Sprintf("module %s is being run by session %s, which this command is part of", r.module, r.getenv("LOPEN_SESSION_ID"))}
}

// specPath is where a module's specification lies below the project's folder.
func specPath(v *settings.Values, module string) string {
	return filepath.ToSlash(filepath.Join(v.RequirementsDir, module, "SPECIFICATION.md"))
}

// runLocked locks the module, chooses the session and runs it.
func (r *runCall) runLocked(ctx context.Context, project string, store *lifecycle.Store, values *settings.Values, docs prompt.Documents) (err error) {
	lock, err := store.LockModule(r.module)
	if err != nil {
		return r.busyHint(err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()

	ui := newScreen(ctx, r.app)
	defer ui.stop()
	if err := loop.EndOrphans(ctx, store, r.module, ui); err != nil {
		return err
	}
	r.warnPreflight(store)
	var cfg loop.Config
	configure := func(old session.Settings) (err error) {
		if values, err = r.remembered(store, old); err == nil {
			cfg, err = r.config(ctx, project, docs, old, values)
			cfg.Budget.Today = today(store)
		}
		if err == nil {
			err = r.rememberCheck(project, store, &cfg, values)
		}
		return err
	}
	ready := sync.OnceValue(func() error { return configure(session.Settings{}) })
	sess, fresh, err := r.choose(ctx, store, ui, ready)
	if err != nil {
		return err
	}
	r.pruneQuietly(ctx, store, values)
	if sess == nil {
		return nil
	}
	if !fresh {
		if err = r.confirmRecovered(ctx, sess.State()); err == nil {
			err = configure(sess.State().Header().Settings)
		}
		if err != nil {
			return errors.Join(err, closeStore(sess))
		}
	}
	cfg.Store, cfg.Session, cfg.UI = store, sess, ui
	ui.log = sess.Logger()
	end, err := r.transactional(ctx, store, sess, &cfg)
	if err != nil {
		return errors.Join(err, closeStore(sess))
	}
	defer end()
	sayBegin(ui, sess, fresh)
	err = r.work(ctx, cfg)
	ui.stop()
	r.approveAgain(context.WithoutCancel(ctx), project)
	if cfg.Unattended {
		r.reportEnd(store, sess.ID())
	}
	if err != nil {
		return err
	}
	r.printWhere(store, sess)
	return nil
}

func sayBegin(ui *screen, sess *lifecycle.Session, fresh bool) {
	if fresh {
		ui.Say("session %s", sess.ID())
		return
	}
	p := sess.State().Progress()
	ui.Say("session %s goes on: %d/%d tasks done", sess.ID(), p.Done, p.Total)
}

// warnPreflight warns of what may stop a run later: a disk that is nearly full, for one.
func (r *runCall) warnPreflight(store *lifecycle.Store) {
	for _, f := range store.Preflight() {
		fmt.Fprintf(r.stderr, "warning: %s: %s: %s; %s\n", store.Path(), f.Name, f.Found, f.Mend)
	}
}

// work runs the plan. While nobody watches it, the machine does not fall asleep.
func (r *runCall) work(ctx context.Context, cfg loop.Config) error {
	if cfg.Unattended {
		defer awake.Keep("lopen run "+r.module, &r.logger)()
	}
	return loop.Run(ctx, cfg)
}

func (r *runCall) busyHint(err error) error {
	var busy *lifecycle.BusyError
	if errors.As(err, &busy) {
		return fmt.Errorf("module %s is being run: %w\n  look:  lopen session watch %s\n  pause: lopen session pause %s", r.module, err, r.module, r.module)
	}
	return err
}

func (r *runCall) printWhere(store *lifecycle.Store, sess *lifecycle.Session) {
	id := sess.ID().String()
	fmt.Fprintf(r.stderr, "state:   %s\nshow it: lopen session show %s\n", filepath.Join(store.Path(), "sessions", id, "state.json"), id)
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
