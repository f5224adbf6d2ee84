package agents_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/agents"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// Several records in one line are all read, also behind one that was torn.
func TestRecordsInOneLine(t *testing.T) {
	t.Parallel()
	line := func(all ...string) string { return strings.ReplaceAll(strings.Join(all, ""), "\n", "") }
	one, two, three := user("a", "", "one"), user("b", "a", "two"), user("c", "b", "three")
	torn := `{"parentUuid":"c","type":"assistant","message":{"content":[{"type":"text","text":"a part"},{"type":"text","text":"torn`
	nameless := strings.ReplaceAll(user("", "", "no name"), `"uuid":"",`, "")
	path := transcript(t, line(one, two, three)+"\n"+line(torn, user("d", "c", "four"), user("e", "d", "five"), torn, user("f", "e", "six"))+"\n"+
		line(nameless, nameless)+"\n"+line(user("g", "", "seven"), user("h", "g", "eight"), torn))
	h := open(t, agents.Claude, path)
	items, at, rep := read(t, h, agents.Position{})
	require.Equal(t, 10, rep.Messages)
	require.Len(t, items, 12)
	for i, words := range []string{"one", "two", "three", "", "four", "five", "", "six", "no name", "no name", "seven", "eight"} {
		require.Contains(t, items[i], words)
	}
	require.NotContains(t, items[1]+items[2], `"parent"`, "each follows the one before it")
	require.NotEqual(t, items[8], items[9], "each has an ID of its own")
	require.Equal(t, 3, rep.Bad)
	require.Equal(t, agents.Place{Path: path, Line: 4, Offset: at.Files[0].Offset, Bytes: int64(len(torn)), Why: "the file ends within this line"}, rep.Places[2])

	appendTo(t, path, ` and finished"}]}}`+"\n")
	items, _, rep = read(t, h, at)
	require.Len(t, items, 1, "what was whole is not read again")
	require.Contains(t, items[0], "torn and finished")
	require.Zero(t, rep.Bad)

	dir := t.TempDir()
	said := func(text string) string {
		return `{"timestamp":"2026-09-01T10:00:00Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"` + text + `"}]}}`
	}
	rolloutFile(t, dir, "01a21502-a0f8-7e50-8b12-ebb748d77550", `{"type":"session_meta","payload":{"id":"01a21502-a0f8-7e50-8b12-ebb748d77550","cwd":"/x"}}`+said("one")+`{"timestamp":"20`+said("two")+said("three")+"\n")
	h = open(t, agents.Codex, dir)
	head, err := h.Head()
	require.NoError(t, err)
	require.Equal(t, agents.Head{Cwd: "/x", Title: "one"}, head)
	_, _, rep = read(t, h, agents.Position{})
	require.Equal(t, 3, rep.Messages)
}

// A subagent of Claude Code may begin with a copy of what its parent said, which counted there.
func TestUsageOfASubagentThatBeginsWithACopy(t *testing.T) {
	t.Parallel()
	line := func(request string, out int) string {
		return fmt.Sprintf(`{"type":"assistant","requestId":%q,"message":{"content":"x","usage":{"input_tokens":100,"output_tokens":%d}}}`+"\n", request, out)
	}
	path := transcript(t, user("a", "", "one")+line("r1", 10)+line("r2", 20))
	subs := filepath.Join(strings.TrimSuffix(path, ".jsonl"), "subagents")
	require.NoError(t, os.MkdirAll(subs, 0o700))
	sub := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(subs, "agent-"+name+".jsonl"), []byte(text), 0o600))
	}
	sub("b", user("b", "", "copied")+line("r1", 10)+line("r2", 20)+line("own", 1))
	sub("c", line("r2", 20)+line("own", 1)+line("c", 2)) // and of another subagent
	_, at, rep := read(t, open(t, agents.Claude, path), agents.Position{})
	require.Equal(t, session.Usage{InputTokens: 400, OutputTokens: 33}, rep.Usage)
	require.Equal(t, 10, rep.Messages, "what was said stands where it was said")

	// Also when the parent was read before, in another pass.
	sub("a", line("r1", 10)+line("own", 1)+line("a", 5))
	_, _, rep = read(t, open(t, agents.Claude, path), at)
	require.Equal(t, session.Usage{InputTokens: 100, OutputTokens: 5}, rep.Usage)
}

// wide returns a text in UTF-16 with its byte order mark.
func wide(t testing.TB, order binary.AppendByteOrder, text string) string {
	t.Helper()
	data := order.AppendUint16(nil, 0xfeff)
	for _, u := range utf16.Encode([]rune(text)) {
		data = order.AppendUint16(data, u)
	}
	return string(data)
}

// A history that PowerShell wrote again is in UTF-16. It is read on where it grew, and anew where it was rewritten.
func TestUTF16(t *testing.T) {
	t.Parallel()
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		path := transcript(t, wide(t, order, user("a", "", "öne")+user("b", "a", "twö")+`{"type":"us`))
		h := open(t, agents.Claude, path)
		head, err := h.Head()
		require.NoError(t, err)
		require.Equal(t, "öne", head.Title)
		items, at, rep := read(t, h, agents.Position{})
		require.Len(t, items, 2)
		require.Contains(t, items[1], "twö")
		require.Equal(t, 3, rep.Places[0].Line)
		items, at, _ = read(t, open(t, agents.Claude, path), at)
		require.Empty(t, items)
		appendTo(t, path, wide(t, order, "er\"}\n"+user("c", "b", "three"))[2:])
		items, at, rep = read(t, open(t, agents.Claude, path), at)
		require.Len(t, items, 2)
		require.Contains(t, items[1], "three")
		require.Zero(t, rep.Bad)
		require.NoError(t, os.WriteFile(path, []byte(wide(t, order, user("x", "", "another")+user("y", "x", "one")+user("z", "x", "more"))), 0o600))
		items, _, rep = read(t, open(t, agents.Claude, path), at)
		require.Len(t, items, 3)
		require.Equal(t, []string{path}, rep.Rewritten)
	}
}

// A rollout may have any name: a copy is of the session that its first line names.
func TestARolloutOfAnotherName(t *testing.T) {
	t.Parallel()
	const id = "01a21502-a0f8-7e50-8b12-ebb748d77550"
	text := `{"timestamp":"2026-09-01T10:00:00Z","type":"session_meta","payload":{"id":"` + id + `","cwd":"/x"}}` + "\n" +
		`{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}}` + "\n"
	dir := t.TempDir()
	for _, name := range []string{"anna.jsonl", "anna.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "index.jsonl"), []byte(`{"id":"01","thread_name":"x"}`+"\n"), 0o600))
	h := open(t, agents.Codex, filepath.Join(dir, "anna.txt"))
	require.Equal(t, id, h.ID)
	items, at, _ := read(t, h, agents.Position{})
	require.Len(t, items, 2)
	h = open(t, agents.Codex, dir)
	require.Equal(t, filepath.Join(dir, "anna.jsonl"), h.Path, "in a folder only what is named like a history")
	items, _, _ = read(t, h, at)
	require.Empty(t, items)

	path := filepath.Join(dir, "bob.log")
	require.NoError(t, os.WriteFile(path, []byte(user("a", "", "one")), 0o600))
	items, _, _ = read(t, open(t, agents.Claude, path), agents.Position{})
	require.Len(t, items, 1)
}

// A prompt that Codex notes as an event only is shown, and one that it notes as an item too is not shown twice.
func TestPromptsThatAreEventsOnly(t *testing.T) {
	t.Parallel()
	item := func(role string, texts ...string) string {
		return `{"type":"response_item","payload":{"type":"message","role":"` + role + `","content":[{"type":"input_text","text":"` + strings.Join(texts, `"},{"type":"input_text","text":"`) + `"}]}}` + "\n"
	}
	event := func(text string) string {
		return `{"type":"event_msg","payload":{"type":"user_message","message":"` + text + `"}}` + "\n"
	}
	answer := item("assistant", "yes")
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"events alone", event("go on") + answer + event("go on") + answer, []string{"go on", "yes", "go on", "yes"}},
		{"item and event", item("user", "go on") + event("go on") + answer + item("user", "go on") + event("go on"), []string{"go on", "yes", "go on"}},
		{"event and item", event("go on") + item("user", "<image>", "go on") + answer + event("go on") + item("user", "go on"), []string{"go on", "yes", "go on"}},
		{"an item in parts", item("user", "a ", "b") + event("a b") + event("more"), []string{"a ", "more"}},
		{"items alone", item("user", "x") + item("user", "x") + item("user", "x"), []string{"x", "x", "x"}},
		{"a turn that was stopped", item("user", "x") + event("x") + item("user", "x") + event("x"), []string{"x", "x"}},
		{"another turn", item("user", "x") + answer + event("x"), []string{"x", "yes", "x"}},
		{"nothing", event(" "), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			rolloutFile(t, dir, "01a21502-a0f8-7e50-8b12-ebb748d77550", `{"type":"session_meta","payload":{"cwd":"/x"}}`+"\n"+c.text)
			h := open(t, agents.Codex, dir)
			items, _, _ := read(t, h, agents.Position{})
			var said []string
			for _, it := range items {
				if strings.Contains(it, `"uuid":`) {
					said = append(said, it)
				}
			}
			require.Len(t, said, len(c.want))
			for i, words := range c.want {
				require.Contains(t, said[i], `"`+words)
			}
			head, err := h.Head()
			require.NoError(t, err)
			if c.want != nil {
				require.NotEmpty(t, head.Title)
			}
		})
	}
}
