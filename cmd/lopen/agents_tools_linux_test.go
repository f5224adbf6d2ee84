package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/agent/mock"
)

// TestRealTools has the real agents, whose APIs are mocks, call the tools of lopen mcp: make agents.
// No agent may do anything else, and nobody is asked.
func TestRealTools(t *testing.T) {
	if *realAgents == "" {
		t.Skip("needs the real agents: make agents, or -agents DIR")
	}
	for _, agent := range []realAgent{claudeAgent, codexAgent} {
		t.Run(agent.name, func(t *testing.T) {
			t.Parallel()
			toolsAreCalled(t, agent)
		})
	}
	t.Run("skill", func(t *testing.T) {
		t.Parallel()
		skillIsSeen(t)
	})
}

// skillIsSeen: with the plugin, the model is told of the skill.
func skillIsSeen(t *testing.T) {
	said := ""
	p := newKept(t, claudeAgent, func(_ *realRun, q mock.Request) *mock.Answer {
		said += q.Said
		return &mock.Answer{Text: "All done."}
	})
	code, _ := p.ask("hello")
	require.Zero(t, code)
	require.Contains(t, said, "lopen: Look up what coding agents did in this project before")
}

// toolsAreCalled: the model calls each tool, and sees what it returned.
func toolsAreCalled(t *testing.T, agent realAgent) {
	calls := []mock.Tool{
		{Name: "last_failure", Input: map[string]any{}},
		{Name: "changes_since", Input: map[string]any{"checkpoint": "1", "diff": true}},
		{Name: "session_log", Input: map[string]any{"task": "one", "limit": 1}},
		{Name: "search", Input: map[string]any{"query": "elephant"}},
		{Name: "session_log", Input: map[string]any{}},
		{Name: "last_failure", Input: map[string]any{"task": 7}},
	}
	said := ""
	r := newRealProject(t, agent, func(_ *realRun, q mock.Request) *mock.Answer {
		if q.Results == len(calls) {
			said = q.Said
			return &mock.Answer{Text: "I know enough."}
		}
		call := calls[q.Results]
		if agent.name == "codex" {
			call.Server = "mcp__lopen"
		} else {
			call.Name = "mcp__lopen__" + call.Name
		}
		return &mock.Answer{Text: "I ask.", Tool: &call}
	})
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "TODO.md"), []byte("- [ ] one\n"), 0o600))
	code, out := r.lopen("plan", "create", "m", "--from", "TODO.md")
	require.Zero(t, code, out)
	code, out = r.lopen("run", "m", "--unattended", "--keep-failed", "--check", "echo the elephant is missing; exit 3", "--", "sh", "-c", "echo tried >trace")
	require.Equal(t, 2, code, out)

	code, out = r.lopen("session", "log", "--jq", "[.[] | select(.attempts)][0].seq")
	require.Zero(t, code, out)
	seq, err := strconv.Atoi(strings.TrimSpace(out))
	require.NoError(t, err)
	calls[4].Input["seq"] = seq // as a hit of search names it

	self, err := os.Executable()
	require.NoError(t, err)
	variable, value, _ := strings.Cut(asCommand, "=")
	args := []string{"claude", "-p", "What went wrong?", "--strict-mcp-config", "--allowedTools", "mcp__lopen", "--mcp-config",
		fmt.Sprintf(`{"mcpServers":{"lopen":{"command":%q,"args":["mcp"],"env":{%q:%q}}}}`, self, variable, value)}
	if agent.name == "codex" {
		args = []string{"codex", "exec", "-s", "read-only", "-c", fmt.Sprintf("mcp_servers.lopen.command=%q", self), "-c", `mcp_servers.lopen.args=["mcp"]`,
			"-c", fmt.Sprintf("mcp_servers.lopen.env={%s=%q}", variable, value), "-c", "mcp_servers.lopen.required=true", "What went wrong?"}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(*realAgents, "node_modules", ".bin", args[0]), args[1:]...)
	cmd.Dir, cmd.Env = r.dir, r.env
	text, err := cmd.CombinedOutput()
	t.Logf("%s", text)
	require.NoError(t, err)
	require.Contains(t, string(text), "I know enough.")
	for _, seen := range []string{"the elephant is missing", "+tried", "lopen session", "trace", "validating"} {
		require.Contains(t, said, seen)
	}
	code, out = r.lopen("session", "list", "--jq", "length")
	require.Zero(t, code, out)
	require.Equal(t, "1", strings.TrimSpace(out))
}
