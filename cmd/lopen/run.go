package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"text/template"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache/assess"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/awake"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
)

// unattendedIdle is how long an agent may say nothing where nobody watches it. Tests shorten
// it before the first run; nothing else sets it.
var unattendedIdle = 30 * time.Minute

// closeTimeout bounds what the end of a command waits for the disk.
const closeTimeout = 10 * time.Second

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
	f := cmd.Flags()
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
	f.BoolVar(&rf.noCheckpoint, "no-checkpoint", false, "do not keep the files before and after each task")
	settingBool(f, "output", "keep what each attempt printed: lopen session output")
	settingBool(f, "transcript", "keep each attempt's prompt and raw output as well")
	settingBool(f, "unattended", "never ask: a task that used up its attempts has failed, the rest goes on")
	f.BoolVar(&rf.noSave, "no-save", false, "keep nothing: no session, no ticked box, no byte below .lopen")
	f.StringVar(&rf.prompt, "prompt", "", "template `FILE` in place of the built-in prompt: lopen help prompt")
	f.BoolVar(&rf.dryRun, "dry-run", false, "list what would run, print the first prompt and the size and origin of its parts, change nothing")
	cmd.MarkFlagsMutuallyExclusive("resume", "no-resume")
	cmd.MarkFlagsMutuallyExclusive("resume", "no-save")
	cmd.MarkFlagsMutuallyExclusive("transcript", "no-save")
	cmd.MarkFlagsMutuallyExclusive("output", "no-save")
	return cmd
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
		if r.module, err = r.theModule(project, store); r.module == "" {
			return err
		}
	}
	if store != nil {
		if err := r.busyInside(store); err != nil {
			return err
		}
	}
	spec := SpecPath(values, r.module)
	docs, err := lifecycle.OpenDocuments(project)
	if err != nil {
		return err
	}
	defer docs.Close()
	outlines := openSections(r.app, docs, project, values, !r.noSave)
	defer outlines.Close()
	p, err := r.plannable(project, store, docs, spec)
	if err != nil {
		return err
	}
	r.warnPlan(lifecycle.PlanPath(r.module), p)
	if err := r.parse(p); err != nil {
		return err
	}
	if r.dryRun {
		return r.printDryRun(store, p, loop.Config{Docs: docs, Outlines: outlines.Outline, Spec: spec}, values)
	}
	if len(r.command) > 0 {
		if err := child.Look(r.command, project, r.environ); err != nil {
			return err
		}
	}
	if r.noSave {
		return r.unsaved(ctx, project, store, loop.Config{Docs: docs, Outlines: outlines.Outline, Spec: spec}, p, values)
	}
	if store == nil {
		if _, err := r.choices(session.Settings{}, values); err != nil {
			return err
		}
		if store, err = r.create(project, opts); err != nil {
			return err
		}
	}
	defer watched(ctx, outlines, r.logger, spec)()
	return r.hold(ctx, project, store, values, loop.Config{Docs: docs, Outlines: outlines.Outline, Spec: spec})
}

// making runs fn on the project's store, which is made where there is none. A command
// inside a run is refused.
func (a *app) making(fn func(project string, store *lifecycle.Store) error) (err error) {
	project, err := a.project()
	if err != nil {
		return err
	}
	store, err := a.create(project, a.storeOptions(project))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore(store)) }()
	if err := a.refuseInside(store); err != nil {
		return err
	}
	return fn(project, store)
}

// create makes the project's store, where there is none, and says where.
func (a *app) create(project string, opts lifecycle.Options) (*lifecycle.Store, error) {
	store, made, err := lifecycle.Init(project, opts)
	if err != nil {
		return nil, err
	}
	if made {
		fmt.Fprintf(a.stderr, "created %s\n", store.Path())
	}
	return store, nil
}

// closeStore closes a store or a session within closeTimeout.
func closeStore(store interface {
	Close(ctx context.Context) error
}) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return store.Close(ctx)
}

// release closes the store of a command that only read.
func release(store *lifecycle.Store) { _ = closeStore(store) }

// busyInside refuses a run of the module whose run this command is part of.
func (r *runCall) busyInside(store *lifecycle.Store) error {
	if r.getenv("LOPEN_MODULE") != r.module || r.refuseInside(store) == nil {
		return nil
	}
	return &loop.Exit{Code: loop.ExitBusy, Reason: fmt.Sprintf("module %s is being run by session %s, which this command is part of", r.module, r.getenv("LOPEN_SESSION_ID"))}
}

// SpecPath is where a module's specification lies below the project's folder.
func SpecPath(v *settings.Values, module string) string {
	return filepath.ToSlash(filepath.Join(v.String("requirements_dir"), module, "SPECIFICATION.md"))
}

// hold takes the module, chooses the session and runs it. docs is where documents are.
func (r *runCall) hold(ctx context.Context, project string, store *lifecycle.Store, values *settings.Values, docs loop.Config) (err error) {
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
	for _, f := range store.Preflight() {
		fmt.Fprintf(r.stderr, "warning: %s: %s: %s; %s\n", store.Path(), f.Name, f.Found, f.Mend)
	}
	var cfg loop.Config
	configure := func(old session.Settings) (err error) {
		if values, err = r.remembered(store, old); err == nil {
			cfg, err = r.config(ctx, project, docs, old, values)
			cfg.Budget.Today = today(store)
		}
		if err == nil {
			err = r.assessed(project, store, &cfg, values)
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
		if err = r.looked(ctx, sess.State()); err == nil {
			err = configure(sess.State().Header().Settings)
		}
		if err != nil {
			return errors.Join(err, closeStore(sess))
		}
	}
	cfg.Store, cfg.Session, cfg.UI = store, sess, ui
	ui.log = sess.Logger()
	if !fresh {
		p := sess.State().Progress()
		cfg.UI.Say("session %s goes on: %d/%d tasks done", sess.ID(), p.Done, p.Total)
	} else {
		cfg.UI.Say("session %s", sess.ID())
	}
	err = r.work(ctx, cfg)
	ui.stop()
	r.approveAgain(context.WithoutCancel(ctx), project)
	if cfg.Unattended {
		r.reportEnd(store, sess.ID())
	}
	if err != nil {
		return err
	}
	r.epilogue(store, sess)
	return nil
}

// work runs the plan. While nobody watches it, the machine does not fall asleep.
func (r *runCall) work(ctx context.Context, cfg loop.Config) error {
	if cfg.Unattended {
		defer awake.Keep("lopen run "+r.module, &r.logger)()
	}
	return loop.Run(ctx, cfg)
}

// storePolicy is what the settings say of how sessions are kept.
func storePolicy(v *settings.Values) (lifecycle.Policy, error) {
	p := lifecycle.Policy{
		Autosave: v.Duration("autosave_interval"), Interval: v.Int("snapshot_interval"), Retention: v.Int("snapshot_retention"), Iterations: v.Bool("save_iteration_history"),
		CheckpointBytes: int64(v.Int("checkpoint_bytes")), JournalBytes: int64(v.Int("journal_bytes")),
	}
	if p.Unredacted = !v.Bool("redact"); p.Unredacted {
		return p, nil
	}
	var err error
	if p.Redact, err = redact.New(v.Strings("redact_patterns")); err != nil {
		return p, usagef("redact_patterns: %w", err)
	}
	return p, nil
}

func (r *runCall) busyHint(err error) error {
	var busy *lifecycle.BusyError
	if errors.As(err, &busy) {
		return fmt.Errorf("module %s is being run: %w\n  look:  lopen session watch %s\n  pause: lopen session pause %s", r.module, err, r.module, r.module)
	}
	return err
}

func (r *runCall) epilogue(store *lifecycle.Store, sess *lifecycle.Session) {
	id := sess.ID().String()
	fmt.Fprintf(r.stderr, "state:   %s\nshow it: lopen session show %s\n", filepath.Join(store.Path(), "sessions", id, "state.json"), id)
}

// config puts the run together: what was typed, what the session remembers,
// what the settings say.
func (r *runCall) config(ctx context.Context, project string, docs loop.Config, old session.Settings, values *settings.Values) (loop.Config, error) {
	policy, err := storePolicy(values)
	if err != nil {
		return loop.Config{}, err
	}
	approved, err := r.trusted(ctx, project, old, values, policy.Redact)
	if err != nil {
		return loop.Config{}, err
	}
	for _, a := range approved.agents {
		if err := child.Look(a.Argv(), project, r.environ); err != nil {
			return loop.Config{}, err
		}
	}
	until, err := r.untilTime(time.Now())
	if err != nil {
		return loop.Config{}, err
	}
	cfg := loop.Config{
		Docs: docs.Docs, Outlines: docs.Outlines, Spec: docs.Spec, Module: r.module, Project: project,
		Agents: approved.agents, Check: approved.check, OnEvent: approved.onEvent, ExitCode: exitCode, Unit: values.String("unit"), Prompt: r.template, Only: r.only, Environ: r.environ,
		Timeout: values.Duration("timeout"), IdleTimeout: values.Duration("idle_timeout"), Wait: values.Duration("wait"),
		PauseTimeout: r.pauseTimeout, FailureThreshold: values.Int("failure_threshold"), MaxIterations: values.Int("max_iterations"),
		Checkpoint: values.Bool("checkpoint") && !r.noCheckpoint, RequireChange: values.Bool("require_change"),
		RequireGreen: r.requireGreen, KeepFailed: r.keepFailed, Output: values.Bool("output"), Transcript: values.Bool("transcript"),
		Budget:     loop.Budget{Cost: values.Number("max_cost"), Tokens: int64(values.Int("max_tokens")), DayCost: values.Number("day_cost"), DayTokens: int64(values.Int("day_tokens")), Until: until},
		Unattended: values.Bool("unattended"), ByTerminal: r.interactive(),
	}
	if cfg.Unattended && values.Source("idle_timeout") == settings.SourceDefault {
		cfg.UnwatchedIdle = unattendedIdle
	}
	if !r.pauseTimeoutSet && !cfg.ByTerminal {
		cfg.PauseTimeout = 10 * time.Minute
	}
	return cfg, nil
}

// assessed keeps what the check said of an unchanged tree, for a restart.
func (r *runCall) assessed(project string, store *lifecycle.Store, cfg *loop.Config, values *settings.Values) error {
	look, err := assess.Files(project, nil)
	if err != nil {
		return err
	}
	check, ttl := cfg.Check, values.Duration("assessment_ttl")
	cfg.Assess = func(ctx context.Context, task string, run func(context.Context) error) (time.Time, bool, error) {
		c := assess.Open(assess.Options{Store: store.Path(), Logger: r.logger})
		defer c.Close()
		res, hit, err := c.GetOrCompute(ctx, assess.Key{Name: "the check of a run", Input: []string{check, r.module, task}}, ttl, look,
			func(ctx context.Context) ([]byte, error) { return nil, run(ctx) })
		return res.At, hit, err
	}
	return nil
}

// remembered lays the settings of the session between the flags and the
// variables: a resume uses them unless a flag says otherwise. Which settings those are
// is decided by [session.Settings].
func (r *runCall) remembered(store *lifecycle.Store, old session.Settings) (*settings.Values, error) {
	merged := map[string]string{}
	if len(old.Command) > 0 {
		merged = map[string]string{
			"unit": old.Unit, "timeout": old.Timeout.String(),
			"failure_threshold": strconv.Itoa(old.FailureThreshold), "require_change": strconv.FormatBool(old.RequireChange),
		}
		if old.IdleTimeout > 0 { // else nobody named one, and a run that nobody watches has its own
			merged["idle_timeout"] = old.IdleTimeout.String()
		}
		if old.Check != "" { // else a variable or the configuration may name one
			merged["check"] = old.Check
		}
	}
	for k, v := range r.flags {
		merged[k] = v
	}
	config, err := store.Config()
	if err != nil {
		return nil, err
	}
	return r.settings(config, merged)
}

// parse turns --task and --prompt into what they stand for.
func (r *runCall) parse(p *plan.Plan) error {
	if r.task != "" {
		t, err := p.Find(r.task)
		if err != nil {
			return &usageError{err}
		}
		r.only = t.ID
	}
	text, err := r.promptText()
	if err != nil {
		return err
	}
	if r.template, err = loop.ParsePrompt(text); err != nil {
		return usagef("--prompt: %w", err)
	}
	return nil
}

// maxPrompt bounds the template of --prompt, in bytes.
const maxPrompt = 1 << 20

func (r *runCall) promptText() (string, error) {
	if r.prompt == "" {
		return "", nil
	}
	path := r.prompt
	if !filepath.IsAbs(path) {
		start, err := r.start()
		if err != nil {
			return "", err
		}
		path = filepath.Join(start, path)
	}
	data, err := lifecycle.ReadRegular(path, maxPrompt)
	if err != nil {
		return "", usagef("--prompt: %w", err)
	}
	if len(data) == 0 {
		return "", usagef("--prompt %s: the file is empty", path)
	}
	return string(data), nil
}
