package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/plain"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// An agentSession is the agent's own session in which it worked at a task last.
type agentSession struct {
	Task    string   `json:"task"`
	Agent   string   `json:"agent"`
	Session string   `json:"session"`
	Open    []string `json:"open,omitempty"` // the command line that opens it, where one is known
}

// agentSessions finds the newest session of an agent for each task, in the records up to a
// number, the one that was used last at the end. Of a damaged log it reads what can be read; the log
// of a session whose agent has none is not read.
func (a *app) agentSessions(store *lifecycle.Store, st *session.State, upTo uint64) (all []agentSession) {
	if h := st.Header(); h.AgentSession == "" && (h.Settings.Agent == "" || h.Settings.Agent == agent.None) {
		return nil
	}
	recipes, _ := a.recipes() // a run reports what is malformed
	_ = store.Log(st.ID(), 0, func(r record.Record) error {
		for _, at := range r.Attempts {
			if at.AgentSession == "" || r.Seq > upTo {
				continue
			}
			all = slices.DeleteFunc(all, func(s agentSession) bool { return s.Task == at.Task })
			all = append(all, agentSession{at.Task, at.Agent, at.AgentSession, openSession(at, recipes)})
		}
		return nil
	})
	return all
}

// recipes are those of the user's config.
func (a *app) recipes() (map[string]agent.Profile, error) {
	v, err := a.settings(nil)
	if err != nil {
		return nil, err
	}
	recipes, err := agent.Recipes(v.Agents)
	if err != nil {
		return nil, usagef("agents: %w", err)
	}
	return recipes, nil
}

// openSession is the command line that opens the agent's session of an attempt, nil where
// none is known.
func openSession(at record.Attempt, recipes map[string]agent.Profile) []string {
	if at.Agent == "" || at.Agent == agent.None || at.AgentSession == "" {
		return nil
	}
	chosen, _, err := agent.Choose(at.Agent, nil, recipes, "")
	if err != nil {
		return nil
	}
	return chosen.Open(at.AgentSession)
}

func printAgentSessions(w io.Writer, all []agentSession) {
	if len(all) > 0 {
		fmt.Fprint(w, "\nsessions of the agent:\n")
	}
	for _, s := range all {
		fmt.Fprintf(w, "  %s: %s\n", plain.Line(s.Task), opened(s.Agent, s.Session, s.Open))
	}
}

// opened names an agent's session and the command that opens it.
func opened(name, session string, open []string) string {
	line := plain.Line(name + " " + session)
	if open != nil {
		line += ", opened by: " + quoted(open)
	}
	return line
}

// withMember puts a member before those of a JSON object, unless its value is empty.
func withMember(object strictjson.Value, name string, value any) strictjson.Value {
	data, err := strictjson.MarshalShown(value)
	if err != nil || slices.Contains([]string{"null", "[]", `""`}, string(data)) {
		return object
	}
	return fmt.Appendf(nil, `{"%s":%s,%s`, name, data, object[1:])
}
