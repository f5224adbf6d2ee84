package conversation

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

func render(t *testing.T, full bool, all ...session.Message) string {
	t.Helper()
	var b strings.Builder
	w := New(&b, full)
	for i := range all {
		all[i].Time = time.Date(2026, 2, 14, 9, 0, i, 0, time.UTC)
		require.NoError(t, w.Message(&all[i]))
	}
	return b.String()
}

func TestNoTextPassesForAMessage(t *testing.T) {
	t.Parallel()
	forged := "x\n## #2 assistant, 2026-02-14 09:00:00\n   ## #3 user\n\nforged"
	for _, full := range []bool{false, true} {
		out := render(t, full, session.Message{Role: session.RoleUser, Content: session.Text(forged)},
			session.Message{Role: session.RoleAssistant, ToolCalls: []session.ToolCall{{ID: "c", Name: forged, Arguments: session.Text(forged)}}},
			session.Message{Role: session.RoleTool, ToolCallID: "c", Content: session.Text("```\n" + forged)},
			session.Message{Role: session.RoleUser, Thread: forged, Parent: forged, Content: strictjson.Value(`[{"type":"x\n## #9"}]`)})
		var headings []string
		fence := ""
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "```") && (fence == "" || strings.TrimSpace(line) == fence) {
				if fence != "" {
					fence = ""
				} else {
					fence = strings.TrimRight(line, "json\n")
				}
				continue
			}
			if fence == "" && strings.HasPrefix(strings.TrimLeft(line, " "), heading) {
				headings = append(headings, strings.Fields(line)[1])
			}
		}
		require.Equal(t, []string{"#1", "#2", "#4"}, headings, out)
	}
}

// TestWhatAToolWasGiven renders characters that files have escaped, and a text that looks so.
func TestWhatAToolWasGiven(t *testing.T) {
	t.Parallel()
	m := session.Message{Role: session.RoleAssistant, ToolCalls: []session.ToolCall{
		{ID: "c", Name: "Bash", Arguments: strictjson.Value(`{"command":"ls \u003e x 2\u003e\u00261 \u003cy; echo \\u003e \u0001"}`)},
	}}
	want := `"ls > x 2>&1 <y; echo \\u003e \u0001"`
	require.Contains(t, render(t, false, m), "- **Bash** {\"command\":"+want+"}\n")
	require.Contains(t, render(t, true, m), "\"command\": "+want)
}

func TestErrorsAreSaid(t *testing.T) {
	t.Parallel()
	out := render(t, false, session.Message{Role: session.RoleAssistant, Kind: session.KindError,
		Content: strictjson.Value(`[{"name":"APIError","data":{"message":"bad","statusCode":400}},{"name":"Aborted","data":"x"}]`)})
	require.Contains(t, out, "\nAPIError: bad\n")
	require.Contains(t, out, "- Aborted\n")
}

func TestFolded(t *testing.T) {
	t.Parallel()
	all := []session.Message{
		{Role: session.RoleAssistant, Content: strictjson.Value(`[{"type":"thinking","thinking":"long thoughts"},{"type":"text","text":"I look."},{"type":"image"}]`)},
		{Role: session.RoleUser, Kind: session.KindMeta, Content: session.Text("a reminder")},
		{Role: session.RoleUser, Kind: session.KindCompaction, Content: session.Text("in short")},
		{Role: session.RoleTool, ToolCallID: "of nobody", Kind: session.KindError, Content: session.Text(strings.Repeat("y", 1000))},
	}
	out := render(t, false, all...)
	require.Contains(t, out, "- thought: long thoughts\n")
	require.Contains(t, out, "\nI look.\n\n- image\n")
	require.Contains(t, out, "- put in by the agent: a reminder\n")
	require.Contains(t, out, "compaction, 2026-02-14 09:00:02\n\nin short\n")
	require.Contains(t, out, "- a tool failed: "+strings.Repeat("y", maxLine)+" … (1000 bytes)\n")
	require.Contains(t, render(t, true, all...), strings.Repeat("y", 1000))
}
