package loop

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// readyTimeout bounds the command that finds out whether an agent can work.
const readyTimeout = 10 * time.Second

// A worker is one of the run's agents.
type worker struct {
	*agent.Agent
	command []string  // the redacted command, for storing and showing
	until   time.Time // end of its limit, by the wall clock
	backoff backoff
}

// String returns the name of an agent for messages.
func (w *worker) String() string {
	if w.Name() == agent.None {
		return "the agent"
	}
	return w.Name()
}

// pick returns the first agent that is not limited, or the one whose limit ends first.
func (r *runner) pick() *worker {
	now, first := wallClock(), r.workers[0]
	for _, w := range r.workers {
		if !w.until.After(now) {
			first = w
			break
		}
		if w.until.Before(first.until) {
			first = w
		}
	}
	if last := r.worker; last != nil && last != first {
		r.cfg.UI.Say("%s works now", first)
	}
	r.worker = first
	return first
}

// setLimited sets until when an agent is limited. It returns until when no agent can work, or
// the zero time if another one can work now.
func (r *runner) setLimited(w *worker, p *agent.Problem) time.Time {
	now := wallClock()
	w.until = w.backoff.until(now, p)
	r.cfg.Shared.limit(w, limit{w.until, r.cfg.Module, p.Kind})
	first := w.until
	for _, other := range r.workers {
		if other == w {
			continue
		}
		if !other.until.After(now) {
			return time.Time{}
		}
		if other.until.Before(first) {
			first = other.until
		}
	}
	return first
}

// ready asks the agents once, before the first task, whether they can work. If the first one
// cannot, the run ends; another one is left out.
func (r *runner) ready(ctx context.Context) error {
	if r.asked {
		return nil
	}
	r.asked = true
	var able []*worker
	for i, w := range r.workers {
		if added := w.Added(); len(added) > 0 {
			r.cfg.UI.Say("%s is started with what it needs to be understood: %s", w, strings.Join(r.sess.RedactArgs(added), " "))
		}
		p := r.ask(ctx, w)
		switch {
		case ctx.Err() != nil:
			return r.interrupted()
		case p == nil:
			able = append(able, w)
		case i == 0:
			return r.needed(w, p)
		default:
			r.cfg.UI.Warn("%s cannot work and is left out: %s%s", w, plain.Line(p.Text), mending(p))
		}
	}
	r.workers = able
	return nil
}

// ask runs the command that finds out whether an agent can work. If the command does not end
// within readyTimeout, it decides nothing.
func (r *runner) ask(ctx context.Context, w *worker) *agent.Problem {
	argv := w.Ready()
	if len(argv) == 0 {
		return nil
	}
	r.status(fmt.Sprintf("asking whether %s can work", w), 0)
	res, err := child.Run(ctx, child.Command{Argv: argv, Dir: r.cfg.Tree, Env: r.cfg.Environ, Timeout: readyTimeout, Grace: time.Second})
	shown := strings.Join(r.sess.RedactArgs(argv), " ")
	switch {
	case err != nil:
		return &agent.Problem{Kind: agent.Login, Text: r.sess.Redact(err.Error()), Mend: w.Login()}
	case res.Cause != child.CauseNone:
		r.cfg.UI.Warn("%s did not say within %s whether it can work: %s", w, readyTimeout, shown)
		return nil
	case res.Exit == 0:
		return nil
	}
	text := fmt.Sprintf("%q: %s", shown, describe(res, Config{}))
	if printed := strings.TrimSpace(string(res.Tail)); printed != "" {
		text += ": " + r.quote(printed)
	}
	return &agent.Problem{Kind: agent.Login, Text: text, Mend: w.Login()}
}

// needed ends a run because a person has to do something.
func (r *runner) needed(w *worker, p *agent.Problem) error {
	text := fmt.Sprintf("%s needs you (%s): %s%s", w, p.Kind, plain.Line(p.Text), mending(p))
	r.log.Warn().Str("agent", w.Name()).Str("problem", string(p.Kind)).Str("text", plain.Line(p.Text)).Msg("a person is needed")
	r.emit(event{Event: eventNeeded, Problem: string(p.Kind), Text: text})
	return r.pause(session.TriggerPaused, session.ExitNeeded, &Exit{ExitUser, text + "; then " + r.resumeHint()})
}

func mending(p *agent.Problem) string {
	if p.Mend == "" {
		return ""
	}
	return "; to mend it: " + p.Mend
}

// quote returns a text of an agent, redacted and at most 1 KiB long.
func (r *runner) quote(text string) string { return plain.Clip(r.sess.Redact(text), 1<<10) }
