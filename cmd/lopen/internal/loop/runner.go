package loop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"text/template"
	"time"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
)

// Config is one run. Zero durations mean no limit.
type Config struct {
	Store   *lifecycle.Store
	Session *lifecycle.Session
	Module  string
	Project string   // absolute path; the command and the check run in it
	Docs    fs.FS    // the project's folder again, for reading documents; nothing leads out of it
	Spec    string   // the specification, relative to the project, with slashes
	Command []string // never empty
	Check   string   // for sh -c; "" for none
	Unit    string   // leaf, task or component
	Only    string   // a task's ID: run this one alone
	Prompt  *template.Template
	Environ []string

	Timeout, IdleTimeout   time.Duration
	Wait                   time.Duration // in all, for an agent's limit
	PauseTimeout           time.Duration // for a storage error to go away
	FailureThreshold       int           // attempts at a task; 0 means no limit
	MaxIterations          int           // starts of the command in this run; 0 means no limit
	Unattended, ByTerminal bool          // never asks; there is a person to ask
	UI                     UI
}

// UI is the person in front of the run.
type UI interface {
	// Output is where the command's stdout and stderr go, as they come.
	Output() (stdout, stderr io.Writer)
	// Say prints one line about the run itself.
	Say(format string, args ...any)
	// Warn is Say for what a person should look at.
	Warn(format string, args ...any)
	// Started and Done frame a task. One of the two is shown: where there is a
	// status line the task is on it, and elsewhere one line a start will do.
	Started(line string)
	Done(line string)
	// Status shows what is going on; it may show nothing.
	Status(Status)
	// Choose asks; it is called only when Config.ByTerminal is set. It
	// returns the key of one of the choices, or an error when the person left.
	Choose(question string, choices []Choice) (rune, error)
	// Edit lets the person edit a file and returns when they are done.
	Edit(path string) error
}

// A Choice is an answer that Choose offers.
type Choice struct {
	Key  rune
	Text string
}

// Status is what a status line shows.
type Status struct {
	Task     string    // the running task's name, or what is waited for
	Attempt  int       // 0 when no task runs
	Since    time.Time // when Task began
	Until    time.Time // the end of a wait; zero when unknown
	Progress session.Progress
	Tokens   int64
}

// An Exit is a run that ended before its module was complete.
type Exit struct {
	Code   int // of the process
	Reason string
}

func (e *Exit) Error() string { return e.Reason }

// The exit codes that a run ends with, besides 0.
const (
	ExitFailed      = 1
	ExitUser        = 2
	ExitBusy        = 11
	ExitStorage     = 14
	ExitLimit       = 75
	ExitInterrupted = 130
)

// A Runner works through the plan of one session.
type Runner struct {
	cfg    Config
	sess   *lifecycle.Session
	plan   *plan.Plan
	dir    string // temporary folder of this run: prompt and metrics file
	starts int    // of the command, in this run
	limits limits
	last   lastOutput
	warned map[string]bool // what is said once a run
}

// Run works until the module is complete (nil), or returns why it ended: an
// [*Exit], with the session paused and saved, or an error of the storage. When
// ctx is cancelled the command is ended, the session is paused, and the Exit
// has code 130. The session stays open.
func Run(ctx context.Context, cfg Config) error {
	dir, err := os.MkdirTemp("", "lopen-run-")
	if err != nil {
		return fmt.Errorf("make a folder for prompts: %w", err)
	}
	defer os.RemoveAll(dir)
	r := &Runner{cfg: cfg, sess: cfg.Session, dir: dir, warned: map[string]bool{}}
	err = r.run(ctx)
	var exit *Exit
	if ctx.Err() != nil && !errors.As(err, &exit) {
		return r.interrupted()
	}
	return err
}

func (r *Runner) run(ctx context.Context) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	for {
		if ctx.Err() != nil {
			return r.interrupted()
		}
		select {
		case err := <-r.sess.Critical(): // of a save that nobody waited for
			if err := r.waitStorage(ctx, err, r.sess.Unpause); err != nil {
				return err
			}
		default:
		}
		if r.sess.PauseRequested() {
			return r.pause(session.TriggerPaused, session.ExitPaused, &Exit{ExitUser, "paused as asked: " + r.resumeHint()})
		}
		if err := r.follow(ctx, tasks.Between); err != nil {
			return err
		}
		unit, leaves, err := r.next()
		if err != nil {
			return err
		}
		if unit == "" {
			return r.finish(ctx)
		}
		if n := r.cfg.MaxIterations; n > 0 && r.starts >= n {
			return r.pause(session.TriggerPaused, session.ExitMaxIterations,
				&Exit{ExitUser, fmt.Sprintf("stopped after %d starts of the command (max_iterations): %s", n, r.resumeHint())})
		}
		if err := r.attempt(ctx, unit, leaves); err != nil {
			return err
		}
	}
}

// prepare brings a new or resumed session to the building phase.
func (r *Runner) prepare(ctx context.Context) error {
	fresh := r.sess.State().NumTasks() == 0
	cut := r.sess.State().ActiveTask() != ""
	if err := r.change(session.TriggerPhaseChanged, func(e *session.Edit) error {
		h := e.Header()
		h.Status, h.ExitReason = session.StatusActive, ""
		h.Settings = r.settings()
		if fresh {
			h.Phase, h.Step = session.PhaseRequirementGathering, session.StepDraftSpecification
		}
		return nil
	}); err != nil {
		return err
	}
	p, err := r.loadPlan()
	if err != nil {
		return err
	}
	if len(p.Tasks()) == 0 {
		return r.pause(session.TriggerPaused, session.ExitPaused, &Exit{ExitUser,
			fmt.Sprintf("the plan %s has no task: write some as list items like \"- [ ] do this\" and run again", lifecycle.PlanPath(r.cfg.Module))})
	}
	when := tasks.Between
	if cut {
		when = tasks.Cut
	}
	if err := r.follow(ctx, when); err != nil {
		return err
	}
	if err := r.rest(session.TriggerStepCompleted); err != nil {
		return err
	}
	if fresh {
		for _, step := range []session.Step{session.StepDetermineDependencies, session.StepIdentifyComponents,
			session.StepSelectNextComponent, session.StepBreakIntoTasks} {
			if err := r.step(session.PhasePlanning, step); err != nil {
				return err
			}
		}
	}
	if err := r.retryFailed(); err != nil {
		return err
	}
	return r.step(session.PhaseBuilding, session.StepIterateThroughTasks)
}

// step moves to a step, under phase-changed when the phase is a new one.
func (r *Runner) step(phase session.Phase, step session.Step) error {
	t := session.TriggerStepCompleted
	if r.sess.State().Phase() != phase {
		t = session.TriggerPhaseChanged
	}
	return r.change(t, func(e *session.Edit) error {
		h := e.Header()
		h.Phase, h.Step = phase, step
		return nil
	})
}

// retryFailed gives tasks that used up their attempts in an earlier run new
// ones: that somebody started the run again is the reason to try.
func (r *Runner) retryFailed() error {
	var failed []session.Task
	for t := range r.sess.State().All() {
		if len(t.Children) == 0 && t.State == session.TaskFailed {
			failed = append(failed, t)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	for _, t := range failed {
		r.cfg.UI.Say("failed last time, tries again: %s", t.Name)
	}
	return r.change(session.TriggerStepCompleted, func(e *session.Edit) error {
		for _, t := range failed {
			tasks.Set(e, t.ID, func(t *session.Task) { t.State, t.Attempts = session.TaskPending, 0 })
		}
		return nil
	})
}

// loadPlan reads the plan, and makes it from the specification's Acceptance
// Criteria where there is none.
func (r *Runner) loadPlan() (*plan.Plan, error) {
	p, err := r.cfg.Store.Plan(r.cfg.Module)
	if !errors.Is(err, fs.ErrNotExist) {
		return p, err
	}
	spec, err := ReadSpec(r.cfg.Docs, r.cfg.Spec)
	if err != nil {
		return nil, err
	}
	content, err := plan.FromCriteria(r.cfg.Module, spec)
	if err != nil {
		return nil, fmt.Errorf("make a plan from %s: %w", r.cfg.Spec, err)
	}
	if err := r.cfg.Store.CreatePlan(r.cfg.Module, content); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	r.cfg.UI.Say("plan made from the Acceptance Criteria of %s: %s", r.cfg.Spec, lifecycle.PlanPath(r.cfg.Module))
	return r.cfg.Store.Plan(r.cfg.Module)
}

// follow takes the plan as it is now over into the State, says what differs
// and writes the boxes that lopen owes.
func (r *Runner) follow(ctx context.Context, when tasks.When) error {
	p, err := r.loadPlan()
	if err != nil {
		return err
	}
	res, err := tasks.Reconcile(r.sess.State(), p, when)
	if err != nil {
		return fmt.Errorf("take over the plan: %w", err)
	}
	if len(res.Unclear) > 0 && r.cfg.ByTerminal && !r.cfg.Unattended {
		yes, err := r.askUnclear(res.Unclear)
		if err != nil {
			return err
		}
		if yes {
			if res, err = tasks.Reconcile(r.sess.State(), p, tasks.Between); err != nil {
				return fmt.Errorf("take over the plan: %w", err)
			}
		}
	}
	for _, n := range res.Notes {
		r.cfg.UI.Say("plan: %s", n)
	}
	// The State goes first: what it says is what the boxes are set to.
	changed := false
	session.Diff(r.sess.State(), res.State, func(string, *session.Task, *session.Task) bool { changed = true; return false })
	if changed {
		if err := r.sess.Update(func(*session.State) (*session.State, error) { return res.State, nil }); err != nil {
			if err = r.tolerate(err); err != nil {
				return err
			}
		}
		if len(res.Notes) > 0 {
			if err := r.change(session.TriggerStepCompleted, func(*session.Edit) error { return nil }); err != nil {
				return err
			}
		}
	}
	r.plan = p
	return r.writeBoxes(ctx, res.Boxes)
}

func (r *Runner) askUnclear(ids []string) (bool, error) {
	for _, id := range ids {
		r.cfg.UI.Say("this box changed while a task was running that was killed: %s", id)
	}
	key, err := r.cfg.UI.Choose("Was it you who changed the plan?", []Choice{
		{'y', "yes, keep the boxes"}, {'n', "no, set them back"},
	})
	return key == 'y', err
}

// writeBoxes sets boxes in the plan and remembers them in the State. The
// memory is saved with the next commit; a kill before that is noticed and
// mended by the next start.
func (r *Runner) writeBoxes(ctx context.Context, boxes map[string]bool) error {
	if len(boxes) == 0 {
		return nil
	}
	var conflict *plan.ConflictError
	for {
		p, err := r.cfg.Store.SetBoxes(r.cfg.Module, r.plan, boxes)
		if err == nil || errors.As(err, &conflict) {
			if p != nil {
				r.plan = p
			}
			break
		}
		if err := r.waitStorage(ctx, err, nil); err != nil {
			return err
		}
	}
	if conflict != nil {
		r.cfg.UI.Warn("plan: %v", conflict)
	}
	return r.tolerate(r.sess.Update(func(st *session.State) (*session.State, error) {
		e := st.Edit()
		for id, ticked := range boxes {
			if t, ok := e.Task(id); ok && t.Box != session.BoxNone {
				t.Box = session.BoxOpen
				if ticked {
					t.Box = session.BoxTicked
				}
				e.Put(t)
			}
		}
		return e.State()
	}))
}

// next chooses what runs: the unit's ID and its leaves. An empty unit means
// that nothing is left to run.
func (r *Runner) next() (unit string, leaves []string, err error) {
	st := r.sess.State()
	if unit, leaves = choose(st, r.cfg); unit != "" {
		return unit, leaves, nil
	}
	if _, ok := st.Task(r.cfg.Only); !ok && r.cfg.Only != "" {
		return "", nil, r.pause(session.TriggerPaused, session.ExitPaused, &Exit{ExitUser, "the task is no longer in the plan: " + r.cfg.Only})
	}
	_, waiting := tasks.Order(st)
	waiting = slices.DeleteFunc(waiting, func(w tasks.Waiting) bool { return r.cfg.Only != "" && !within(st, w.Task, r.cfg.Only) })
	if len(waiting) > 0 && (r.cfg.Only != "" || st.Progress().Failed == 0) {
		return "", nil, r.stuck(waiting)
	}
	return "", nil, nil
}

// choose returns the unit of st that is to run next with the leaves that are to
// be done in it, or nothing.
func choose(st *session.State, cfg Config) (unit string, leaves []string) {
	ready, waiting := tasks.Order(st)
	if cfg.Only != "" {
		ready = slices.DeleteFunc(ready, func(id string) bool { return !within(st, id, cfg.Only) })
	}
	if len(ready) == 0 {
		return "", nil
	}
	unit = tasks.Unit(st, ready[0], cfg.Unit)
	if cfg.Only != "" && !within(st, unit, cfg.Only) {
		unit = cfg.Only
	}
	return unit, openLeaves(st, unit, ready, waiting)
}

// openLeaves returns the leaves of a unit that are to be done now: those that
// are ready, and those that wait only for others of the same unit.
func openLeaves(st *session.State, unit string, ready []string, waiting []tasks.Waiting) []string {
	open := make(map[string]bool, len(ready))
	for _, id := range ready {
		open[id] = true
	}
	for _, w := range waiting {
		inside := true
		for _, dep := range w.For {
			inside = inside && within(st, dep, unit)
		}
		open[w.Task] = inside
	}
	var leaves []string
	for _, id := range tasks.Leaves(st, unit) {
		if open[id] {
			leaves = append(leaves, id)
		}
	}
	return leaves
}

// within says whether a task is the unit or lies beneath it.
func within(st *session.State, id, unit string) bool {
	for id != "" {
		if id == unit {
			return true
		}
		t, ok := st.Task(id)
		if !ok {
			return false
		}
		id = t.Parent
	}
	return false
}

// stuck ends a run in which every open task waits.
func (r *Runner) stuck(waiting []tasks.Waiting) error {
	for _, w := range waiting {
		for _, id := range w.For {
			why := "which is not done"
			if _, ok := r.sess.State().Task(id); !ok {
				why = "which the plan does not have"
			}
			r.cfg.UI.Warn("blocked: %s waits for %s, %s", w.Task, id, why)
		}
	}
	return r.pause(session.TriggerPaused, session.ExitPaused, &Exit{ExitUser,
		fmt.Sprintf("nothing can run: %d tasks wait for each other or for what is not there; mend their \"after:\" in %s", len(waiting), lifecycle.PlanPath(r.cfg.Module))})
}

// finish ends a run in which nothing is left to run.
func (r *Runner) finish(ctx context.Context) error {
	st := r.sess.State()
	p := st.Progress()
	_, waiting := tasks.Order(st)
	switch {
	case r.cfg.Only != "" && p.Done+p.Skipped < p.Total:
		r.report()
		if t, _ := st.Task(r.cfg.Only); t.State == session.TaskFailed {
			return r.pause(session.TriggerPaused, session.ExitFailed, &Exit{ExitUser, "the task failed: " + r.resumeHint()})
		}
		if err := r.pauseOnly(session.TriggerPaused, session.ExitPaused); err != nil {
			return err
		}
		r.cfg.UI.Say("done: %s", r.cfg.Only)
		return nil
	case p.Failed > 0:
		for _, w := range waiting {
			r.cfg.UI.Say("blocked by what failed: %s", w.Task)
		}
		r.report()
		return r.pause(session.TriggerPaused, session.ExitFailed, &Exit{ExitUser,
			fmt.Sprintf("%d of %d tasks failed, %d blocked: %s", p.Failed, p.Total, len(waiting), r.resumeHint())})
	}
	for {
		err := r.sess.Complete(ctx)
		if err == nil {
			break
		}
		if err := r.waitStorage(ctx, err, r.sess.Unpause); err != nil {
			return err
		}
	}
	r.report()
	return nil
}

func (r *Runner) report() {
	st := r.sess.State()
	p, m := st.Progress(), st.Totals()
	line := fmt.Sprintf("%s: %d/%d tasks done", r.cfg.Module, p.Done, p.Total)
	if p.Failed > 0 {
		line += fmt.Sprintf(", %d failed", p.Failed)
	}
	if p.Skipped > 0 {
		line += fmt.Sprintf(", %d skipped", p.Skipped)
	}
	if m.InputTokens+m.OutputTokens > 0 {
		line += fmt.Sprintf(", %d tokens", m.InputTokens+m.OutputTokens)
	}
	r.cfg.UI.Say("%s, %d starts of the command", line, r.starts)
}

func (r *Runner) settings() session.Settings {
	c := r.cfg
	return session.Settings{
		Command: c.Command, Check: c.Check, Unit: c.Unit,
		Timeout: c.Timeout, IdleTimeout: c.IdleTimeout, Wait: c.Wait,
		FailureThreshold: c.FailureThreshold, MaxIterations: c.MaxIterations, Unattended: c.Unattended,
	}
}

func (r *Runner) resumeHint() string {
	return fmt.Sprintf("go on with: lopen run %s", r.cfg.Module)
}

// ReadSpec reads a specification, at most 64 MiB of it.
func ReadSpec(docs fs.FS, name string) ([]byte, error) {
	f, err := docs.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read specification: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read specification: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxSpec {
		return nil, fmt.Errorf("read specification: %s is not a file of at most %d MiB", name, maxSpec>>20)
	}
	return io.ReadAll(io.LimitReader(f, maxSpec))
}

const maxSpec = 64 << 20
