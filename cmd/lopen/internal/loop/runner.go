package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/scratch"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/output"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer/process"
)

func (e *Exit) Error() string { return e.Reason }

// A runner works through the plan of one session.
type runner struct {
	cfg          Config
	sess         Session
	log          *zerolog.Logger // of the session
	plan         *plan.Plan
	dir          *scratch.Dir // temporary folder of this run
	given        given
	starts       int           // number of starts of the command in this run
	workers      []*worker     // never empty
	worker       *worker       // the one that was started last
	asked        bool          // the agents were asked whether they can work
	waited       time.Duration // sum of the waits since the last start that was not empty
	guessed      int           // starts in a row that wait because of their last lines of output
	breaker      breaker
	lastStart    lastStart
	earlier      session.Totals              // of earlier runs
	left         float64                     // USD that the next attempt may cost; 0 means no limit
	filesUnknown bool                        // the changed files are not known
	failures     map[string][]prompt.Failure // failed attempts by unit, the newest first
	at           working
	held         []*process.Lock  // of the commands of the attempt in progress
	output       *output.Writer   // of the attempt in progress; nil between attempts and if none is stored
	since        []files.Change   // changes that the next prompt lists
	unchanged    []string         // done units that changed no file
	git          session.Git      // as last seen
	warned       map[string]bool  // keys of warnings that are shown once a run
	taken        []tasks.Decision // that the State has, and that could not be forgotten
	planMade     bool             // the plan was made of the specification by this run
	differs      []string         // lines that were shown of how the specification differs from the plan
	reconciled   *plan.Plan       // the plan that the State agrees with; nil if boxes have to be written
	assessed     bool             // the check was run before the first task
	green        green            // the last unit whose check passed
	noCheckpoint []string         // units before or after which a checkpoint could not be made
	killed       []files.Change   // changes since the begin of an attempt that a kill interrupted
	commits      commits
	check        string  // the redacted check, for storing and showing
	events       *events // nil without OnEvent
}

// Run works until the module is complete and then returns nil. Otherwise it returns why it
// ended: an [*Exit], with the session paused and saved, or an error of the storage. When ctx is
// cancelled, Run ends the command and pauses the session, and the Exit has code 130. The
// session stays open.
func Run(ctx context.Context, cfg Config) (err error) {
	dir, err := scratch.New()
	if err != nil {
		return err
	}
	defer dir.Close()
	r := &runner{cfg: cfg, sess: cfg.Session, log: cfg.Session.Logger(), dir: dir, warned: map[string]bool{}, failures: map[string][]prompt.Failure{}}
	r.check = cfg.Session.Redact(cfg.Check)
	for _, a := range cfg.Agents {
		r.workers = append(r.workers, &worker{Agent: a, command: cfg.Session.RedactArgs(a.Argv())})
	}
	r.earlier = cfg.Session.State().Totals()
	defer cfg.Shared.end(r)
	begun := time.Now()
	// The arguments of the command are not logged, because they may contain secrets.
	r.log.Info().Str("module", cfg.Module).Str("command", r.workers[0].command[0]).Str("check", r.check).Msg("run begins")
	if cfg.OnEvent != "" {
		r.events = newEvents(r.log, eventLimit, r.onEvent(eventLimit))
		r.events.cost = cfg.Session.State().Totals().CostUSD
		defer r.events.stop()
	}
	defer func() {
		r.logEnd(err, begun)
		if r.events != nil {
			r.emit(r.ended(err, begun))
		}
	}()
	err = r.run(ctx)
	var exit *Exit
	if err == nil || errors.As(err, &exit) {
		return err
	}
	if ctx.Err() != nil {
		return r.interrupted()
	}
	// The caller reports the error. The session must not stay active.
	return errors.Join(err, r.clearActive(session.TriggerPaused), r.pauseOnly(session.TriggerPaused, session.ExitFailed))
}

func (r *runner) run(ctx context.Context) error {
	r.git = r.gitState(ctx)
	if err := r.prepare(ctx); err != nil {
		return err
	}
	r.emit(event{Event: eventBegun})
	for {
		if err := r.between(ctx); err != nil {
			return err
		}
		if err := r.reconcile(ctx, tasks.Between); err != nil {
			return err
		}
		r.drift("it was given to the command")
		unit, leaves, err := r.next()
		if err != nil {
			return err
		}
		if unit == "" {
			return r.finish(ctx)
		}
		if waited, err := r.awaitShared(ctx); err != nil || waited {
			if err != nil {
				return err
			}
			continue
		}
		if err := r.bounds(ctx); err != nil {
			return err
		}
		if err := r.ready(ctx); err != nil {
			return err
		}
		if err := r.baseline(ctx, unit, leaves); err != nil {
			return err
		}
		if err := r.attempt(ctx, unit, leaves); err != nil {
			return err
		}
	}
}

// between runs between two tasks. It waits for the storage after a critical error, and ends the
// run if that was requested.
func (r *runner) between(ctx context.Context) error {
	if ctx.Err() != nil {
		return r.interrupted()
	}
	select {
	case err := <-r.sess.Critical(): // the error of a save that nobody waited for
		if err := r.waitStorage(ctx, err, r.unpause); err != nil {
			return err
		}
	default:
	}
	if !r.sess.PauseRequested() {
		return nil
	}
	text := "paused as asked: " + r.resumeHint()
	r.emit(event{Event: eventPaused, Text: text})
	return r.pause(session.TriggerPaused, session.ExitPaused, &Exit{ExitUser, text})
}

// bounds ends the run if max_iterations or the budget is used up.
func (r *runner) bounds(ctx context.Context) error {
	if n := r.cfg.MaxIterations; n > 0 && r.starts >= n {
		return r.tooMany(r.starts)
	}
	return r.budget(ctx)
}

// noTask ends a run whose plan has no task, from the beginning or because all tasks were removed
// during the run, perhaps by mistake. The session does not become complete.
func (r *runner) noTask() error {
	return r.pause(session.TriggerPaused, session.ExitPaused, &Exit{ExitUser,
		fmt.Sprintf("the plan %s has no task: write some as list items like \"- [ ] do this\" and run again", lifecycle.PlanPath(r.cfg.Module))})
}

// prepare brings a new or resumed session to the building phase.
func (r *runner) prepare(ctx context.Context) error {
	fresh := r.sess.State().NumTasks() == 0
	when := tasks.Between
	if r.sess.State().ActiveTask() != "" {
		when = tasks.Cut
	}
	past := &lifecycle.Past{}
	if !fresh {
		r.drift("the last run")
		var err error
		if past, err = r.loadPast(ctx); err != nil {
			return err
		}
	}
	if err := r.activate(fresh); err != nil {
		return err
	}
	p, err := r.loadPlan()
	if err != nil {
		return err
	}
	if len(p.Tasks()) == 0 {
		return r.noTask()
	}
	_ = r.specification(p) // the run has something to do first
	if err := r.reconcile(ctx, when); err != nil {
		return err
	}
	if differs := Differs(r.sess.State()); differs != "" {
		r.cfg.UI.Warn("plan: %s", differs)
	}
	if err := r.beginCommits(ctx, past); err != nil {
		return err
	}
	if err := r.endKilled(ctx); err != nil {
		return err
	}
	if err := r.planningSteps(fresh); err != nil {
		return err
	}
	if err := r.retryFailed(); err != nil {
		return err
	}
	if err := r.beginTransaction(ctx); err != nil {
		return err
	}
	return r.step(session.PhaseBuilding, session.StepIterateThroughTasks)
}

// activate makes the session active and saves the settings of the run.
func (r *runner) activate(fresh bool) error {
	return r.change(session.TriggerPhaseChanged, func(e *session.Edit) error {
		h := e.Header()
		h.Status, h.ExitReason = session.StatusActive, ""
		h.Settings = r.settings()
		if fresh {
			h.Phase, h.Step = session.PhaseRequirementGathering, session.StepDraftSpecification
		}
		return nil
	})
}

// planningSteps moves a new session through the steps that its existing plan covers.
func (r *runner) planningSteps(fresh bool) error {
	if !fresh {
		return nil
	}
	for _, step := range []session.Step{session.StepDetermineDependencies, session.StepIdentifyComponents,
		session.StepSelectNextComponent, session.StepBreakIntoTasks} {
		if err := r.step(session.PhasePlanning, step); err != nil {
			return err
		}
	}
	return nil
}

// step moves to a step. The trigger is phase-changed if the phase changes.
func (r *runner) step(phase session.Phase, step session.Step) error {
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

// retryFailed gives the selected tasks that used up their attempts in an earlier run, or that a
// person marked as failed, new attempts, because a person started the run again.
func (r *runner) retryFailed() error {
	failed := failedLeaves(r.sess.State(), r.cfg.Select)
	for _, id := range failed {
		r.cfg.UI.Say("failed last time, tries again: %s", r.name(id))
	}
	for _, t := range r.cfg.Select.Leaves(r.plan) {
		is, _ := r.sess.State().Task(t.ID)
		if t.Mark.State == plan.MarkFailed && is.State == session.TaskPending {
			r.cfg.UI.Say("marked as failed, tries again: %s", r.name(t.ID))
			failed = append(failed, t.ID)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	if err := r.change(session.TriggerStepCompleted, func(e *session.Edit) error {
		resetTasks(e, failed)
		return nil
	}); err != nil {
		return err
	}
	r.mark(failed, plan.Mark{})
	return nil
}

func failedLeaves(st *session.State, s Selection) (ids []string) {
	in := s.of(st)
	for t := range st.All() {
		if len(t.Children) == 0 && t.State == session.TaskFailed && in.has(t.ID) {
			ids = append(ids, t.ID)
		}
	}
	return ids
}

// resetTasks makes tasks pending, with all their attempts.
func resetTasks(e *session.Edit, ids []string) {
	for _, id := range ids {
		tasks.Set(e, id, func(t *session.Task) { t.State, t.Attempts = session.TaskPending, 0 })
	}
}

func (r *runner) settings() session.Settings {
	c := r.cfg
	return session.Settings{
		Command: r.workers[0].command, Agent: c.Agents[0].Name(), Check: r.check, Unit: c.Unit,
		Timeout: c.Timeout, IdleTimeout: c.IdleTimeout, FailureThreshold: c.FailureThreshold, RequireChange: c.RequireChange, Commit: c.Commit, Branch: c.Commit && c.Branch,
	}
}

func (r *runner) resumeHint() string {
	if r.cfg.ResumeHint != "" {
		return r.cfg.ResumeHint
	}
	return fmt.Sprintf("go on with: lopen run %s%s", r.cfg.Module, r.cfg.Select.Flags())
}
