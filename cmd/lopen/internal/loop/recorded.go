package loop

import (
	"context"
	"time"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// working is the start of the command that goes on. Owned by the Runner; what it
// says of the start does not change while the command runs.
type working struct {
	unit      string
	leaves    []string
	iteration int
	context   []session.Resource
	git       string // HEAD before
	changes   []files.Change
}

// remember puts what came of a start of the command into the journal. The change of
// the State comes after it: a crash in between has the attempt on record and the task
// in progress, which runs again.
func (r *Runner) remember(ctx context.Context, n int, out outcome, m metrics, then string) error {
	res := out.result
	a := session.AttemptRecord{
		Task: r.at.unit, Attempt: n, Iteration: r.at.iteration, Command: r.cfg.Command,
		StartedAt: res.StartedAt.UTC(), EndedAt: res.EndedAt.UTC(), Exit: res.Exit, Signal: res.Signal,
		CPU: res.CPU.Milliseconds(), MaxRSS: res.MaxRSS,
		Input: m.InputTokens, Output: m.OutputTokens, Cached: m.CachedTokens, CostUSD: m.CostUSD,
		Before: r.at.git, Failure: out.failure, Then: then,
	}
	if len(r.at.leaves) > 1 {
		a.Leaves = r.at.leaves
	}
	for _, c := range r.at.context {
		if c.Bytes == 0 {
			continue // the plan, of which the prompt has the task
		}
		a.Context = append(a.Context, session.ContextUse{Path: c.Path, Header: c.Header, SHA256: c.SHA256, Bytes: c.Bytes})
	}
	a.Files, a.MoreFiles = fileChanges(r.at.changes)
	if ctx.Err() == nil {
		r.git = gitState(ctx, r.cfg.Project)
	}
	a.After = r.git.Head
	if c := out.check; c != nil {
		a.Check = &session.CheckRun{Command: c.Command, Exit: c.Exit, Ms: c.Duration.Round(time.Millisecond).Milliseconds()}
	}
	if out.failure != "" {
		a.Tail, a.CheckTail = string(r.last.output), string(r.last.check)
	}
	r.logTaskEnds(&a)
	return r.tolerate(r.sess.Record(a))
}
