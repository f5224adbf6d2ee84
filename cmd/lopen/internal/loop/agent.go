package loop

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/lifecycle/output"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// maxDenied bounds the refused permissions that are recorded of an attempt.
const maxDenied = 20

// work runs the agent and reads what it prints. resumed is the usage of the session that it
// continues. work ends the agent when it prints nothing for too long, and at the first event
// after which it only retries what cannot succeed.
func (r *runner) work(ctx context.Context, w *worker, c child.Command, resumed agent.Usage, deadline time.Time) (s start, err error) {
	stop, active := make(chan struct{}), make(chan struct{}, 1)
	c.Stop = stop
	if w.Knows() {
		c.Activity = active
	}
	var reader *agent.Reader
	var hopeless *agent.Problem
	stdout, stderr := r.cfg.UI.Output()
	shown, errs := &child.Tail{}, &child.Tail{}
	reader = w.Read(&tee{shown, r.rendered(stdout)}, func() {
		select {
		case active <- struct{}{}:
		default:
		}
		if r.at.session == "" {
			r.noteSession(reader.Report().Session)
		}
	}, func(p agent.Problem) {
		hopeless = &p
		close(stop)
	})
	reader.Before(resumed)
	c.Stdout = r.stored(reader, output.Raw, w.Partial())
	c.Stderr = r.stored(&tee{errs, &tee{shown, r.rendered(stderr)}}, output.Raw, "")
	s = start{knows: w.Knows()}
	s.result, err = r.supervise(ctx, c, deadline, func(res child.Result) bool {
		_ = reader.Close() // its writers return no errors
		reader.Stderr(errs.Lines())
		report := reader.Report()
		return res.Cause == child.CauseNone && res.Exit == 0 && (!w.Knows() || report.Final && report.Success)
	})
	if err != nil {
		return s, err
	}
	s.ended = describe(s.result, r.cfg)
	if !w.Knows() {
		return s, nil
	}
	s.result.Tail = shown.Lines()
	s.report = reader.Report()
	if s.report.Problem == nil {
		s.report.Problem = hopeless
	}
	s.report.Error = r.quote(s.report.Error)
	if p := s.report.Problem; p != nil {
		known := *p
		known.Text = r.quote(p.Text)
		if known.Kind == agent.Login {
			known.Mend = cmp.Or(known.Mend, w.Login())
		}
		s.report.Problem = &known
	}
	r.warnDenied(w, &s)
	return s, nil
}

// noteSession saves the ID of the agent's session as soon as the agent prints it. The goroutine
// that copies the agent's output calls it, while the runner's goroutine waits.
func (r *runner) noteSession(id string) {
	if !plausibleID().MatchString(id) {
		return
	}
	r.at.session = id
	_ = r.change(session.TriggerStepCompleted, func(e *session.Edit) error {
		e.Header().AgentSession = r.sess.Redact(id)
		return nil
	}) // the next change returns an error of the storage again
}

// account replaces the numbers in m by those of the agent's events, field by field, where the
// events have them.
func (r *runner) account(w *worker, m *metrics, out *outcome) {
	u := out.report.Usage
	events := metrics{InputTokens: u.Input, OutputTokens: u.Output, CachedTokens: u.Cached, ContextWindow: u.ContextWindow, ContextUsed: u.ContextUsed,
		CostUSD: u.CostUSD, Model: plain.Clip(u.Model, 1<<10), Turns: u.Turns}
	if !events.plausible(time.Now()) {
		r.cfg.UI.Warn("what %s says it used is ignored: a number below 0 or beyond 10^12", w)
		events = metrics{}
		u.CostKnown = false
	}
	if u.CostKnown {
		m.CostUSD = events.CostUSD
	}
	out.noCost = !u.CostKnown && m.CostUSD == 0
	out.report.CostUSD = m.CostUSD
	m.InputTokens, m.OutputTokens = cmp.Or(events.InputTokens, m.InputTokens), cmp.Or(events.OutputTokens, m.OutputTokens)
	m.CachedTokens, m.ContextWindow = cmp.Or(events.CachedTokens, m.CachedTokens), cmp.Or(events.ContextWindow, m.ContextWindow)
	m.ContextUsed = cmp.Or(events.ContextUsed, m.ContextUsed)
	m.Model, m.Turns = r.sess.Redact(cmp.Or(events.Model, m.Model)), cmp.Or(events.Turns, m.Turns)
	for _, id := range []string{m.AgentSession, out.report.Session} {
		if plausibleID().MatchString(id) {
			r.at.session = id
		}
	}
	m.AgentSession = r.sess.Redact(r.at.session)
	if p := out.report.Problem; m.RateLimit == nil && p != nil && p.Kind == agent.Limit && !p.ResetAt.IsZero() {
		m.RateLimit = &rateLimit{ResetsAt: p.ResetAt}
	}
	r.warnUnknownCost(w, !out.noCost)
}

// warnDenied warns of each refused permission once a run, with the flag that grants it.
func (r *runner) warnDenied(w *worker, s *start) {
	for i, d := range s.report.Denied {
		if i >= maxDenied {
			r.cfg.UI.Warn("%s was refused %d more permissions", w, len(s.report.Denied)-i)
			s.report.Denied = s.report.Denied[:i]
			return
		}
		what := d
		what.Tool, what.Detail, what.Grant = r.sess.Redact(d.Tool), r.sess.Redact(d.Detail), r.sess.Redact(d.Grant)
		text := plain.Line(refused(what))
		r.warnOnce("denied "+text, fmt.Sprintf("%s was refused a permission: %s", w, text))
	}
}

// refused returns a text with a refused permission and the flag that grants it.
func refused(d agent.Denied) string {
	text := d.Tool
	if d.Detail != "" {
		text = fmt.Sprintf("%s(%s)", text, d.Detail)
	}
	if d.Grant != "" {
		text += "; to grant it: " + d.Grant
	}
	return text
}

// denied returns the refused permissions in the form that the journal has.
func (s *start) denied() (all []string) {
	for _, d := range s.report.Denied[:min(len(s.report.Denied), maxDenied)] {
		all = append(all, strings.ToValidUTF8(refused(d), "\ufffd"))
	}
	return all
}

// A tee writes to out and shown. It ignores errors of shown, such as those of a closed terminal,
// so that the agent's events are still read.
type tee struct{ out, shown io.Writer }

func (o *tee) Write(p []byte) (int, error) {
	if o.shown != nil {
		if _, err := o.shown.Write(p); err != nil {
			o.shown = nil
		}
	}
	return o.out.Write(p)
}
