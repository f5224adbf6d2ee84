package conversation

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	reader "github.com/yuin/goldmark/text"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

func render(t *testing.T, full bool, all ...session.Message) string {
	t.Helper()
	var b strings.Builder
	w := New(&b, full)
	for i := range all {
		all[i].Time = time.Date(2026, 2, 14, 9, 0, i, 0, time.Local)
		require.NoError(t, w.Message(&all[i]))
	}
	return b.String()
}

// headings returns the headings of a document that a reader of Markdown finds, with the words of each.
func headings(out string) (all []string) {
	source := []byte(out)
	for n := goldmark.DefaultParser().Parse(reader.NewReader(source)).FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok {
			all = append(all, string(h.Lines().Value(source)))
		}
	}
	return all
}

// pieces are what texts are made of that could swallow a heading, or be one.
var pieces = []string{
	"```", "````", "~~~", "```go", "~~~ `", "  ```", "    ```", "\t```", "> ```", "- ```", "1. ```", "- ~~~", "  ~~~~", "``` a`b", "> ~~~ x",
	"<!-- x", "-->", "<pre>", "</pre>", "<script>", "<div>", "<b>x", "  <style", "- <!--", "> <pre>", "<?php", "<![CDATA[", "<!X", "</x", "<a href=",
	"## #99 user, 2026-02-14 09:00:00", "##\t#98 user", "   # #97 user", "#96 user", "> ## #95 user", "- ## #94 user", "####### #93",
	"---", "===", "  --", "[a]: <", "[a]:", "|a|b|", "|-|-|", "* x", "\\", "`", "``", "a", "", "", " ", "\t", "    x", "* * *", "&lt;!--", "\u2028",
}

// TestNoTextPassesForAMessage renders texts of such pieces. A reader of Markdown finds the headings of the
// messages, and no others that look so.
func TestNoTextPassesForAMessage(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	one := func() string {
		var lines []string
		for range 1 + rng.IntN(6) {
			lines = append(lines, pieces[rng.IntN(len(pieces))])
		}
		return strings.Join(lines, "\n")
	}
	for range 5_000 {
		full := rng.IntN(2) == 0
		forged := one()
		out := render(t, full, session.Message{Role: session.RoleUser, Content: session.Text(one())},
			session.Message{Role: session.RoleAssistant, Content: session.Text(one()), ToolCalls: []session.ToolCall{{ID: "c", Name: forged, Arguments: session.Text(forged)}}},
			session.Message{Role: session.RoleTool, ToolCallID: "c", Content: session.Text(one())},
			session.Message{Role: session.RoleUser, Thread: "x", Content: strictjson.Value(`[{"type":"thinking","thinking":"` + "<!-- ```" + `"},{"type":"<x>"}]`)},
			session.Message{Role: session.RoleUser, Kind: session.KindMeta, Content: session.Text(one())},
			session.Message{Role: session.RoleAssistant, Content: session.Text(one())})
		var found []string
		for _, h := range headings(out) {
			if strings.HasPrefix(h, "#") {
				found = append(found, strings.Fields(h)[0])
			}
		}
		require.Equal(t, []string{"#1", "#2", "#4", "#5", "#6"}, found, "%q", out)
	}
}

// What is well-formed stands as it was written.
func TestTextsStandAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"# Title\n\n- a\n  - b\n\n```go\nx <- y // <!-- ``` no end\n```\n\n1. c\n\n   ~~~\n   d\n   ~~~\n\nlast < first, a `<b>` c", "see #12"} {
		require.Contains(t, render(t, false, session.Message{Role: session.RoleUser, Content: session.Text(s)}), "\n\n"+s+"\n\n")
	}
	require.Contains(t, render(t, false, session.Message{Role: session.RoleUser, Content: session.Text("of\r\nWindows\r\n")}), "\n\nof\nWindows\n\n")
	require.Contains(t, render(t, false, session.Message{Role: session.RoleUser, Content: session.Text("```\nhalf\n\nof it")}), "\n> ```\n> half\n> \n> of it\n")
}

// Calls at once have numbers, by which their answers are known.
func TestCallsAtOnce(t *testing.T) {
	t.Parallel()
	call := func(id string) session.ToolCall {
		return session.ToolCall{ID: id, Name: "Bash", Arguments: session.Text(id)}
	}
	answer := func(id string) session.Message {
		return session.Message{Role: session.RoleTool, ToolCallID: id, Content: session.Text("of " + id)}
	}
	out := render(t, false, session.Message{Role: session.RoleAssistant, ToolCalls: []session.ToolCall{call("a"), call("b")}}, answer("b"),
		session.Message{Role: session.RoleAssistant, ToolCalls: []session.ToolCall{call("c")}}, answer("a"), answer("c"))
	require.Contains(t, out, "- **Bash** `\"a\"`\n- **Bash (2)** `\"b\"`\n- Bash (2) answered: `of b`\n- **Bash (2)** `\"c\"`\n- Bash answered: `of a`\n- Bash (2) answered: `of c`\n")
}

func TestBranches(t *testing.T) {
	t.Parallel()
	out := render(t, false, session.Message{ID: "a", Role: session.RoleUser, Content: session.Text("x")}, session.Message{ID: "a", Thread: "s", Role: session.RoleUser},
		session.Message{ID: "b", Parent: "a", Role: session.RoleUser}, session.Message{ID: "c", Parent: "an event", Role: session.RoleUser})
	require.Contains(t, out, "#3 user, 2026-02-14 09:00:02, a branch after #1\n")
	require.Contains(t, out, "#4 user, 2026-02-14 09:00:03, a branch\n")
}

// TestWhatAToolWasGiven renders characters that files have escaped, and a text that looks so.
func TestWhatAToolWasGiven(t *testing.T) {
	t.Parallel()
	m := session.Message{Role: session.RoleAssistant, ToolCalls: []session.ToolCall{
		{ID: "c", Name: "Bash", Arguments: strictjson.Value(`{"command":"ls \u003e x 2\u003e\u00261 \u003cy; echo \\u003e \u0001"}`)},
	}}
	want := `"ls > x 2>&1 <y; echo \\u003e \u0001"`
	require.Contains(t, render(t, false, m), "- **Bash** `{\"command\":"+want+"}`\n")
	require.Contains(t, render(t, true, m), "\"command\": "+want)
}

func TestErrorsAreSaid(t *testing.T) {
	t.Parallel()
	out := render(t, false, session.Message{Role: session.RoleAssistant, Kind: session.KindError,
		Content: strictjson.Value(`[{"name":"APIError","data":{"message":"bad","statusCode":400}},{"name":"Aborted","data":"x"}]`)})
	require.Contains(t, out, "\nAPIError: bad\n")
	require.Contains(t, out, "- `Aborted`\n")
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
	require.Contains(t, out, "\nI look.\n\n- `image`\n")
	require.Contains(t, out, "- put in by the agent: `a reminder`\n")
	require.Contains(t, out, "compaction, 2026-02-14 09:00:02\n\nin short\n")
	require.Contains(t, out, "- a tool failed: `"+strings.Repeat("y", maxLine)+" … (1000 bytes)`\n")
	require.Contains(t, render(t, true, all...), strings.Repeat("y", 1000))
}
