package loop

import (
	"cmp"
	"context"
	"time"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// working is the start of the command in progress. Owned by the runner; while the command runs,
// session belongs to the goroutine that copies the output.
type working struct {
	unit      string
	leaves    []string
	decided   []string // leaves about which a person decided while they were in progress
	iteration int
	context   []session.Resource
	git       string // HEAD before the start
	changes   []files.Change
	worker    *worker
	session   string // ID of the agent's session; "" while it is not known
}

// recordAttempt records the outcome of a start of the command in the journal. The change of the
// State comes after it: after a crash in between the attempt is recorded and the task is in
// progress, so that it runs again.
func (r *runner) recordAttempt(ctx context.Context, n int, out outcome, m metrics) error {
	res := out.result
	a := record.Attempt{
		Task: r.at.unit, Attempt: n, Iteration: r.at.iteration, Command: r.at.worker.command,
		Agent: r.at.worker.Name(), AgentSession: r.sess.Redact(r.at.session), Model: m.Model, Turns: m.Turns, NoCost: out.noCost, Denied: out.denied(),
		StartedAt: res.StartedAt.UTC(), EndedAt: res.EndedAt.UTC(), Exit: res.Exit, Signal: res.Signal,
		CPU: res.CPU.Milliseconds(), MaxRSS: res.MaxRSS,
		Input: m.InputTokens, Output: m.OutputTokens, Cached: m.CachedTokens, CostUSD: m.CostUSD,
		Before: r.at.git, Failure: out.failure, Then: out.then,
	}
	if len(r.at.leaves) > 1 {
		a.Leaves = r.at.leaves
	}
	for _, c := range r.at.context {
		if c.Bytes == 0 {
			continue // the plan, of which the prompt has only the task
		}
		a.Context = append(a.Context, record.ContextUse{Path: c.Path, Header: c.Header, SHA256: c.SHA256, Bytes: c.Bytes})
	}
	a.Files, a.MoreFiles = FileChanges(r.at.changes)
	r.noteChanges(r.at.unit, r.at.git, r.at.changes)
	if ctx.Err() == nil {
		r.git = r.gitState(ctx)
	}
	a.After = r.git.Head
	if c := out.check; c != nil {
		a.Check = &record.CheckRun{Command: c.Command, Exit: c.Exit, Ms: c.Duration.Round(time.Millisecond).Milliseconds()}
	}
	if p := out.problem; p != nil {
		a.Problem, a.AgentError = string(p.Kind), p.Text
	}
	a.AgentError = cmp.Or(a.AgentError, out.report.Error)
	if !out.until.IsZero() && r.tooLong(out.until) == "" {
		until := out.until.UTC()
		a.RetryAt = &until
	}
	if out.failure != "" {
		a.Tail, a.CheckTail = string(out.result.Tail), string(out.checkTail)
	}
	r.logTaskEnds(&a)
	return r.ignorePaused(r.sess.Record(a))
}

// recordKilled records the attempt that was in progress when lopen was killed. How it ended is
// not known. Its begin is taken to be the last save of the session.
func (r *runner) recordKilled(changes []files.Change) error {
	st := r.sess.State()
	unit := st.ActiveTask()
	if unit == "" {
		return nil
	}
	h := st.Header()
	a := record.Attempt{
		Task: unit, Iteration: st.NumIterations() + 1, Command: h.Settings.Command,
		StartedAt: h.UpdatedAt.UTC(), EndedAt: h.UpdatedAt.UTC(), Exit: -1, Then: record.Killed,
		Agent: h.AgentName, AgentSession: h.AgentSession,
	}
	if h.Commits != nil {
		a.Before = h.Git.Head
	}
	if r.lastStart.unit != unit || r.lastStart.session != h.AgentSession {
		r.lastStart = lastStart{unit: unit, agent: h.AgentName, session: h.AgentSession}
	}
	r.lastStart.then = record.Killed
	leaves := inProgress(st, unit)
	a.Attempt = attemptNumber(st, leaves)
	if len(leaves) > 1 {
		a.Leaves = leaves
	}
	a.Files, a.MoreFiles = FileChanges(changes)
	r.logTaskEnds(&a)
	return r.ignorePaused(r.sess.Record(a))
}
