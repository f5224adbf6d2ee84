package loop

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer/plain"
)

// tripsAt is the number of empty starts in a row, at two units or more, that open the circuit
// breaker.
const tripsAt = 3

// A breaker distinguishes a broken agent from tasks that fail: see [start.empty].
type breaker struct {
	starts  int // number of empty starts in a row
	units   map[string]*blamed
	open    bool // no attempt counts until a start is not empty
	backoff backoff
}

// blamed is a unit that failed in empty starts.
type blamed struct {
	leaves []string
	counts int              // number of attempts that giveBack takes back
	last   []prompt.Failure // the unit's failures before the empty starts
	had    bool             // the unit had failures
}

// blame adds an empty start at a unit before it is counted. It returns true if the breaker is
// open, perhaps because of this start; then the start must not be counted.
func (b *breaker) blame(unit string, leaves []string, last []prompt.Failure, had bool) (open bool) {
	if b.open {
		return true
	}
	if b.units == nil {
		b.units = map[string]*blamed{}
	}
	u := b.units[unit]
	if u == nil {
		u = &blamed{leaves: slices.Clone(leaves), last: last, had: had}
		b.units[unit] = u
	}
	b.starts++
	if b.open = b.starts >= tripsAt && len(b.units) > 1; !b.open {
		u.counts++
	}
	return b.open
}

// wait returns the end of the wait before the next probe.
func (b *breaker) wait() time.Time {
	return b.backoff.until(wallClock(), &agent.Problem{Kind: agent.Overload})
}

// giveBack takes back the attempts of the empty starts, and makes tasks that failed because of
// them pending. It changes only the State; the records of the attempts stay in the journal.
func (r *runner) giveBack() error {
	var marked []string
	err := r.change(session.TriggerStepCompleted, func(e *session.Edit) error {
		marked = nil
		for _, u := range r.breaker.units {
			for _, id := range u.leaves {
				t, ok := e.Task(id)
				if !ok || u.counts == 0 {
					continue
				}
				failed := t.State == session.TaskFailed
				if failed {
					marked = append(marked, id)
				}
				tasks.Set(e, id, func(t *session.Task) {
					t.Attempts = max(t.Attempts-u.counts, 0)
					if failed {
						t.State = session.TaskPending
					}
				})
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for unit, u := range r.breaker.units {
		delete(r.failures, unit)
		if u.had {
			r.failures[unit] = u.last
		}
	}
	if len(marked) > 0 {
		slices.Sort(marked)
		r.mark(marked, plan.Mark{})
	}
	return nil
}

// tripped handles a start that did not count because the breaker is open: it waits before the
// next start, which is a probe, or asks a person.
func (r *runner) tripped(ctx context.Context, w *worker, out *outcome) error {
	said := out.report.Error // the agent's error message, or else the last line that it printed
	if said == "" {
		said = lastLineOf(r.sess.Redact(string(out.result.Tail)), out.failure)
	}
	message := plain.Line(plain.Clip(said, 300))
	if out.opened {
		n := len(r.breaker.units)
		if err := r.giveBack(); err != nil {
			return err
		}
		r.cfg.UI.Warn("circuit breaker: %d starts in a row at %d tasks came to nothing, so %s is what fails, not the tasks: no attempt is counted; it said: %s",
			r.breaker.starts, n, w, message)
		r.log.Warn().Str("agent", w.Name()).Str("failure", message).Int("starts", r.breaker.starts).Msg("circuit breaker opens")
	}
	if err := r.sync(ctx); err != nil {
		return err
	}
	stop := func(why string) error {
		text := fmt.Sprintf("%s fails at every task (%s): %s", w, message, why)
		r.emit(event{Event: eventNeeded, Text: text})
		return r.pause(session.TriggerPaused, session.ExitFailed, &Exit{ExitUser, text + "; no attempt is counted; when it works again, " + r.resumeHint()})
	}
	switch {
	case r.cfg.Unattended:
	case !r.cfg.ByTerminal:
		return stop("nobody can be asked")
	default:
		r.emit(event{Event: eventNeeded, Text: fmt.Sprintf("%s fails at every task: %s", w, message)})
		key, err := r.cfg.UI.Choose(fmt.Sprintf("%s fails at every task. What now?", w), []Choice{
			{'g', "go on: try again at once"}, {'w', "wait, and try one task at a time"}, {'q', "stop"},
		})
		if err != nil || key == 'q' {
			return stop("stopped")
		}
		if key == 'g' {
			r.breaker = breaker{}
			return nil
		}
	}
	until := out.until
	if until.IsZero() {
		until = r.breaker.wait()
	}
	if why := r.tooLong(until); why != "" {
		return stop(fmt.Sprintf("the next try would be at %s, %s", clock(until), why))
	}
	return r.wait(ctx, "circuit breaker", fmt.Sprintf("circuit breaker: one task is tried at %s, no attempt is counted; %s said: %s", clock(until), w, message), until)
}

// noteProgress closes the breaker after a start that was not empty.
func (r *runner) noteProgress(w *worker) {
	if r.breaker.open {
		r.cfg.UI.Say("%s works again: the run goes through the plan", w)
		r.log.Info().Str("agent", w.Name()).Msg("circuit breaker closes")
	}
	r.breaker, r.waited, w.backoff = breaker{}, 0, backoff{}
}

// lastLineOf returns the failure with the last line of a text that is not blank.
func lastLineOf(text, failure string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return failure
	}
	return failure + ": " + strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
