package loop

import (
	_ "embed"
	"regexp"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// A lastStart is what another start may continue: the agent's session of the last one.
type lastStart struct {
	unit, agent, session string
	then                 string      // what reconciled
	touched              bool        // somebody else may have changed the files since
	used                 agent.Usage // tokens, by all starts in the session
}

// sessionFor returns the session of the agent that the n-th attempt at a unit continues, ""
// when it begins a new one. An attempt that nobody is to blame for continues; a failed one
// is mended in its own session once, and the next one begins a new session.
func (t *lastStart) sessionFor(w *worker, unit string, n int) string {
	if t.unit != unit || t.agent != w.Name() || t.touched || !w.Resumes() || !plausibleID.MatchString(t.session) {
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

// unfinished is the unit that the last start left in the middle through nobody's fault, ""
// for none. It runs before any other: its half-made changes may break their checks and would be taken for
// theirs, and the agent's session that made them knows them best.
func (t *lastStart) unfinished() string {
	switch t.then {
	case record.Waits, record.Interrupted, record.Killed:
		return t.unit
	}
	return ""
}

// plausibleID is what an agent's name for its session may be: it becomes an argument.
var plausibleID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$`)

// noteStart notes what the start that has ended leaves to continue: nothing where no word of
// the model is in its session, or the agent does not know it any more.
func (r *runner) noteStart(out *outcome) {
	used, now := r.lastStart.used, out.report.Usage
	used.Input, used.Output, used.Cached = used.Input+now.Input, used.Output+now.Output, used.Cached+now.Cached
	r.lastStart = lastStart{unit: r.at.unit, agent: r.at.worker.Name(), session: r.at.session, then: out.then, used: used}
	if out.then == record.Uncounted && out.lost() || out.knows && !out.report.Spoke && !out.resumed {
		r.lastStart.session = ""
	}
}

// lastStartOf is what the runs before this one have left.
func lastStartOf(past *lifecycle.Past) (t lastStart) {
	if a := past.Last; a != nil {
		t = lastStart{unit: a.Task, agent: a.Agent, session: a.AgentSession, then: a.Then}
		t.used.Input, t.used.Output, t.used.Cached = past.Used.InputTokens, past.Used.OutputTokens, past.Used.CachedTokens
	}
	return t
}

// composeContinued writes the prompt of an attempt that continues the agent's session.
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
