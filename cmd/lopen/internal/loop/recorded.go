package loop

import (
	"context"
	"time"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
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
		Task: r.at.unit, Attempt: n, Iteration: r.at.iteration, Command: r.command,
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
		r.git = r.gitState(ctx)
	}
	a.After = r.git.Head
	if c := out.check; c != nil {
		a.Check = &session.CheckRun{Command: c.Command, Exit: c.Exit, Ms: c.Duration.Round(time.Millisecond).Milliseconds()}
	}
	if out.failure != "" {
		a.Tail, a.CheckTail = string(out.result.Tail), string(out.checkTail)
	}
	r.logTaskEnds(&a)
	return r.tolerate(r.sess.Record(a))
}

// rememberCut puts on record the attempt that was under way when lopen was killed, of
// which nobody knows how it ended. It began when the session was saved last.
func (r *Runner) rememberCut(changes []files.Change) error {
	st := r.sess.State()
	unit := st.ActiveTask()
	if unit == "" {
		return nil
	}
	h := st.Header()
	a := session.AttemptRecord{
		Task: unit, Attempt: 1, Iteration: st.NumIterations() + 1, Command: h.Settings.Command,
		StartedAt: h.UpdatedAt.UTC(), EndedAt: h.UpdatedAt.UTC(), Exit: -1, Then: session.Killed,
	}
	var leaves []string
	for _, id := range tasks.Leaves(st, unit) {
		if t, _ := st.Task(id); t.State == session.TaskInProgress {
			leaves = append(leaves, id)
			a.Attempt = max(a.Attempt, t.Attempts+1)
		}
	}
	if len(leaves) > 1 {
		a.Leaves = leaves
	}
	a.Files, a.MoreFiles = fileChanges(changes)
	r.logTaskEnds(&a)
	return r.tolerate(r.sess.Record(a))
}
