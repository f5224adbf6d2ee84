package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/lopen-dev/lopen/cache/assess"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
)

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

// config puts the run together: what was typed, what the session remembers,
// what the settings say.
func (r *runCall) config(ctx context.Context, project string, docs prompt.Documents, old session.Settings, values *settings.Values) (loop.Config, error) {
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
		Documents: docs, Module: r.module, Project: project,
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
	if r.template, err = prompt.Parse(text); err != nil {
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

// unattendedIdle is how long an agent may say nothing where nobody watches it. Tests shorten
// it before the first run; nothing else sets it.
var unattendedIdle = 30 * time.Minute

// untilTime is the moment that --until names: the next time that the clock shows it.
func (r *runCall) untilTime(now time.Time) (time.Time, error) {
	if r.until == "" {
		return time.Time{}, nil
	}
	t, err := time.ParseInLocation("15:04", r.until, now.Location())
	if err != nil {
		return time.Time{}, usagef("--until %q: give a time of day like 07:00", r.until)
	}
	y, m, d := now.Date()
	at := time.Date(y, m, d, t.Hour(), t.Minute(), 0, 0, now.Location())
	if !at.After(now) {
		at = time.Date(y, m, d+1, t.Hour(), t.Minute(), 0, 0, now.Location())
	}
	return at, nil
}

// today returns what loop.Budget.Today is: the sums over the project's sessions. Those that
// were not changed today are not read.
func today(store *lifecycle.Store) func() (float64, int64, error) {
	return func() (cost float64, tokens int64, err error) {
		midnight := loop.Midnight(time.Now())
		infos, err := store.List() // the newest first, and behind those what cannot be read
		if err != nil {
			return 0, 0, err
		}
		var unread error
		for _, info := range infos {
			if info.Err == nil && info.UpdatedAt.Before(midnight) {
				continue
			}
			st, _, err := store.Read(info.ID)
			if err != nil {
				unread = errors.Join(unread, fmt.Errorf("session %s: %w", info.ID, err))
			}
			if st != nil {
				c, t := loop.SpentSince(st, midnight)
				cost, tokens = cost+c, tokens+t
			}
		}
		return cost, tokens, unread
	}
}
