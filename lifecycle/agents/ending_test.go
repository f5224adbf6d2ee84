package agents_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/agents"
)

// An agent's transcript says how a turn ended that no hook told of.
func TestEndOfTurn(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 2, 14, 9, 0, 10, 0, time.UTC)
	line := func(second int, rest string) string {
		return fmt.Sprintf(`{"timestamp":"2026-02-14T09:00:%02d.5Z",%s}`+"\n", second, rest)
	}
	said := func(role, text, more string) string {
		return fmt.Sprintf(`"type":%q,"message":{"role":%q,"content":[{"type":"text","text":%q}]}%s`, role, role, text, more)
	}
	event := func(of string) string { return `"type":"event_msg","payload":{` + of + `}` }
	const esc = "[Request interrupted by user for tool use]"
	long := strings.Repeat(line(11, said("assistant", strings.Repeat("x", 1<<10), "")), 1200)
	for name, test := range map[string]struct {
		agent, text string
		want        *agents.Ending
	}{
		"at work":        {agents.Claude, line(11, said("user", "do it", "")) + line(12, said("assistant", "yes", "")), nil},
		"stopped":        {agents.Claude, line(11, said("assistant", "yes", "")) + line(12, said("user", esc, "")) + line(19, said("user", "next", "")), &agents.Ending{Stopped: true}},
		"before":         {agents.Claude, line(9, said("user", esc, "")) + line(12, said("assistant", "yes", "")), nil},
		"of a subagent":  {agents.Claude, line(12, said("user", esc, `,"isSidechain":true`)), nil},
		"a provider":     {agents.Claude, line(12, said("assistant", "API Error: 529", `,"isApiErrorMessage":true`)), &agents.Ending{Failure: "API Error: 529"}},
		"tried again":    {agents.Claude, line(11, said("assistant", "API Error: 529", `,"isApiErrorMessage":true`)) + line(12, said("assistant", "yes", "")), nil},
		"torn, long":     {agents.Claude, long + "{\"torn\n" + line(12, said("user", esc, "")) + `{"type":`, &agents.Ending{Stopped: true}},
		"in one line":    {agents.Claude, strings.TrimSpace(line(11, said("assistant", "yes", ""))) + line(12, said("user", esc, "")), &agents.Ending{Stopped: true}},
		"Codex, one":     {agents.Codex, strings.TrimSpace(line(11, event(`"type":"task_started"`))) + line(12, event(`"type":"task_complete"`)), &agents.Ending{}},
		"empty":          {agents.Claude, "", nil},
		"Codex at work":  {agents.Codex, line(9, event(`"type":"task_complete"`)) + line(11, event(`"type":"task_started"`)), nil},
		"Codex stopped":  {agents.Codex, line(12, event(`"type":"turn_aborted","reason":"interrupted"`)) + line(13, event(`"type":"task_started"`)), &agents.Ending{Stopped: true}},
		"Codex provider": {agents.Codex, line(12, event(`"type":"task_complete","last_agent_message":null,"error":{"message":"bad"}`)) + line(13, event(`"type":"task_complete"`)), &agents.Ending{Failure: "bad"}},
		"Codex ended":    {agents.Codex, line(12, event(`"type":"task_complete","last_agent_message":"done"`)), &agents.Ending{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := agents.EndOfTurn(test.agent, transcript(t, test.text), began)
			require.NoError(t, err)
			if test.want != nil {
				test.want.At = began.Add(2500 * time.Millisecond)
			}
			require.Equal(t, test.want, e)
		})
	}
	_, err := agents.EndOfTurn(agents.Claude, t.TempDir()+"/none.jsonl", began)
	require.Error(t, err)
}
