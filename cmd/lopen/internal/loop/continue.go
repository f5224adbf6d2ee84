package loop

import (
	_ "embed"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/plain"
)

// A lastStart is the last start of the command, whose session of the agent another start may
// continue.
type lastStart struct {
	unit, agent, session string
	then                 string      // what followed, such as record.Failed
	touched              bool        // somebody else may have changed the files since
	used                 agent.Usage // tokens of all starts in the session
}

// sessionFor returns the session of the agent that the n-th attempt at a unit continues, or ""
// for a new one. A start that did not count is continued. A failed attempt is continued once;
// the attempt after that begins a new session.
func (t *lastStart) sessionFor(w *worker, unit string, n int) string {
	if t.unit != unit || t.agent != w.Name() || t.touched || !w.Resumes() || !plausibleID().MatchString(t.session) {
		return ""
	}
	switch t.then {
	case record.Waits, record.Interrupted, record.Killed, record.Uncounted:
		return t.session
	case record.Failed:
		if n%2 == 0 {
			return t.session
		}
	}
	return ""
}

// unfinished returns the unit whose last start was stopped and did not count, or "". It runs
// before any other unit: its incomplete changes may break the checks of others and would be
// attributed to them, and the agent's session that made the changes knows them best.
func (t *lastStart) unfinished() string {
	switch t.then {
	case record.Waits, record.Interrupted, record.Killed:
		return t.unit
	}
	return ""
}

// plausibleID matches the ID of an agent's session that may be used as an argument.
var plausibleID = plain.Pattern(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$`)

// noteStart sets lastStart after a start has ended. The session cannot be continued if the model
// has said nothing in it, or if the agent does not know it any more.
func (r *runner) noteStart(out *outcome) {
	used, now := r.lastStart.used, out.report.Usage
	used.Input, used.Output, used.Cached = used.Input+now.Input, used.Output+now.Output, used.Cached+now.Cached
	used.CostUSD += now.CostUSD
	r.lastStart = lastStart{unit: r.at.unit, agent: r.at.worker.Name(), session: r.at.session, then: out.then, used: used}
	if out.then == record.Uncounted && out.lost() || out.knows && !out.report.Spoke && !out.resumed {
		r.lastStart.session = ""
	}
}

// lastStartOf returns the last start of earlier runs.
func lastStartOf(past *lifecycle.Past) (t lastStart) {
	if a := past.Last; a != nil {
		t = lastStart{unit: a.Task, agent: a.Agent, session: a.AgentSession, then: a.Then}
		t.used.Input, t.used.Output, t.used.Cached = past.Used.InputTokens, past.Used.OutputTokens, past.Used.CachedTokens
		t.used.CostUSD = past.Used.CostUSD
	}
	return t
}

// composeContinued returns the prompt of an attempt that continues the agent's session.
func (r *runner) composeContinued(unit string) ([]byte, error) {
	t, _ := r.sess.State().Task(unit)
	p := prompt.Continued{Task: t.Name, TaskID: unit, Judge: r.cfg.Check}
	switch r.lastStart.then {
	case record.Failed:
		if all := r.failures[unit]; len(all) > 0 {
			p.Failure, p.Check = all[0].Failure, all[0].Check
		}
	case record.Waits:
		p.Cut = "were stopped by a limit, an overload or the network, which is over"
	case record.Killed:
		p.Cut = "were killed in the middle of it"
	default:
		p.Cut = "were interrupted in the middle of it"
	}
	return p.Write()
}
