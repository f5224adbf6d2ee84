package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/cache/assess"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/sidecar"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer/documents"
)

// storePolicy is what the settings say of how sessions are kept.
func storePolicy(v *settings.Values) (lifecycle.Policy, error) {
	p := lifecycle.Policy{
		Autosave: v.AutosaveInterval, Interval: v.SnapshotInterval, Retention: v.SnapshotRetention, Iterations: v.SaveIterationHistory,
		CheckpointBytes: int64(v.CheckpointBytes), JournalBytes: int64(v.JournalBytes),
	}
	p.Compression.Codec, p.Compression.Level = v.Compression, v.CompressionLevel
	p.Compression.Threshold = int64(max(v.CompressionThreshold, 1)) // 0 is no threshold here, and the default there
	if p.Unredacted = !v.Redact; p.Unredacted {
		return p, nil
	}
	var err error
	if p.Redact, err = redact.New(v.RedactPatterns); err != nil {
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
		if err := child.Look(a.Argv(), r.tree, r.environ); err != nil {
			return loop.Config{}, err
		}
	}
	if r.transaction && !values.Checkpoint {
		return loop.Config{}, usagef("--transaction needs checkpoints, and the setting checkpoint is false")
	}
	if r.transaction {
		if err := sidecar.HasGit(ctx); err != nil {
			return loop.Config{}, err
		}
	}
	until, err := r.untilTime(time.Now())
	if err != nil {
		return loop.Config{}, err
	}
	cfg := loop.Config{
		Documents: docs, Module: r.module, Project: project, Tree: r.tree,
		Agents: approved.agents, Check: approved.check, OnEvent: approved.onEvent, ExitCode: exitCode, Unit: values.Unit, Prompt: r.template, Select: r.selected, Environ: r.environ,
		Timeout: values.Timeout, IdleTimeout: values.IdleTimeout, Wait: values.Wait,
		PauseTimeout: r.pauseTimeout, FailureThreshold: values.FailureThreshold, MaxIterations: values.MaxIterations,
		Commit: approved.commit, Branch: approved.branch,
		Checkpoint: values.Checkpoint && !r.noCheckpoint, RequireChange: values.RequireChange,
		RequireGreen: r.requireGreen, KeepFailed: r.keepFailed, Output: values.Output, Transcript: values.Transcript,
		Budget:     loop.Budget{Cost: values.MaxCost, Tokens: int64(values.MaxTokens), DayCost: values.DayCost, DayTokens: int64(values.DayTokens), Until: until},
		Shared:     r.crew.share(),
		Unattended: values.Unattended, ByTerminal: r.interactive(),
	}
	if cfg.Unattended {
		boundIdle(&cfg, values.Source("idle_timeout"))
	}
	if !r.pauseTimeoutSet && !cfg.ByTerminal {
		cfg.PauseTimeout = 10 * time.Minute
	}
	return cfg, nil
}

// boundIdle bounds how long the agent of a run that nobody watches may say nothing, where the user does not.
func boundIdle(cfg *loop.Config, from settings.Source) {
	switch from {
	case settings.SourceDefault:
		cfg.UnwatchedIdle = unattendedIdle
	case settings.SourceProject: // which makes it no longer
		cfg.IdleTimeout = min(cfg.IdleTimeout, unattendedIdle)
	}
}

// rememberCheck has the result of the check remembered for a restart on unchanged files.
func (r *runCall) rememberCheck(store *lifecycle.Store, cfg *loop.Config, values *settings.Values) error {
	r.keepHere(store.Project().Name())
	r.noteCheck(store, cfg.Check)
	look, err := assess.Files(r.tree, nil)
	if err != nil {
		return err
	}
	check, ttl := cfg.Check, values.AssessmentTTL
	cfg.Assess = func(ctx context.Context, task string, run func(context.Context) error) (time.Time, bool, error) {
		if ttl <= 0 { // nothing is remembered, so that nothing need be read
			return time.Time{}, false, run(ctx)
		}
		c := assess.Open(assess.Options{Store: store.Path(), Logger: r.logger, Memory: r.memory(store.Project().Name())})
		defer c.Close()
		res, hit, err := c.GetOrCompute(ctx, assess.Key{Name: "the check of a run", Input: []string{check, r.module, task, r.tree}}, ttl, look,
			func(ctx context.Context) ([]byte, error) { return nil, run(ctx) })
		return res.At, hit, err
	}
	return nil
}

// parse turns --task, --from, --through and --prompt into what they stand for.
func (r *runCall) parse(p *plan.Plan) (err error) {
	if r.selected, err = r.selection(p); err != nil {
		return err
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
	path, err := r.path(r.prompt)
	if err != nil {
		return "", err
	}
	data, err := documents.ReadFile(path, maxPrompt)
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
	if r.crew != nil { // the moment is that of the work's beginning
		return r.crew.until, nil
	}
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
