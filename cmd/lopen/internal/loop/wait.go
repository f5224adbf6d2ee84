package loop

import (
	"context"
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/plain"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// Waits are the waits of a run that no agent names a time for. Tests shorten them before
// the first run; nothing else sets them.
var Waits = struct {
	Limit    time.Duration // the first one for a limit
	Overload time.Duration // the first one for an overload, a network, and a probe
	Longest  time.Duration // until which they double
	Poll     time.Duration // how often a run that waits looks at the clock and for requests
	Orphan   time.Duration // how long a command that outlived its loop may take to end by itself before it is ended
	Storage  time.Duration // how often a run that is paused on a full disk or a denied write looks whether it can continue
}{time.Minute, 15 * time.Second, 30 * time.Minute, time.Second, 5 * time.Second, time.Second}

// wallClock is the time without the monotonic reading: it counts the hours that the machine
// sleeps.
func wallClock() time.Time { return time.Now().Round(0) }

// A backoff is the next wait where no time is named, since the last start that got through.
type backoff struct{ next time.Duration }

// until is the end of the wait for a problem. A time that the agent names counts, unless it
// is nearer than the next wait: the last one that it named did not help.
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

// tooLong says why a wait is not begun, "" when it is.
func (r *runner) tooLong(until time.Time) string {
	if d := until.Sub(wallClock()); r.cfg.Wait > 0 && d > r.cfg.Wait-r.waited { // up to 292 years: nothing may be added to it
		return fmt.Sprintf("longer than --wait %s allows", r.cfg.Wait)
	}
	if end := r.cfg.Budget.Until; !end.IsZero() && !until.Before(end) {
		return fmt.Sprintf("not before --until %s", end.Local().Format("15:04"))
	}
	return ""
}

// describe says in a few words what an agent met.
func (w *worker) describe(p *agent.Problem) string {
	switch p.Kind {
	case agent.Overload:
		return fmt.Sprintf("the provider of %s is overloaded", w)
	case agent.Network:
		return fmt.Sprintf("%s does not reach its provider", w)
	}
	return fmt.Sprintf("%s is at its limit", w)
}

// waitForAgent takes the consequences of a start that met something that a wait mends: another
// agent works, or the run waits until the first one can, or it ends with exit code 75 when
// that is too far away. until is what setLimited returned.
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
		return r.pause(session.TriggerPaused, session.ExitAgentLimit, &Exit{exitLimit, text + ": " + r.resumeHint()})
	}
	return r.wait(ctx, string(p.Kind), fmt.Sprintf("%s: waiting until %s, no attempt is counted", met, clock(until)), until)
}

// wait says a text and waits until a moment, or until a person or a request ends it. The
// error is what ends the run.
func (r *runner) wait(ctx context.Context, problem, text string, until time.Time) error {
	if err := r.sync(ctx); err != nil {
		return err
	}
	if err := r.sess.Release(); err != nil { // it may be hours
		return err
	}
	pressed, stop := r.cfg.UI.Key()
	defer stop()
	r.cfg.UI.Say("%s%s", text, r.wakeHint(pressed != nil))
	r.cfg.UI.Status(Status{Task: "waiting: " + problem, Since: time.Now(), Until: until, Progress: r.sess.State().Progress()})
	r.emit(event{Event: eventWaiting, Problem: problem, Text: text, Until: &until})
	r.log.Info().Str("problem", problem).Time("until", until).Msg("wait begins")
	begun, woken := wallClock(), false
	waitUntil(ctx, until, wallClock, pressed, func() bool {
		woken = r.sess.WakeRequested()
		return woken || r.sess.PauseRequested() // the loop pauses before its next start
	})
	now := wallClock()
	r.waited += max(min(now.Sub(begun), until.Sub(begun)), 0) // not the hours that the machine slept
	r.log.Info().Dur("duration_ms", now.Sub(begun)).Bool("woken", woken).Msg("wait ends")
	if ctx.Err() != nil {
		return r.interrupted()
	}
	if now.Before(until) { // a person says that there is no limit
		for _, w := range r.workers {
			w.until = time.Time{}
		}
	}
	return nil
}

// wakeHint says how a wait ends early.
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

// waitUntil waits for a moment of a clock that a sleep of the machine does not stop, as it
// does timers, or until early says so, somebody pressed a key, or ctx is done.
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

// clock is a moment as messages show it: with its day when that is not today.
func clock(at time.Time) string {
	at = at.Local()
	if y, m, d := time.Now().Date(); at.Year() != y || at.Month() != m || at.Day() != d {
		return at.Format("2006-01-02 15:04:05")
	}
	return at.Format("15:04:05")
}
