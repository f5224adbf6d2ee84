package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var used = Usage{Input: 150, Output: 30, Cached: 2100}

func TestSuccess(t *testing.T) {
	t.Parallel()
	a := sample(t, "claude", "success")
	require.Equal(t, lines("I write the file.", "Write: /project/hello.txt", "The file is written."), a.shown)
	u := used
	u.CostUSD, u.CostKnown, u.Model, u.Turns, u.ContextWindow, u.ContextUsed = 0.00255, true, "claude-opus-4-8[1m]", 2, 1000000, 1150
	require.Equal(t, Report{Usage: u, Session: anID, Spoke: true, Final: true, Success: true}, a.Report)
	partial := sample(t, "claude", "success_partial") // no text is doubled
	require.Equal(t, a.shown, partial.shown)
	require.Equal(t, a.Report, partial.Report)
	require.Greater(t, partial.events, a.events)
	slow := sample(t, "claude", "endless_partial") // text comes as it is said
	require.True(t, strings.HasPrefix(slow.shown, "still thinking still thinking "), slow.shown)

	a = sample(t, "codex", "success")
	require.Equal(t, lines("notice: Model metadata for `gpt-5-codex` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.",
		"I write the file.", `command: /bin/bash -lc "printf 'hello' > hello.txt"`, "The file is written."), a.shown)
	u = used
	u.Turns = 1
	require.Equal(t, Report{Usage: u, Session: a.Session, Spoke: true, Final: true, Success: true}, a.Report)
	require.Len(t, a.Session, 36)

	a = sample(t, "opencode", "success")
	require.Equal(t, lines("I write the file.", "write: /project/hello.txt", "The file is written."), a.shown)
	u = used
	u.CostKnown, u.Turns, u.CostUSD, u.ContextUsed = true, 2, a.CostUSD, a.ContextUsed
	require.NotZero(t, u.ContextUsed)
	require.Equal(t, Report{Usage: u, Session: a.Session, Spoke: true, Final: true, Success: true}, a.Report)
	require.InDelta(t, 0.00153, a.CostUSD, 1e-9)
	require.True(t, strings.HasPrefix(a.Session, "ses_"))
}

// Each sample in which an agent could not work, and what keeps it from that.
func TestProblems(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		kind     Kind
		mend     string
		hopeless bool
	}{
		"claude/limit":        {Limit, "", true},
		"claude/limit_reset":  {Limit, "", false},
		"claude/limit_oauth":  {Limit, "", false},
		"claude/overload":     {Overload, "", false},
		"claude/server_error": {Overload, "", true},
		"claude/down":         {Network, "", true},
		"claude/login":        {Login, "export ANTHROPIC_API_KEY=KEY", true},
		"claude/login_oauth":  {Login, "claude auth login", true},
		"claude/no_login":     {Login, "claude auth login", false},
		"claude/credit":       {Login, "", false},
		"claude/model":        {Model, "claude --model NAME", false},
		"codex/limit":         {Limit, "", false},
		"codex/limit_days":    {Limit, "", false},
		"codex/limit_noreset": {Limit, "", false},
		"codex/limit_rate":    {Limit, "", true},
		"codex/overload":      {Overload, "", false},
		"codex/server_error":  {Overload, "", false},
		"codex/down":          {Network, "", true},
		"codex/cut":           {Network, "", false},
		"codex/login":         {Login, "codex login", true},
		"codex/no_key":        {Login, "", false},
		"codex/quota":         {Login, "", false},
		"codex/model":         {Model, "codex --model NAME", false},
		"codex/model400":      {Model, "codex --model NAME", false},
		"codex/no_git":        {NoGit, mends[NoGit], false},
		"opencode/login":      {Login, "opencode auth login", false},
		"opencode/no_login":   {Login, "opencode auth login", false},
		"opencode/model":      {Model, "opencode run --model PROVIDER/MODEL", false},
	} {
		agent, file, _ := strings.Cut(name, "/")
		a := sample(t, agent, file)
		require.False(t, a.Success, name)
		require.False(t, a.Spoke, name)
		require.NotEmpty(t, a.Error, name)
		require.NotNil(t, a.Problem, name)
		require.Equal(t, want.kind, a.Problem.Kind, name)
		require.Equal(t, want.mend, a.Problem.Mend, name)
		require.NotEmpty(t, a.Problem.Text, name)
		require.Equal(t, want.hopeless, len(a.hopeless) == 1, name)
	}
	reset := sample(t, "claude", "limit_oauth").Problem.ResetAt
	require.True(t, reset.After(noon.Add(time.Hour)) && reset.Before(noon.Add(3*time.Hour)), reset)
	require.Zero(t, sample(t, "codex", "limit_noreset").Problem.ResetAt)
	require.Equal(t, 25, sample(t, "codex", "limit_days").Problem.ResetAt.Day())
	require.Contains(t, sample(t, "codex", "no_git").Problem.Mend, "--skip-git-repo-check")
}

// An attempt that ended badly by its own fault has no problem.
func TestFailuresAreNoProblems(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"claude/budget":                  "Reached maximum budget ($0.000001)",
		"claude/same_session_id_resumed": "Session ID 11111111-2222-4333-8444-555555555555 is already in use.",
		"claude/killed":                  "",
		"claude/endless":                 "",
		"codex/killed":                   "",
		"codex/killed_resumed_flags":     "unexpected argument '--sandbox' found",
		"opencode/limit":                 "", // it prints nothing
		"opencode/denied":                "it ended after a refused permission: bash go test ./...",
	} {
		agent, file, _ := strings.Cut(name, "/")
		a := sample(t, agent, file)
		require.False(t, a.Success, name)
		require.Equal(t, want, a.Error, name)
		require.Nil(t, a.Problem, name)
		require.False(t, a.Gone, name)
	}
	for _, name := range []string{"claude/resume_unknown", "codex/killed_resumed_unknown", "opencode/resume_unknown"} {
		agent, file, _ := strings.Cut(name, "/")
		a := sample(t, agent, file)
		require.True(t, a.Gone, name)
		require.Nil(t, a.Problem, name)
		require.NotContains(t, a.Error, "\x1b")
	}
}

func TestDenied(t *testing.T) {
	t.Parallel()
	a := sample(t, "claude", "denied")
	require.True(t, a.Success)
	require.Equal(t, []Denied{{"Bash", "go test ./...", "--allowedTools 'Bash(go test ./...)'"}}, a.Denied)
	require.Empty(t, sample(t, "claude", "granted").Denied)
	require.Equal(t, []Denied{{"bash", "go test ./...", ""}}, sample(t, "opencode", "denied").Denied)
	for tool, want := range map[string]string{
		"Edit": "--permission-mode acceptEdits", "WebFetch": "--allowedTools WebFetch", "mcp__x-y__z": "--allowedTools mcp__x-y__z",
		"ExitPlanMode": "", "a; rm": "", "$(x)": "", "": "", "Bash": "",
	} {
		require.Equal(t, want, claudeFlag(tool, "a && b"), tool)
	}
}

// Codex counts from its session's beginning: what an earlier start has used is not used again.
func TestUsageOfAResumedSession(t *testing.T) {
	t.Parallel()
	agent, _, err := Choose("codex", nil, nil, "")
	require.NoError(t, err)
	before := sample(t, "codex", "killed_resumed").Usage
	stdout, _ := read(t, "codex", "killed_resumed_flags_before")
	r := agent.Read(&strings.Builder{}, nil, nil)
	_, err = r.Write(stdout)
	require.NoError(t, err)
	r.Before(before)
	u := used
	u.Turns = 1
	require.Equal(t, u, r.Report().Usage)
	require.Equal(t, u, r.Report().Usage) // asked for twice
	two := run(t, "codex", append(stdout, stdout...), nil, 100)
	require.Equal(t, int64(80), two.Output) // two turns of one start

	require.Equal(t, used.Input, sample(t, "claude", "killed_resumed").Input)
	twice, _ := read(t, "claude", "success") // two results: the last one counts
	require.Equal(t, used.Output, run(t, "claude", append(twice, twice...), nil, 100).Output)
	require.Equal(t, 2, run(t, "claude", append(twice, twice...), nil, 100).Turns)
}

// Claude Code counts what a session has used before in newer versions, and not in older ones; with subagents
// a result is more than what its process used.
func TestUsageOfAResumedSessionOfClaude(t *testing.T) {
	t.Parallel()
	claude, _, err := Choose("claude", nil, nil, "")
	require.NoError(t, err)
	before := Usage{Input: 10, Output: 5, Cached: 20, CostUSD: 0.25}
	for name, test := range map[string]struct{ in, out, cached, cost, wantIn, wantOut, wantCached, wantCost float64 }{
		"older":                 {150, 30, 2100, 0.5, 150, 30, 2100, 0.5},
		"newer":                 {160, 35, 2120, 0.75, 150, 30, 2100, 0.5},
		"newer, with subagents": {260, 45, 2120, 1, 250, 40, 2100, 0.75},
		"older, with subagents": {170, 34, 2200, 0.75, 170, 34, 2200, 0.75}, // fewer than before in one
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := claude.Read(&strings.Builder{}, nil, nil)
			_, err := fmt.Fprintf(r, `{"type":"result","subtype":"success","is_error":false,"result":"x","num_turns":1,"total_cost_usd":%v,`+
				`"usage":{"input_tokens":150,"cache_read_input_tokens":2100,"output_tokens":30},`+
				`"modelUsage":{"m":{"inputTokens":%v,"outputTokens":%v,"cacheReadInputTokens":%v}}}`+"\n", test.cost, test.in, test.out, test.cached)
			require.NoError(t, err)
			r.Before(before)
			for range 2 {
				u := r.Report().Usage
				require.Equal(t, []float64{test.wantIn, test.wantOut, test.wantCached, test.wantCost}, []float64{float64(u.Input), float64(u.Output), float64(u.Cached), u.CostUSD})
			}
		})
	}
}

const (
	initClaude = `{"type":"system","subtype":"init","session_id":"` + anID + `","model":"m","apiKeySource":"none"}`
	speaks     = `{"type":"assistant","message":{"model":"m","content":[{"type":"thinking","thinking":"hidden"},{"type":"text","text":"%"}]}}`
	wellDone   = `{"type":"result","subtype":"success","is_error":false,"result":"x","num_turns":1,"total_cost_usd":0.5,"usage":{"input_tokens":1,"cache_creation_input_tokens":2,"cache_read_input_tokens":3,"output_tokens":4}}`
	badlyDone  = `{"type":"result","subtype":"success","is_error":true,"result":"it broke"}`
	retry529   = `{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"error_status":529,"error":"overloaded"}`
)

func says(text string) string { return strings.Replace(speaks, "%", text, 1) }

func printed(t *testing.T, name string, all ...string) attempt {
	t.Helper()
	return run(t, name, []byte(lines(all...)), nil, 1000)
}

func TestIsErrorFails(t *testing.T) {
	t.Parallel()
	require.True(t, printed(t, "claude", wellDone).Success)
	a := printed(t, "claude", initClaude, wellDone, badlyDone)
	require.False(t, a.Success)
	require.Equal(t, "it broke", a.Error)
	for _, end := range []string{
		`{"type":"result","subtype":"success"}`, // it does not say
		`{"type":"result","subtype":"error_max_turns","is_error":false}`,
		`{"type":"result","subtype":"success","is_error":"no"}`,
	} {
		a := printed(t, "claude", end)
		require.True(t, a.Final)
		require.False(t, a.Success, end)
		require.Nil(t, a.Problem)
	}
	require.False(t, printed(t, "claude", says("all done"), `{"type":"system"}`).Final)
	require.False(t, printed(t, "codex", `{"type":"turn.completed"}`, `{"type":"turn.failed","error":{"message":"no"}}`).Success)
	require.False(t, printed(t, "codex", `{"type":"turn.completed"}`, `{"type":"error","message":"no"}`).Success)
	require.False(t, printed(t, "opencode", `{"type":"step_finish","part":{"reason":"stop"}}`, `{"type":"error","error":{"name":"x"}}`).Success)
	require.False(t, printed(t, "opencode", `{"type":"step_finish","part":{"reason":"length"}}`).Success)
}

// What a model writes, runs or reads says nothing about limits.
func TestWordsOfAModelAreNoProblem(t *testing.T) {
	t.Parallel()
	const words = `You've hit your usage limit. 429 Too Many Requests, try again at 11:26 PM. Not logged in · Please run /login. ECONNREFUSED. overloaded`
	failed := `{"type":"result","subtype":"error_during_execution","is_error":true,"result":"` + words + `","errors":["it broke"]}`
	tool := `{"type":"assistant","message":{"model":"m","content":[{"type":"tool_use","name":"Bash","input":{"command":"echo ` + words + `"}}]}}`
	result := `{"type":"user","message":{"content":[{"type":"tool_result","content":"` + words + `","is_error":true}]}}`
	a := printed(t, "claude", initClaude, says(words), tool, result, words, failed)
	require.Nil(t, a.Problem)
	require.Equal(t, "it broke", a.Error)
	require.Nil(t, printed(t, "claude", initClaude, says(words), words).Problem)

	item := `{"type":"item.completed","item":{"id":"%","type":"%","text":"` + words + `","command":"` + words + `","aggregated_output":"` + words + `","message":"` + words + `"}}`
	var all []string
	for _, kind := range []string{"agent_message", "command_execution", "error", "reasoning"} {
		all = append(all, strings.ReplaceAll(item, "%", kind))
	}
	a = printed(t, "codex", append(all, `{"type":"turn.failed","error":{"message":"it broke"}}`)...)
	require.Nil(t, a.Problem)
	require.Equal(t, "it broke", a.Error)
	require.Nil(t, printed(t, "codex", all...).Problem)

	a = printed(t, "opencode", `{"type":"text","part":{"text":"`+words+`"}}`, `{"type":"tool_use","part":{"tool":"bash","state":{"status":"error","error":"`+words+`"}}}`)
	require.Nil(t, a.Problem)
	require.Empty(t, a.hopeless)

	// Nor does stderr, once the model has spoken.
	require.Nil(t, run(t, "codex", []byte(all[0]+"\n"), []byte("429 Too Many Requests\n"), 100).Problem)
	require.Equal(t, Nested, run(t, "claude", nil, []byte("Error: Claude Code cannot be launched inside another Claude Code session.\n"), 1).Problem.Kind)
}

func TestHealthyNoticesAreNoLimit(t *testing.T) {
	t.Parallel()
	const notice = `{"type":"rate_limit_event","rate_limit_info":{"status":"%","resetsAt":1795361191,"isUsingOverage":false}}`
	for _, status := range []string{"allowed", "allowed_warning"} {
		n := strings.Replace(notice, "%", status, 1)
		require.Nil(t, printed(t, "claude", n, says("x"), n).Problem)
		require.Nil(t, printed(t, "claude", n, badlyDone).Problem)
	}
	rejected := strings.Replace(notice, "%", "rejected", 1)
	require.Nil(t, printed(t, "claude", rejected, says("x"), wellDone).Problem)
	require.Nil(t, printed(t, "claude", rejected, `{"type":"result","subtype":"error_max_turns","is_error":true}`).Problem)
	require.Nil(t, printed(t, "claude", strings.Replace(rejected, `Overage":false`, `Overage":true`, 1), badlyDone).Problem)
	a := printed(t, "claude", rejected)
	require.Equal(t, Limit, a.Problem.Kind)
	require.Equal(t, time.Unix(1795361191, 0), a.Problem.ResetAt)
}

func TestHopelessRetries(t *testing.T) {
	t.Parallel()
	require.Empty(t, printed(t, "claude", retry529, retry529, says("x"), retry529, retry529, says("y"), wellDone).hopeless)
	a := printed(t, "claude", retry529, retry529, retry529, retry529)
	require.Len(t, a.hopeless, 1)
	require.Equal(t, Overload, a.hopeless[0].Kind)
	require.Equal(t, Login, printed(t, "claude", strings.Replace(retry529, "529", "401", 1)).hopeless[0].Kind)
	a = printed(t, "claude", retry529, retry529, retry529, says("x"), wellDone) // nobody ended it
	require.Nil(t, a.Problem)
	require.Empty(t, a.Error)
	require.Empty(t, printed(t, "claude", strings.Repeat(strings.NewReplacer("529", "418", "overloaded", "teapot").Replace(retry529)+"\n", 5)).hopeless)
}

// What is no event says nothing about whether the agent is at work: its silence is not ended
// by lines of a wrapper. One that is unknown, or broke off, is one.
func TestOnlyEventsAreCounted(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "codex", "opencode"} {
		a := run(t, name, []byte(lines("npm notice", "", "[1]", "still here")), nil, 3)
		require.Zero(t, a.events, name)
		require.Contains(t, a.shown, "still here")
		a = run(t, name, []byte(lines(`{"type":"unknown"}`, "noise", `{"type":"torn`, `{"type":"unknown"}`)), nil, 3)
		require.Equal(t, 3, a.events, name)
	}
}
