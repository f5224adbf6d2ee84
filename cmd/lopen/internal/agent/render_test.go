package agent

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRendering(t *testing.T) {
	t.Parallel()
	require.Equal(t, "Not logged in · Please run /login\n", sample(t, "claude", "no_login").shown) // once
	require.True(t, strings.HasSuffix(sample(t, "claude", "budget").shown, "\nerror: Reached maximum budget ($0.000001)\n"))
	require.Contains(t, sample(t, "claude", "down").shown, "retry 1 of 10: unknown\n")
	long := strings.Repeat("ä", 1000)
	a := printed(t, "claude", says(`one\ntwo\n\n`), `{"type":"assistant","message":{"content":[
		{"type":"tool_use","name":"Bash","input":{"command":"cat <<E\n`+long+`\nE"}}]}}`)
	require.NotContains(t, a.shown, "hidden")
	require.NotZero(t, a.skipped) // JSON over two lines is none
	a = printed(t, "claude", says(`one\ntwo\n\n`), `{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":"cat <<E\n`+long+`\nE"}},`+
		`{"type":"tool_use","name":"Task","input":{"nothing":1}},7]}}`, "npm warn: old")
	all := strings.Split(a.shown, "\n")
	require.Equal(t, []string{"one", "two"}, all[:2])
	require.True(t, strings.HasPrefix(all[2], "Bash: cat <<E äää"))
	require.LessOrEqual(t, len(all[2]), len("Bash: ")+maxDetail)
	require.True(t, strings.HasSuffix(all[2], "ä..."))
	require.Equal(t, []string{"Task", "npm warn: old", ""}, all[3:])
	a = printed(t, "codex", `{"type":"item.completed","item":{"id":"1","type":"file_change","changes":[{"path":"a.go"},{"path":"b.go"}]}}`,
		`{"type":"item.started","item":{"id":"2","type":"mcp_tool_call","server":"s","tool":"t","arguments":{"path":"x"}}}`,
		`{"type":"item.started","item":{"id":"3","type":"web_search","query":"q"}}`, `{"type":"item.completed","item":{"id":"3","type":"web_search","query":"q"}}`)
	require.Equal(t, lines("change: a.go b.go", "s/t: x", "search: q"), a.shown)
}

// A notice of a limit that is written into the middle of a message, and several events on
// one line, break nothing.
func TestTornLines(t *testing.T) {
	t.Parallel()
	notice := `{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"}}`
	whole := says("a text of some length")
	for i := range whole {
		a := printed(t, "claude", whole[:i]+notice, whole[i:], wellDone)
		require.Equal(t, "a text of some length\n", a.shown, i)
		require.True(t, a.Success)
		require.Zero(t, a.skipped)
	}
	a := printed(t, "claude", strings.Repeat(whole[:9]+notice+"\n", 100), wellDone) // read again so often, and no more
	require.NotZero(t, a.skipped)
	require.True(t, a.Success)
	a = printed(t, "claude", whole+notice+wellDone)
	require.True(t, a.Spoke && a.Success)
	a = printed(t, "claude", whole[:len(whole)/2], `rest of it"}]}}`, wellDone)
	require.True(t, a.Success)
	require.Equal(t, 1, a.skipped)
	require.Empty(t, a.shown)
	// An event behind one that broke off counts, and so does what follows that.
	for _, name := range []string{"claude", "codex", "opencode"} {
		require.Equal(t, 1, printed(t, name, `{"type":"assistant","message":{"content":[{"type":"text","text":"to`+wellDone).skipped)
	}
	a = printed(t, "claude", whole[:len(whole)-8]+whole+whole[:15]+wellDone)
	require.True(t, a.Success)
	require.Equal(t, "a text of some length\n", a.shown)
	a = printed(t, "codex", `{"type":"item.completed","item":{"id":"0","ty`+`{"type":"turn.completed","usage":{"input_tokens":5}}`)
	require.True(t, a.Success)
	// What is cut off says nothing: an input of a tool is the model's own.
	forged := `{"type":"assistant","message":{"content":[{"type":"tool_use","input":` + wellDone
	require.False(t, printed(t, "claude", forged).Final)
}

func TestNonsense(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "codex", "opencode"} {
		for _, line := range []string{"{}", "[]", "null", `{"type":7}`, `{"type":"result","usage":[],"modelUsage":7,"is_error":false,"num_turns":-3,"total_cost_usd":-1}`,
			`{"type":"turn.completed","usage":{"input_tokens":-5,"output_tokens":1e300,"cached_input_tokens":1e13}}`,
			`{"type":"step_finish","part":{"reason":7,"tokens":{"input":"x"},"cost":1e300}}`, `{"type":"thread.started","thread_id":"--yolo"}`, "\x00\xff", strings.Repeat("{", 10000)} {
			a := printed(t, name, line)
			sane(t, a)
			require.Empty(t, a.Session)
			require.Zero(t, a.Input+a.Output+a.Cached)
			require.False(t, a.CostKnown)
		}
	}
}
