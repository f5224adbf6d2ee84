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

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/writer/plain"
	"github.com/lopen-dev/lopen/writer/process"
)

// exitTryLater is the exit code of a command that met a temporary limit: EX_TEMPFAIL of
// sysexits.h.
const exitTryLater = 75

// outcome is how one start of the command ended, and what follows.
type outcome struct {
	start
	verdict
	check *session.CheckResult // nil when the check was not run
	// checkTail is the end of the output of a failed check.
	checkTail []byte
	until     time.Time // end of the wait that follows; zero if none follows
	opened    bool      // this start opened the circuit breaker
}

// attempt starts the command once on a unit, judges the outcome and saves it.
func (r *runner) attempt(ctx context.Context, unit string, leaves []string) error {
	begun := time.Now()
	w := r.pick()
	n, err := r.begin(ctx, w, unit, leaves)
	if err != nil {
		return err
	}
	r.starts++
	r.at = working{unit: unit, leaves: leaves, iteration: r.sess.State().NumIterations() + 1, git: r.git.Head, worker: w, session: r.sess.State().Header().AgentSession}
	r.log.Info().Str("task", unit).Int("attempt", n).Int("iteration", r.at.iteration).Msg("task begins")
	r.openOutput(unit, n)
	defer r.closeOutput(record.Interrupted, "") // if an error ends the attempt
	defer r.release()
	out, metrics, err := r.execute(ctx, unit, leaves, n)
	if errors.Is(err, child.ErrNotStarted) {
		r.closeOutput(record.Needed, err.Error())
		return r.notStarted(err)
	}
	if err != nil {
		return err
	}
	r.endLeft(ctx, out.weigh().then)
	if ctx.Err() == nil {
		if err := r.after(ctx, unit, &out); err != nil && ctx.Err() == nil {
			return err
		}
	} else {
		r.checkpointInterrupted(ctx, unit)
	}
	// This comes first: the State must not take the outcome from boxes that the agent ticked.
	if err := r.reconcile(context.WithoutCancel(ctx), tasks.During); err != nil {
		return err
	}
	r.conclude(ctx, &out)
	r.endLeft(ctx, out.then)
	r.release()
	r.noteStart(&out)
	r.closeOutput(out.then, out.failure)
	if err := r.recordAttempt(ctx, n, out, metrics); err != nil {
		return err
	}
	leaves = r.undecided(leaves)
	switch out.then {
	case record.Failed, record.Done:
	default: // the start does not count as an attempt at the task
		if err := r.saveOutcome(unit, leaves, out, metrics, begun, session.TriggerPaused, false, nil); err != nil {
			return err
		}
		return r.afterUncounted(ctx, &out)
	}
	if !out.empty() || out.then == record.Done {
		r.noteProgress(w)
	}
	return r.counted(ctx, unit, leaves, n, out, metrics, begun)
}

// counted saves an attempt that is done or has failed.
func (r *runner) counted(ctx context.Context, unit string, leaves []string, n int, out outcome, metrics metrics, begun time.Time) error {
	if len(leaves) == 0 {
		return r.overtaken(ctx, unit, out, metrics, begun)
	}
	if out.failure != "" {
		// Redact before the text is cut, so that no cut separates a credential from its name.
		r.noteFailure(unit, prompt.Failure{Attempt: n, Failure: r.sess.Redact(out.failure), Output: r.sess.Redact(string(out.result.Tail)), Check: r.sess.Redact(string(out.checkTail))})
		return r.failed(ctx, unit, leaves, out, metrics, begun)
	}
	delete(r.failures, unit)
	return r.done(ctx, unit, leaves, out, metrics, begun)
}

// undecided returns the leaves of an attempt that still are in progress. Of the others those
// that the plan has are remembered: a person decided about them while the command ran.
func (r *runner) undecided(leaves []string) (left []string) {
	for _, id := range leaves {
		switch t, ok := r.sess.State().Task(id); {
		case ok && t.State == session.TaskInProgress:
			left = append(left, id)
		case ok:
			r.at.decided = append(r.at.decided, id)
		}
	}
	return left
}

// conclude decides what follows a start of the command.
func (r *runner) conclude(ctx context.Context, out *outcome) {
	if ctx.Err() != nil {
		out.verdict = verdict{then: record.Interrupted}
		return
	}
	if out.guessed = r.guessed; !out.knows {
		if out.guess = agent.Classify(out.result.Tail, time.Now()); out.guess != nil {
			out.guess.Text = r.quote(out.guess.Text)
		}
	}
	out.verdict = out.weigh()
	if r.guessed++; !out.byWords {
		r.guessed = 0
	}
	switch {
	case out.then == record.Waits:
		out.until = r.setLimited(r.at.worker, out.problem)
	case out.then == record.Failed && out.empty():
		wasOpen := r.breaker.open
		last, had := r.failures[r.at.unit]
		if !r.breaker.blame(r.at.unit, r.at.leaves, last, had) {
			return
		}
		out.then, out.opened = record.Uncounted, !wasOpen
		if r.cfg.Unattended {
			out.until = r.breaker.wait()
		}
	}
}

// afterUncounted continues or ends the run after a start that does not count as an attempt.
func (r *runner) afterUncounted(ctx context.Context, out *outcome) error {
	w := r.at.worker
	switch {
	case ctx.Err() != nil:
		return r.interrupted()
	case out.then == record.Waits:
		return r.waitForAgent(ctx, w, out.problem, out.until)
	case out.then == record.Needed:
		return r.needed(w, out.problem)
	case r.breaker.open && out.empty() && !out.lost():
		return r.tripped(ctx, w, out)
	}
	r.cfg.UI.Say("no attempt is counted: %s", plain.Line(plain.Clip(out.failure, 300)))
	return nil
}

// begin marks the unit as being worked on, durably, and returns the number of the attempt.
func (r *runner) begin(ctx context.Context, w *worker, unit string, leaves []string) (int, error) {
	now, fresh := time.Now(), w.NewSession()
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
		h.AgentName, h.AgentSession = w.Name(), fresh
		if r.cfg.Commit {
			h.Git.Head, h.Git.Branch = r.git.Head, r.git.Branch
		}
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

// attemptNumber returns the number of the next attempt at a unit, from 1.
func attemptNumber(st *session.State, leaves []string) int {
	n := 1
	for _, id := range leaves {
		if t, ok := st.Task(id); ok {
			n = max(n, t.Attempts+1)
		}
	}
	return n
}

// execute runs the command and, if that succeeds, the check.
func (r *runner) execute(ctx context.Context, unit string, leaves []string, n int) (out outcome, m metrics, err error) {
	changes, err := r.before(ctx, unit)
	if err != nil {
		return out, m, err
	}
	w := r.at.worker
	text, launch, err := r.composeOrContinue(ctx, w, unit, leaves, n)
	if err != nil {
		return out, m, err
	}
	if r.output != nil {
		r.output.Prompt(text)
	}
	stdin, err := r.writePrompt(text)
	if err != nil {
		return out, m, err
	}
	defer stdin.Close()
	if err := r.listChanged(changes); err != nil {
		return out, m, err
	}
	t, _ := r.sess.State().Task(unit)
	r.status(t.Name, n)
	r.cfg.UI.Started(r.progressLine(t, n))
	env := r.env(unit, n)
	deadline := r.deadline()
	cmd := child.Command{Argv: w.Launch(launch), Dir: r.cfg.Tree, Env: env, Iteration: r.at.iteration}
	if w.Stdin() {
		cmd.Stdin = stdin
	}
	resumed := launch.Session != "" && !launch.New
	if !resumed {
		r.lastStart.used = agent.Usage{}
	}
	if out.start, err = r.work(ctx, w, cmd, r.lastStart.used, deadline); err != nil {
		return out, m, err
	}
	out.budget, out.resumed = launch.Budget, resumed
	m, warning := r.readMetrics(time.Now())
	if warning != nil {
		r.cfg.UI.Warn("%v", warning)
	}
	out.retryAt = m.RetryAt
	r.account(w, &m, &out)
	if ctx.Err() != nil {
		return out, m, nil
	}
	if out.weigh().then == record.Done && r.cfg.Check != "" {
		err = r.judge(ctx, &out, env, deadline)
	}
	return out, m, err
}

// composeOrContinue decides whether an attempt continues a session of the agent, and composes
// its prompt. The ID of a continued session is durable before the start.
func (r *runner) composeOrContinue(ctx context.Context, w *worker, unit string, leaves []string, n int) ([]byte, agent.Launch, error) {
	launch := agent.Launch{Session: r.at.session, New: r.at.session != "", Budget: r.left}
	if id := r.lastStart.sessionFor(w, unit, n); id != "" {
		launch.Session, launch.New, r.at.session = id, false, id
		if err := r.change(session.TriggerStepCompleted, func(e *session.Edit) error {
			e.Header().AgentSession = id
			return nil
		}); err != nil {
			return nil, launch, err
		}
		if err := r.sync(ctx); err != nil {
			return nil, launch, err
		}
		r.log.Info().Str("agent", w.Name()).Str("agent_session", id).Msg("agent session continues")
		text, err := r.composeContinued(unit)
		launch.Prompt = string(text)
		return text, launch, err
	}
	text, resources, err := r.compose(r.sess.State(), unit, leaves, n)
	if err != nil {
		return nil, launch, err
	}
	r.at.context = resources
	launch.Prompt = string(text)
	return text, launch, r.ignorePaused(r.sess.Update(func(st *session.State) (*session.State, error) {
		e := st.Edit()
		e.Header().Resources = prompt.Resources(st.Header().Resources, resources)
		return e.State()
	}))
}

func (r *runner) judge(ctx context.Context, out *outcome, env []string, deadline time.Time) error {
	stdout, stderr := r.cfg.UI.Output()
	if r.output != nil {
		r.output.Note("--- check: " + plain.Line(r.check))
	}
	checked, failure, tail, err := r.runCheck(ctx, r.at.unit, env, deadline, r.rendered(stdout), r.rendered(stderr))
	if err != nil || ctx.Err() != nil {
		return err
	}
	if out.check = checked; failure != "" {
		out.red, out.checkTail = fmt.Sprintf("the check %q: %s", r.check, failure), tail
	}
	return nil
}

// runCheck runs the check of a unit. If the check fails, failure says how, and tail is the end
// of its output.
func (r *runner) runCheck(ctx context.Context, unit string, env []string, deadline time.Time, stdout, stderr io.Writer) (_ *session.CheckResult, failure string, tail []byte, err error) {
	c := child.Command{Argv: []string{"sh", "-c", r.cfg.Check}, Dir: r.cfg.Tree, Env: r.withDiff(ctx, unit, env), Stdout: stdout, Stderr: stderr}
	res, err := r.supervise(ctx, c, deadline, nil)
	if err != nil {
		return nil, "", nil, err
	}
	if res.Cause != child.CauseNone || res.Exit != 0 {
		failure, tail = describe(res, r.cfg), res.Tail
	}
	return &session.CheckResult{Command: r.check, Exit: res.Exit, At: res.EndedAt, Duration: res.EndedAt.Sub(res.StartedAt), Task: unit}, failure, tail, nil
}

// sameFolder ends the run if another folder is in the place of the work tree: its files may be anybody's.
func (r *runner) sameFolder() error {
	if r.cfg.Folder == nil {
		return nil
	}
	info, err := os.Stat(r.cfg.Tree)
	if err == nil && os.SameFile(info, r.cfg.Folder) {
		return nil
	}
	if err := r.clearActive(session.TriggerPaused); err != nil {
		return err
	}
	return r.pause(session.TriggerPaused, session.ExitFailed, &Exit{ExitUser, fmt.Sprintf("%s is not the folder any more that the run began in, so nothing is started there: bring that back, then %s", plain.Line(r.cfg.Tree), r.resumeHint())})
}

// supervise runs one process. The process inherits a lock by which the next holder of the
// session finds it. well reports whether the agent of a command ended well; supervise records
// that for the next holder. It is nil for a check.
func (r *runner) supervise(ctx context.Context, c child.Command, deadline time.Time, well func(child.Result) bool) (child.Result, error) {
	if err := r.sameFolder(); err != nil {
		return child.Result{}, err
	}
	c.Grace, c.IdleTimeout, c.Keep = defaultGrace, r.cfg.idle(), true
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
		c.Inherit, c.Lock = append(c.Inherit, hold.File()), hold
		shown := strings.Join(r.sess.RedactArgs(c.Argv), " ")
		c.Started = func(pid int) { recordErr = hold.Record(pid, shown) }
	}
	res, err := child.Run(ctx, c)
	if err == nil && well != nil {
		ended := process.Ended{Iteration: c.Iteration, Exit: res.Exit, Signal: res.Signal, Success: well(res)}
		if hold != nil {
			if err := hold.Ended(ended); err != nil {
				r.log.Warn().Err(err).Msg("how the command ended is not noted")
			}
		}
	}
	if recordErr != nil {
		r.cfg.UI.Warn("the command's process group could not be noted: %v", recordErr)
	}
	if res.LeftBehind {
		r.cfg.UI.Warn("the command left a process behind that still holds its output")
	}
	if len(res.Left) > 0 {
		r.cfg.UI.Warn("processes that the command may have started still run and are left alone (PID %s)", strings.Trim(fmt.Sprint(res.Left), "[]"))
	}
	r.keepHeld(hold, err == nil && res.Cause == child.CauseNone)
	return res, err
}

// hold takes the lock that the next command inherits. If that fails, hold waits until the
// storage works again. A session folder that was removed is made again, since an agent may
// clean up too much before its check.
func (r *runner) hold(ctx context.Context) (hold *process.Lock, err error) {
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

// env returns the environment of the command and the check: that of the run, and the variables
// of the n-th attempt at a unit.
func (r *runner) env(unit string, n int) []string {
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
		"LOPEN_DIFF_FILE="+r.given.diff, // an empty file; withDiff replaces it
	)
}

// deadline returns when an attempt that begins now is ended; zero means never.
func (r *runner) deadline() (at time.Time) {
	if r.cfg.Timeout > 0 {
		at = time.Now().Add(r.cfg.Timeout)
	}
	return at
}

// given has the paths of the files that the command is given. Each start gets new paths, so
// that files of an earlier start cannot be mistaken for its own.
type given struct{ prompt, changed, metrics, diff string }

// writePrompt writes the file of LOPEN_PROMPT_FILE, returns it open at its beginning, and
// chooses the name of LOPEN_METRICS_FILE.
func (r *runner) writePrompt(text []byte) (f *os.File, err error) {
	if err := r.dir.Renew(); err != nil {
		return nil, fmt.Errorf("write prompt: %w", err)
	}
	r.given = given{metrics: r.dir.Name("metrics", ".json")}
	if f, r.given.prompt, err = r.dir.Write("prompt", ".md", text); err != nil {
		return nil, fmt.Errorf("write prompt: %w", err)
	}
	return f, nil
}

// describe returns a text on how a process failed.
func describe(res child.Result, cfg Config) string {
	switch res.Cause {
	case child.CauseTimeout:
		return fmt.Sprintf("ended after the timeout of %s", cfg.Timeout)
	case child.CauseIdle:
		return fmt.Sprintf("ended after %s without output", cfg.idle())
	}
	if res.Signal != "" {
		return "killed by signal " + res.Signal
	}
	return fmt.Sprintf("exit %d", res.Exit)
}

// compose returns the prompt of the n-th attempt at a unit of st, and the sections that it has.
func (r *runner) compose(st *session.State, unit string, leaves []string, n int) ([]byte, []session.Resource, error) {
	d, err := r.draft(st, unit, leaves, n)
	if err != nil {
		return nil, nil, err
	}
	text, err := d.Write(r.cfg.Prompt)
	return text, d.Resources, err
}

func (r *runner) draft(st *session.State, unit string, leaves []string, n int) (*prompt.Draft, error) {
	src := prompt.Source{Documents: r.cfg.Documents, Module: r.cfg.Module, Unit: r.cfg.Unit, Check: r.cfg.Check, Warn: r.warnOnce}
	return src.Draft(r.plan, st, prompt.Attempt{Unit: unit, Leaves: leaves, Number: n, Failures: r.failures[unit]})
}

// noteFailure adds a failed attempt at a unit, for the next prompt.
func (r *runner) noteFailure(unit string, f prompt.Failure) {
	all := append([]prompt.Failure{f}, r.failures[unit]...)
	r.failures[unit] = all[:min(len(all), lifecycle.MaxFailures)]
}
