package loop

import (
	_ "embed"
	"regexp"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A trail is what another start may continue: the agent's session of the last one.
type trail struct {
	unit, agent, session string
	then                 string      // what followed
	touched              bool        // somebody else may have changed the files since
	used                 agent.Usage // tokens, by all starts in the session
}

// follows returns the session of the agent that the n-th attempt at a unit continues, ""
// when it begins a new one. What nobody is to blame for goes on where it was; a failed
// attempt is mended in its own session once, and then begun afresh.
func (t *trail) follows(w *worker, unit string, n int) string {
	if t.unit != unit || t.agent != w.Name() || t.touched || !w.Resumes() || !plausibleID.MatchString(t.session) {
		return ""
	}
	switch t.then {
	case session.Waits, session.Interrupted, session.Killed, session.Uncounted:
		return t.session
	case session.Failed:
		if n%2 == 0 {
			return t.session
		}
	}
	return ""
}

// halfway is the unit that the last start left in the middle through nobody's fault, ""
// for none. It runs before any other: what is half made is in the way of their checks, would
// be taken for their work, and is best known to the agent's session that made it.
func (t *trail) halfway() string {
	switch t.then {
	case session.Waits, session.Interrupted, session.Killed:
		return t.unit
	}
	return ""
}

// plausibleID is what an agent's name for its session may be: it becomes an argument.
var plausibleID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$`)

// leave notes what the start that has ended leaves to continue: nothing where no word of
// the model is in its session, or the agent does not know it any more.
func (r *Runner) leave(out *outcome) {
	used, now := r.trail.used, out.report.Usage
	used.Input, used.Output, used.Cached = used.Input+now.Input, used.Output+now.Output, used.Cached+now.Cached
	r.trail = trail{unit: r.at.unit, agent: r.at.worker.Name(), session: r.at.session, then: out.then, used: used}
	if out.lost() || out.knows && !out.report.Spoke && !out.resumed {
		r.trail.session = ""
	}
}

// lost says that a start could not continue the agent's session.
func (out *outcome) lost() bool {
	return out.then == session.Uncounted && out.resumed && (out.report.Gone || out.empty())
}

// pickUp is the trail that the runs before this one have left.
func pickUp(past *lifecycle.Past) (t trail) {
	if a := past.Last; a != nil {
		t = trail{unit: a.Task, agent: a.Agent, session: a.AgentSession, then: a.Then}
		t.used.Input, t.used.Output, t.used.Cached = past.Used.InputTokens, past.Used.OutputTokens, past.Used.CachedTokens
	}
	return t
}

// proceed writes the prompt of an attempt that continues the agent's session.
func (r *Runner) proceed(unit string) ([]byte, error) {
	t, _ := r.sess.State().Task(unit)
	p := prompt.Continued{Task: t.Name, TaskID: unit, Judge: r.cfg.Check}
	switch r.trail.then {
	case session.Failed:
		if all := r.last[unit]; len(all) > 0 {
			p.Failure, p.Check = all[0].Failure, all[0].Check
		}
	case session.Waits:
		p.Cut = "were stopped by a limit, an overload or the network, which is over"
	case session.Killed:
		p.Cut = "were killed in the middle of it"
	default:
		p.Cut = "were interrupted in the middle of it"
	}
	return p.Write()
}
