package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

func newSessionResume(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "resume [ID]",
		Short: "Go on with a session, or end the wait of a run: lopen run, with what the session remembers",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := a.open()
			if err != nil {
				return err
			}
			id, err := resolveArg(store, args)
			woken := false
			if err == nil {
				err = a.refuseAgents(store, id)
			}
			if err == nil && !a.byAgent() {
				woken, err = store.RequestWake(cmd.Context(), id)
			}
			if err = errors.Join(err, closeStore(store)); err != nil {
				return err
			}
			if woken {
				fmt.Fprintf(a.stderr, "session %s waits no longer: its run goes on\n", id)
				return nil
			}
			r := runCall{app: a, runFlags: runFlags{resume: id.String()}, module: id.Module}
			return r.run(cmd.Context())
		},
	}
}

// refuseAgents refuses what only a run does about an agent's own session, and says what opens that.
func (a *app) refuseAgents(store *lifecycle.Store, id session.ID) error {
	st, _, err := store.Read(id)
	if err != nil || st.Header().Origin == session.OriginRun {
		return nil //nolint:nilerr // the caller says what is wrong with the session
	}
	h := st.Header()
	recipes, _ := a.recipes() // a run reports what is malformed
	return usagef("session %s is an agent's own: %s", id, opened(h.AgentName, h.AgentSession, openSession(record.Attempt{Agent: h.AgentName, AgentSession: h.AgentSession}, recipes)))
}
