package loop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
)

// exitTryLater is the exit code by which a command says that it met a limit
// that is nobody's fault: EX_TEMPFAIL of sysexits.h.
const exitTryLater = 75

// outcome is how one start of the command ended.
type outcome struct {
	result  child.Result
	check   *session.CheckResult // nil when the check was not run
	failure string               // why the attempt counts as failed; "" when it is done
	// checkTail is the end of what a check printed that failed.
	checkTail []byte
	limited   bool
}

// lastOutput is the end of what a failed attempt printed, for the next prompt: redacted
// before a line of it is left out, so that no cut parts a credential from its name.
type lastOutput struct{ failure, output, check string }

// attempt starts the command once on a unit and takes the consequences.
func (r *Runner) attempt(ctx context.Context, unit string, leaves []string) error {
	begun := time.Now()
	n, err := r.begin(ctx, unit, leaves)
	if err != nil {
		return err
	}
	r.starts++
	r.at = working{unit: unit, leaves: leaves, iteration: r.sess.State().NumIterations() + 1, git: r.git.Head}
	r.logTaskBegins(n)
	out, metrics, err := r.execute(ctx, unit, leaves, n)
	if errors.Is(err, child.ErrNotStarted) {
		return r.notStarted(leaves, err)
	}
	if err != nil {
		return err
	}
	if ctx.Err() == nil {
		if err := r.after(ctx, unit, &out); err != nil && ctx.Err() == nil {
			return err
		}
	} else {
		r.keepAfterCut(ctx, unit)
	}
	// Whatever the command did to the boxes comes first: the State must not
	// learn of the outcome from a plan that the agent ticked.
	if err := r.follow(context.WithoutCancel(ctx), tasks.During); err != nil {
		return err
	}
	if err := r.remember(ctx, n, out, metrics, r.consequence(ctx, out)); err != nil {
		return err
	}
	leaves = slices.DeleteFunc(slices.Clone(leaves), func(id string) bool { _, ok := r.sess.State().Task(id); return !ok })
	if ctx.Err() != nil {
		if err := r.record(unit, leaves, out, metrics, begun, session.TriggerPaused, false, nil); err != nil {
			return err
		}
		return r.interrupted()
	}
	if out.limited {
		if err := r.record(unit, leaves, out, metrics, begun, session.TriggerPaused, false, nil); err != nil {
			return err
		}
		return r.waitLimit(ctx, metrics)
	}
	r.limits = limits{}
	if out.failure != "" {
		r.last[unit] = lastOutput{failure: r.sess.Redact(out.failure), output: r.sess.Redact(string(out.result.Tail)), check: r.sess.Redact(string(out.checkTail))}
		return r.failed(ctx, unit, leaves, out, metrics, begun)
	}
	delete(r.last, unit)
	return r.done(ctx, unit, leaves, out, metrics, begun)
}

// consequence names what follows a start of the command.
func (r *Runner) consequence(ctx context.Context, out outcome) string {
	switch {
	case ctx.Err() != nil:
		return "interrupted"
	case out.limited:
		return "limited"
	case out.failure != "":
		return "failed"
	}
	return session.Done
}

// begin makes durable that the unit is being worked on and returns the number
// of the attempt.
func (r *Runner) begin(ctx context.Context, unit string, leaves []string) (int, error) {
	now := time.Now()
	n := attemptNumber(r.sess.State(), leaves)
	if c := tasks.Component(r.sess.State(), unit); c != r.sess.State().Header().Component {
		if err := r.change(session.TriggerStepCompleted, func(e *session.Edit) error {
			e.Header().Component, e.Header().Step = c, session.StepSelectNextComponent
			return nil
		}); err != nil {
			return 0, err
		}
	}
	err := r.change(session.TriggerStepCompleted, func(e *session.Edit) error {
		h := e.Header()
		h.ActiveTask, h.Step = unit, session.StepIterateThroughTasks
		for _, id := range leaves {
			tasks.Set(e, id, func(t *session.Task) {
				t.State = session.TaskInProgress
				if t.StartedAt.IsZero() {
					t.StartedAt = now
				}
			})
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, r.sync(ctx)
}

// attemptNumber is the number of the next attempt at a unit, from 1.
func attemptNumber(st *session.State, leaves []string) int {
	n := 1
	for _, id := range leaves {
		if t, ok := st.Task(id); ok {
			n = max(n, t.Attempts+1)
		}
	}
	return n
}

// execute runs the command and, when that succeeded, the check.
func (r *Runner) execute(ctx context.Context, unit string, leaves []string, n int) (out outcome, m metrics, err error) {
	prompt, resources, err := r.compose(r.sess.State(), unit, leaves, n)
	if err != nil {
		return out, m, err
	}
	r.at.context = resources
	r.tell(ctx, event{Type: "prompt", Text: string(prompt)})
	if err := r.tolerate(r.sess.Update(func(st *session.State) (*session.State, error) {
		e := st.Edit()
		e.Header().Resources = used(st.Header().Resources, resources)
		return e.State()
	})); err != nil {
		return out, m, err
	}
	stdin, err := r.writePrompt(prompt)
	if err != nil {
		return out, m, err
	}
	defer stdin.Close()

	if err := r.before(ctx, unit); err != nil {
		return out, m, err
	}
	t, _ := r.sess.State().Task(unit)
	r.status(t.Name, n)
	r.cfg.UI.Started(r.progressLine(t, n))
	env := r.env(unit, n)
	deadline := time.Time{}
	if r.cfg.Timeout > 0 {
		deadline = time.Now().Add(r.cfg.Timeout)
	}
	cmd := child.Command{Argv: r.cfg.Command, Dir: r.cfg.Project, Env: env, Stdin: stdin}
	if out.result, err = r.supervise(ctx, cmd, "output", deadline); err != nil {
		return out, m, err
	}
	m, warning := r.readMetrics(time.Now())
	m.Model, m.AgentSession = r.sess.Redact(m.Model), r.sess.Redact(m.AgentSession)
	if warning != nil {
		r.cfg.UI.Warn("%v", warning)
	}
	if ctx.Err() != nil {
		return out, m, nil
	}
	switch {
	case out.result.Exit == exitTryLater && out.result.Cause == child.CauseNone:
		out.limited = true
	case out.result.Cause != child.CauseNone || out.result.Exit != 0:
		out.failure = describe(out.result, r.cfg)
	case r.cfg.Check != "":
		err = r.judge(ctx, &out, env, deadline)
	default:
		r.once("no-check", "no --check: exit 0 of the command counts as done")
	}
	return out, m, err
}

func (r *Runner) judge(ctx context.Context, out *outcome, env []string, deadline time.Time) error {
	res, err := r.supervise(ctx, child.Command{Argv: []string{"sh", "-c", r.cfg.Check}, Dir: r.cfg.Project, Env: env}, "check", deadline)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return nil
	}
	out.check = &session.CheckResult{Command: r.check, Exit: res.Exit, At: res.EndedAt, Duration: res.EndedAt.Sub(res.StartedAt)}
	if res.Cause != child.CauseNone || res.Exit != 0 {
		out.failure = fmt.Sprintf("the check %q: %s", r.check, describe(res, r.cfg))
		out.checkTail = res.Tail
	}
	return nil
}

// supervise runs one process with the lock that says so to the next holder.
func (r *Runner) supervise(ctx context.Context, c child.Command, what string, deadline time.Time) (child.Result, error) {
	c.Grace, c.IdleTimeout = defaultGrace, r.cfg.IdleTimeout
	if c.Stdout == nil {
		c.Stdout, c.Stderr = r.cfg.UI.Output()
	}
	if r.cfg.Transcript {
		for name, w := range map[string]*io.Writer{"stdout": &c.Stdout, "stderr": &c.Stderr} {
			s := &scribe{to: *w, tell: func(text string) { r.tell(ctx, event{Type: what, Stream: name, Text: text}) }}
			defer s.flush()
			*w = s
		}
	}
	if !deadline.IsZero() {
		c.Timeout = max(time.Until(deadline), time.Millisecond)
	}
	hold, err := r.hold(ctx)
	if err != nil {
		return child.Result{}, fmt.Errorf("hold the command's lock: %w", err)
	}
	if lock := r.dir.Lock(); lock != nil {
		c.Inherit = append(c.Inherit, lock)
	}
	var recordErr error
	if hold != nil {
		defer func() { _ = hold.Release() }()
		c.Inherit = append(c.Inherit, hold.File())
		shown := strings.Join(r.sess.RedactArgs(c.Argv), " ")
		c.Started = func(pid int) { recordErr = hold.Record(pid, shown) }
	}
	res, err := child.Run(ctx, c)
	if recordErr != nil {
		r.cfg.UI.Warn("the command's process group could not be noted: %v", recordErr)
	}
	if res.LeftBehind {
		r.cfg.UI.Warn("the command left a process behind that still holds its output")
	}
	return res, err
}

// hold takes the lock that the next command inherits. Where it cannot, it waits
// until what became of the session's folder is mended; a removed one is made again: an
// agent may clean up before its check.
func (r *Runner) hold(ctx context.Context) (hold *lifecycle.Child, err error) {
	if hold, err = r.sess.HoldChild(); err == nil {
		return hold, nil
	}
	if err := r.sync(ctx); err != nil {
		return nil, err
	}
	again := func(context.Context) error {
		hold, err = r.sess.HoldChild()
		return err
	}
	if err := again(ctx); err != nil {
		return hold, r.waitStorage(ctx, err, again)
	}
	return hold, nil
}

// env is what the command and the check get: the environment of lopen itself, and the
// variables of the n-th attempt at a unit.
func (r *Runner) env(unit string, n int) []string {
	st := r.sess.State()
	t, _ := st.Task(unit)
	return append(slices.Clone(r.cfg.Environ),
		"LOPEN_SESSION_ID="+st.ID().String(),
		"LOPEN_MODULE="+r.cfg.Module,
		"LOPEN_COMPONENT="+tasks.Component(st, unit),
		"LOPEN_TASK_ID="+unit,
		"LOPEN_TASK="+t.Name,
		"LOPEN_ITERATION="+strconv.Itoa(st.NumIterations()+1),
		"LOPEN_ATTEMPT="+strconv.Itoa(n),
		"LOPEN_METRICS_FILE="+r.given.metrics,
		"LOPEN_PROMPT_FILE="+r.given.prompt,
		"LOPEN_CHANGED_FILES="+r.given.changed,
	)
}

// given are the paths of the files that the command is given. Each start of it has others:
// what an earlier one put in their places is not met again.
type given struct{ prompt, changed, metrics string }

// writePrompt writes the file of LOPEN_PROMPT_FILE, which it returns, open at its
// beginning, and names that of LOPEN_METRICS_FILE.
func (r *Runner) writePrompt(prompt []byte) (f *os.File, err error) {
	if err := r.dir.Renew(); err != nil {
		return nil, fmt.Errorf("write prompt: %w", err)
	}
	r.given = given{metrics: r.dir.Name("metrics", ".json")}
	if f, r.given.prompt, err = r.dir.Write("prompt", ".md", prompt); err != nil {
		return nil, fmt.Errorf("write prompt: %w", err)
	}
	return f, nil
}

// describe says how a process ended, when it did not succeed.
func describe(res child.Result, cfg Config) string {
	switch res.Cause {
	case child.CauseTimeout:
		return fmt.Sprintf("ended after the timeout of %s", cfg.Timeout)
	case child.CauseIdle:
		return fmt.Sprintf("ended after %s without output", cfg.IdleTimeout)
	}
	if res.Signal != "" {
		return "killed by signal " + res.Signal
	}
	return fmt.Sprintf("exit %d", res.Exit)
}
