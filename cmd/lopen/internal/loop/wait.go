package loop

import (
	"context"
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// Waits are the durations of waits for which no agent gives a time. Only tests change them,
// before the first run.
var Waits = struct {
	Limit    time.Duration // the first wait for a limit
	Overload time.Duration // the first wait for an overload, the network, or a probe
	Longest  time.Duration // the longest wait; waits double up to it
	Poll     time.Duration // the interval at which a waiting run looks at the clock and for requests
	Orphan   time.Duration // the time that a command which outlived its loop gets to end by itself
	Storage  time.Duration // the interval between two retries after a storage error
}{time.Minute, 15 * time.Second, 30 * time.Minute, time.Second, 5 * time.Second, time.Second}

// wallClock returns the time without the monotonic reading, so that the time in which the
// machine sleeps counts.
func wallClock() time.Time { return time.Now().Round(0) }

// A backoff has the next wait for a problem without a given time.
type backoff struct{ next time.Duration }

// until returns the end of the wait for a problem. It uses a time that the agent gives, unless
// that is sooner than the next wait: then the last given time did not help.
func (b *backoff) until(now time.Time, p *agent.Problem) time.Time {
	first := Waits.Overload
	if p.Kind == agent.Limit {
		first = Waits.Limit
	}
	if left := p.ResetAt.Sub(now); !p.ResetAt.IsZero() && max(left, 0) >= b.next {
		b.next = max(b.next, first)
		if left <= 0 {
			return now
		}
		return p.ResetAt.Round(0)
	}
	d := max(b.next, first)
	b.next = min(2*d, Waits.Longest)
	return now.Add(d)
}

// tooLong returns why a wait is not begun, or "".
func (r *runner) tooLong(until time.Time) string {
	if d := until.Sub(wallClock()); r.cfg.Wait > 0 && d > r.cfg.Wait-r.waited { // not d+r.waited, which could overflow
		return fmt.Sprintf("longer than --wait %s allows", r.cfg.Wait)
	}
	if end := r.cfg.Budget.Until; !end.IsZero() && !until.Before(end) {
		return fmt.Sprintf("not before --until %s", end.Local().Format("15:04"))
	}
	return ""
}

// describe returns a short text about an agent's problem.
func (w *worker) describe(p *agent.Problem) string {
	switch p.Kind {
	case agent.Overload:
		return fmt.Sprintf("the provider of %s is overloaded", w)
	case agent.Network:
		return fmt.Sprintf("%s does not reach its provider", w)
	}
	return fmt.Sprintf("%s is at its limit", w)
}

// waitForAgent handles a start with a problem that ends by itself: another agent works, or the
// run waits until the first agent can work, or it ends with exit code 75 if that takes too
// long. until is what setLimited returned.
func (r *runner) waitForAgent(ctx context.Context, w *worker, p *agent.Problem, until time.Time) error {
	met := w.describe(p)
	if p.Text != "" {
		met += fmt.Sprintf(" (%s)", plain.Line(p.Text))
	}
	if until.IsZero() {
		r.cfg.UI.Say("%s, until %s: no attempt is counted, another agent works", met, clock(w.until))
		r.log.Info().Str("agent", w.Name()).Str("problem", string(p.Kind)).Time("until", w.until).Msg("agent set aside")
		return nil
	}
	if why := r.tooLong(until); why != "" {
		text := fmt.Sprintf("%s until %s, %s", met, clock(until), why)
		r.emit(event{Event: eventPaused, Problem: string(p.Kind), Text: text})
		return r.pause(session.TriggerPaused, session.ExitAgentLimit, &Exit{ExitLimit, text + ": " + r.resumeHint()})
	}
	return r.wait(ctx, string(p.Kind), fmt.Sprintf("%s: waiting until %s, no attempt is counted", met, clock(until)), until)
}

// wait prints a text and waits until a moment, or until a person or a request ends the wait. An
// error ends the run.
func (r *runner) wait(ctx context.Context, problem, text string, until time.Time) error {
	if err := r.sync(ctx); err != nil {
		return err
	}
	if err := r.sess.Release(); err != nil { // free memory, because the wait may take hours
		return err
	}
	pressed, stop := r.cfg.UI.Key()
	defer stop()
	r.cfg.UI.Say("%s%s", text, r.wakeHint(pressed != nil))
	r.cfg.UI.Status(Status{Task: "waiting: " + problem, Since: time.Now(), Until: until, Progress: r.sess.State().Progress()})
	r.emit(event{Event: eventWaiting, Problem: problem, Text: text, Until: &until})
	r.log.Info().Str("problem", problem).Time("until", until).Msg("wait begins")
	begun, woken, pauses, lifted := wallClock(), false, false, false
	_, limited := r.allLimited()
	waitUntil(ctx, until, wallClock, pressed, func() bool {
		woken = r.sess.WakeRequested()
		pauses = r.sess.PauseRequested() // the loop pauses before its next start
		if limited != nil {
			_, still := r.allLimited()
			lifted = still == nil
		}
		return woken || pauses || lifted
	})
	now := wallClock()
	r.waited += max(min(now.Sub(begun), until.Sub(begun)), 0) // without the time that the machine slept beyond until
	r.log.Info().Dur("duration_ms", now.Sub(begun)).Bool("woken", woken).Msg("wait ends")
	if ctx.Err() != nil {
		return r.interrupted()
	}
	if now.Before(until) { // ended early: the agents no longer count as limited
		if !pauses && !lifted {
			r.cfg.Shared.lift(r.workers)
		}
		for _, w := range r.workers {
			w.until = time.Time{}
		}
	}
	return nil
}

// wakeHint returns a text on how to end a wait early.
func (r *runner) wakeHint(terminal bool) string {
	command := "lopen session resume " + r.sess.State().ID().String()
	switch {
	case terminal && r.cfg.ResumeHint == "":
		return "; to go on at once: Enter, or " + command
	case terminal:
		return "; to go on at once: Enter"
	case r.cfg.ResumeHint == "":
		return "; to go on at once: " + command
	}
	return ""
}

// waitUntil waits for a moment of the clock now, or until early returns true, a key is pressed,
// or ctx is done. It polls the clock, because a sleep of the machine stops timers.
func waitUntil(ctx context.Context, until time.Time, now func() time.Time, pressed <-chan struct{}, early func() bool) {
	tick := time.NewTicker(Waits.Poll)
	defer tick.Stop()
	for until.After(now()) {
		select {
		case <-tick.C:
			if early() {
				return
			}
		case <-pressed:
			return
		case <-ctx.Done():
			return
		}
	}
}

// clock returns a time as messages show it, with the date unless it is today.
func clock(at time.Time) string {
	at = at.Local()
	if y, m, d := time.Now().Date(); at.Year() != y || at.Month() != m || at.Day() != d {
		return at.Format("2006-01-02 15:04:05")
	}
	return at.Format("15:04:05")
}
