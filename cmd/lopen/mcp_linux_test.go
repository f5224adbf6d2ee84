package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/find"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/mcp"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/plain"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A toolClient is a client of a real process: lopen mcp.
type toolClient struct {
	*testing.T
	*sdk.ClientSession
	dir    string
	stderr *bytes.Buffer
	cmd    *exec.Cmd
}

func newToolClient(t *testing.T, dir string, env ...string) *toolClient {
	t.Helper()
	c := &toolClient{T: t, dir: dir, stderr: &bytes.Buffer{}, cmd: command(t, dir, "mcp", "--log-level", "debug")}
	c.cmd.Env = append(c.cmd.Env, env...)
	c.cmd.Stderr = c.stderr
	var err error
	c.ClientSession, err = sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: c.cmd}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ask calls a tool, reads its data into v, and returns its text. What it returns is bounded and
// steers no terminal.
func (c *toolClient) ask(v any, tool string, args map[string]any) string {
	c.Helper()
	r, err := c.CallTool(c.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	require.NoError(c, err)
	text := r.Content[0].(*sdk.TextContent).Text
	require.LessOrEqual(c, len(text), mcp.MaxText+100)
	requireHarmless(c.T, text)
	requireDead(c.T, text)
	requireVisible(c.T, r.StructuredContent)
	text = unfenced(text)
	if v == nil {
		require.True(c, r.IsError, text)
		return text
	}
	require.False(c, r.IsError, text)
	data, err := json.Marshal(r.StructuredContent)
	require.NoError(c, err)
	require.LessOrEqual(c, len(data), 40<<10)
	require.NoError(c, json.Unmarshal(data, v))
	return text
}

const (
	pemBody   = "MIIEpAIBAAKCAQEA7bq0xQwYv3m1sZrT5kLhUuXo2pNfGdJc9aWe8yRiKtVbHxSj"
	pemChange = "Qm4nB7vCxZ1lKjHgFdSaPoIuYtReWq0987654321zYxWvUtSrQpOnMlKjIhGfEdC"
	awsKey    = "wJalrXUtnFEMIK7MDENGbPxRfiCYQ2vTz8LkWmNp"
)

// toolProject is a project in which two tasks failed, with all that is hostile in names and output.
func toolProject(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	pem := func(body string) string {
		return "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat(pemBody+"\n", 12) + body + "\n" + strings.Repeat(pemBody+"\n", 12) + "-----END RSA PRIVATE KEY-----\n"
	}
	put("TODO.md", "- [ ] task one\n- [ ] task two\n")
	put("key.pem", pem(pemBody))
	put("kept", "a\n")
	put("next.pem", pem(pemChange))
	put("agent.sh", "cp next.pem key.pem; echo more >>kept; echo AWS_SECRET_ACCESS_KEY="+awsKey+" >conf; printf x >\"$1\"; printf '%s' \"$1\"; echo I tried\n")
	must(t, dir, "plan", "create", "m", "--from", "TODO.md")
	run := command(t, dir, "run", "m", "--keep-failed", "--unattended", "--check", "echo FAIL: TestIt; exit 3", "--", "sh", "agent.sh", hostileFile)
	out, err := run.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 2, run.ProcessState.ExitCode(), "%s", out)
	return dir
}

// stored lists all that is in a folder: names, sizes, times and contents.
func stored(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		require.NoError(t, err)
		fmt.Fprintf(&b, "%q %v %v", path, info.Mode(), info.ModTime())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			fmt.Fprintf(&b, " %q", data)
		}
		b.WriteByte('\n')
		return nil
	}))
	return b.String()
}

// An agent asks what happened; nothing is written for it.
func TestMCPTools(t *testing.T) {
	t.Parallel()
	dir := toolProject(t)
	before := stored(t, dir)
	c := newToolClient(t, dir)

	var page logPage
	text := c.ask(&page, "session_log", map[string]any{"task": "task-two"})
	require.Contains(t, text, "task-two, attempt 1: failed")
	require.Len(t, page.Records, 3)
	require.Equal(t, "kept", page.Records[0].Attempts[0].Files[len(page.Records[0].Attempts[0].Files)-1].Path)

	var failure lastFailure
	text = c.ask(&failure, "last_failure", nil)
	require.Contains(t, text, "FAIL: TestIt")
	require.Contains(t, text, "exit 3")
	require.Contains(t, text, "I tried")
	require.Equal(t, "task-two", failure.Attempt.Task)
	require.Equal(t, 3, failure.Attempt.Check.Exit)
	require.NotEmpty(t, failure.Attempt.Files)
	require.False(t, failure.DoneSince)
	text = c.ask(&failure, "last_failure", map[string]any{"task": "one"})
	require.Equal(t, "task-one", failure.Attempt.Task)
	require.Contains(t, text, "lopen session output")

	var changes changesSince
	text = c.ask(&changes, "changes_since", map[string]any{"checkpoint": "1", "diff": true})
	var rows []diffRow
	require.NoError(t, json.Unmarshal([]byte(must(t, dir, "checkpoint", "diff", "1", "--json")), &rows))
	for i := range rows {
		rows[i].Path = plain.Text(rows[i].Path)
	}
	require.Equal(t, rows, changes.Files)
	require.Len(t, rows, changes.All)
	require.Contains(t, text, "+more")
	require.Contains(t, text, "+AWS_SECRET_ACCESS_KEY=[redacted:")
	require.Contains(t, text, "differ in what is hidden")
	for _, secret := range []string{pemBody, pemChange, awsKey} {
		require.NotContains(t, text+changes.Diff, secret)
	}
	for _, path := range []string{"./kept", filepath.Join(dir, "kept"), "no/../kept/"} {
		c.ask(&changes, "changes_since", map[string]any{"checkpoint": "before:task-one", "path": path})
		require.Equal(t, 1, changes.All, path)
	}
	for _, path := range []string{"..", "/etc/passwd", dir + "x"} { // not: nothing changed there
		require.Contains(t, c.ask(nil, "changes_since", map[string]any{"checkpoint": "1", "path": path}), "is not in the project")
	}

	require.Contains(t, c.ask(nil, "changes_since", map[string]any{"checkpoint": "before:nothing" + evil}), "nothing")
	require.Contains(t, c.ask(nil, "changes_since", map[string]any{"checkpoint": ""}), "lopen checkpoint list")
	require.Contains(t, c.ask(nil, "session_log", map[string]any{"session": "gone" + forged}), "not found")
	require.Contains(t, c.ask(nil, "session_log", map[string]any{"limit": 1000}), "give 1 to 200")
	require.Equal(t, before, stored(t, dir))

	var found searchPage
	text = c.ask(&found, "search", map[string]any{"query": "TestIt", "role": "failed"})
	require.Contains(t, text, "[TestIt]")
	require.Contains(t, found.Hits[0].Open, "lopen session ")
	c.ask(&found, "search", map[string]any{"file": "kept", "limit": 2})
	require.Len(t, found.Hits, 2)
	require.Contains(t, c.ask(&found, "search", map[string]any{"query": "nobodysaidthis"}), "nothing found")
	require.Contains(t, c.ask(nil, "search", nil), "give query or file")
	require.True(t, strings.HasPrefix(c.ask(nil, "search", map[string]any{"query": "x", "since": "soon" + evil}), "since"))
	require.NoError(t, c.Close())
	require.Zero(t, c.cmd.ProcessState.ExitCode())
	require.Contains(t, c.stderr.String(), "a tool was called")
}

// Page by page an agent gets each record once.
func TestMCPPages(t *testing.T) {
	t.Parallel()
	dir := toolProject(t)
	c := newToolClient(t, dir)
	var all, got []uint64
	require.NoError(t, json.Unmarshal([]byte(must(t, dir, "session", "log", "--jq", "[.[].seq]")), &all))
	for before := uint64(0); ; {
		page := logPage{}
		c.ask(&page, "session_log", map[string]any{"limit": 7, "before": before})
		var seqs []uint64
		for _, r := range page.Records {
			seqs = append(seqs, r.Seq)
		}
		got = append(seqs, got...)
		if before = page.Before; before == 0 {
			break
		}
	}
	require.Equal(t, all, got)
}

// However much there is, an answer is bounded and says what is left out.
func TestMCPIsBounded(t *testing.T) {
	t.Parallel()
	oneByOne(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "TODO.md"), []byte("- [ ] one\n"), 0o600))
	script := `d=$(printf '%0200d' 0); mkdir -p $d/$d/$d/$d; i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo "text $i $$" >"$d/$d/$d/$d/$(printf '%0200d' $i)"; done; yes "line after line" | head -c 300000 | tee large; mkdir -p quoted; i=0; while [ $i -lt 200 ]; do i=$((i+1)); yes '"\"' | head -c 200 >quoted/$i-quoted-quoted-quoted-quoted-quoted; done; yes "$(printf '\033\001\033')" | head -c 9000 >escaped; i=0; while [ $i -lt 150 ]; do i=$((i+1)); echo x >"$(printf "$i-%048d" 0 | tr 0 '\033')"; done; exit 1`
	must(t, dir, "plan", "create", "m", "--from", "TODO.md")
	_ = command(t, dir, "run", "m", "--keep-failed", "--unattended", "--", "sh", "-c", script).Run()
	c := newToolClient(t, dir)
	var page logPage
	c.ask(&page, "session_log", nil)
	require.NotEmpty(t, page.Records)
	for before := page.Before; before > 0; before = page.Before { // no record is too large for an answer
		page = logPage{}
		c.ask(&page, "session_log", map[string]any{"before": before})
	}
	var failure lastFailure
	require.Contains(t, c.ask(&failure, "last_failure", nil), "line after line\n  all of it lopen session output")
	require.Positive(t, failure.Attempt.MoreFiles)
	var changes changesSince
	text := c.ask(&changes, "changes_since", map[string]any{"checkpoint": "1", "diff": true, "limit": 200})
	require.Equal(t, 652, changes.All)
	require.Less(t, len(changes.Files), 201)
	require.Contains(t, changes.Cut, "more files changed")
	require.Contains(t, changes.Cut, "do not fit")
	require.Contains(t, text, "files: 652, lines of those above: ")
	require.Contains(t, text, "more files")
	c.ask(&changes, "changes_since", map[string]any{"checkpoint": "1", "diff": true, "path": "large"})
	require.Contains(t, changes.Diff, "more bytes of this file's diff")
	require.Greater(t, len(changes.Diff), 14<<10)
	c.ask(&changes, "changes_since", map[string]any{"checkpoint": "1", "limit": 200})
	require.Contains(t, changes.Cut, "more files changed")
	for path, more := range map[string]string{"quoted": "do not fit", "escaped": "more bytes of this file's diff"} { // as JSON they are longer
		changes = changesSince{}
		c.ask(&changes, "changes_since", map[string]any{"checkpoint": "1", "diff": true, "limit": 200, "path": path})
		require.NotEmpty(t, changes.Diff)
		require.Contains(t, changes.Cut+changes.Diff, more)
	}
}

// TestMCPSearchSaysWhatIsLeftOut counts the hits that the limit, the size and the ranking leave out, in words that
// are about the tool.
func TestMCPSearchSaysWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	c := newToolClient(t, t.TempDir())
	newKeptSession(t, c.dir, func(sess *lifecycle.Session) {
		for i := range 600 {
			args := fmt.Sprintf(`{"file_path":"%s%d"}`, strings.Repeat("d/", 200), i)
			word := map[bool]string{true: "elephant", false: "mouse"}[i < 111]
			require.NoError(t, sess.Append(&session.Message{Role: session.RoleAssistant, Content: session.Text(word),
				ToolCalls: []session.ToolCall{{ID: fmt.Sprint(i), Name: "Edit", Arguments: strictjson.Value(args)}}}))
		}
		many := slices.Repeat([]session.ToolCall{{ID: "many", Name: strings.Repeat("n", 1000)}}, 50)
		require.NoError(t, sess.Append(&session.Message{Role: session.RoleAssistant, Content: session.Text("giraffe"), ToolCalls: many}))
	})
	ask := func(args map[string]any) (page searchPage) {
		text := c.ask(&page, "search", args)
		require.Contains(t, text, page.Cut)
		require.NotContains(t, text, "--limit")
		return page
	}
	page := ask(map[string]any{"query": "elephant", "limit": 5})
	require.Len(t, page.Hits, 5)
	require.Equal(t, 111, page.Found)
	require.Zero(t, page.Left)
	require.Equal(t, "5 of 111 hits: a limit up to 50 shows more, or narrow it with more words, module, role, tool, file or since", page.Cut)

	page = ask(map[string]any{"query": "elephant", "limit": 50})
	require.Less(t, len(page.Hits), 50)
	require.Equal(t, 111, page.Found)
	require.Equal(t, 50, len(page.Hits)+page.Left)
	require.Equal(t, fmt.Sprintf("%d of 111 hits; %d have no room in the answer: narrow it with more words, module, role, tool, file or since", len(page.Hits), page.Left), page.Cut)

	page = ask(map[string]any{"file": "d/7"})
	require.Len(t, page.Hits, 1)
	require.Empty(t, page.Cut)
	page = ask(map[string]any{"query": "giraffe"})
	require.Len(t, page.Hits, 1)
	page = ask(map[string]any{"tool": "Edit", "query": "Edit"})
	require.True(t, page.More)
	require.Contains(t, page.Cut, "10 of more than 500 hits, of which older ones were not ranked: a limit up to 50")
}

// TestMCPOneRecord opens what search finds: messages, calls of tools and attempts, whole where they have room.
func TestMCPOneRecord(t *testing.T) {
	t.Parallel()
	oneByOne(t)
	c := newToolClient(t, t.TempDir())
	long := "the elephant begins\n" + strings.Repeat("\"line\"\n", 100_000) + "the elephant ends\n"
	id := newKeptSession(t, c.dir, func(sess *lifecycle.Session) {
		for _, m := range []session.Message{
			{Role: session.RoleAssistant, Content: session.Text("I look for the mouse <& the cat>\n" + strings.Repeat("word ", 200) + "end of it"),
				ToolCalls: []session.ToolCall{{ID: "c", Name: "Bash", Arguments: strictjson.Value(`{"command":"grep cat 2>&1 >out"}`)}}},
			{Role: session.RoleTool, ToolCallID: "c", Content: session.Text(long)},
			{Role: session.RoleAssistant, Content: strictjson.Value(`[{"type":"text","text":"the giraffe ` + strings.Repeat("xyz ", 10_000) + `"}]`),
				ToolCalls: slices.Repeat([]session.ToolCall{{ID: "d", Name: strings.Repeat("n", 1000), Arguments: session.Text(strings.Repeat("<", 20_000))}}, 50)},
		} {
			require.NoError(t, sess.Append(&m))
		}
	})
	open := func(query string) (text string, page logPage, m session.Message) {
		t.Helper()
		var found searchPage
		c.ask(&found, "search", map[string]any{"query": query, "limit": 1})
		require.Equal(t, id.String(), found.Hits[0].Session)
		text = c.ask(&page, "session_log", map[string]any{"session": found.Hits[0].Session, "seq": found.Hits[0].Seq})
		require.Equal(t, id.String(), page.Session)
		require.Len(t, page.Records, 1)
		require.Equal(t, found.Hits[0].Seq, page.Records[0].Seq)
		require.NoError(t, json.Unmarshal(page.Records[0].Message, &m))
		return text, page, m
	}
	left := regexp.MustCompile(`\n\.\.\. (\d+) bytes are left out\n`)

	text, page, m := open("mouse")
	require.Contains(t, text, "\n\nI look for the mouse <& the cat>\nword word ")
	require.Contains(t, text, "word end of it\n")
	require.Contains(t, text, `Bash {"command":"grep cat 2>&1 >out"}`)
	require.Contains(t, find.Text(m.Content), "word end of it")
	require.Equal(t, "Bash", m.ToolCalls[0].Name)
	require.Empty(t, page.Cut)

	text, page, m = open("elephant")
	said := find.Text(m.Content)
	for _, answer := range []string{text, said} {
		require.Contains(t, answer, "the elephant begins\n\"line\"")
		require.Contains(t, answer, "\"line\"\nthe elephant ends")
	}
	n, err := strconv.Atoi(left.FindStringSubmatch(said)[1])
	require.NoError(t, err)
	require.Equal(t, len(strings.TrimSpace(long)), n+len(left.ReplaceAllString(strings.TrimSuffix(said, "\n"), "")))
	require.Greater(t, len(said), 10_000)
	require.Regexp(t, fmt.Sprintf(`^[89]\d{5} bytes of this record are left out: lopen session log %s --seq %d --json prints all$`, id, page.Records[0].Seq), page.Cut)
	require.Contains(t, text, page.Cut)

	text, page, m = open("giraffe")
	require.Contains(t, text, "the giraffe xyz xyz ")
	require.Contains(t, text, page.Cut)
	require.NotEmpty(t, m.ToolCalls)

	require.Contains(t, c.ask(nil, "session_log", map[string]any{"seq": 9999}), "not found")
	require.Contains(t, c.ask(nil, "session_log", map[string]any{"seq": 2, "task": "x"}), "without task")

	dir := toolProject(t)
	c = newToolClient(t, dir)
	var found searchPage
	c.ask(&found, "search", map[string]any{"query": "TestIt", "role": "failed", "limit": 1})
	page = logPage{}
	text = c.ask(&page, "session_log", map[string]any{"seq": found.Hits[0].Seq})
	require.Contains(t, text, "FAIL: TestIt")
	require.Equal(t, "FAIL: TestIt\n", page.Records[0].Attempts[0].CheckTail)
}

// keep makes a session of a module that has attempts.
func keep(t *testing.T, store *lifecycle.Store, module string, origin session.Origin, all ...record.Attempt) string {
	t.Helper()
	sess, err := store.CreateWith(t.Context(), module, func(_ session.ID, h *session.Header) { h.Origin = origin })
	require.NoError(t, err)
	for _, a := range all {
		require.NoError(t, sess.Record(a))
	}
	require.NoError(t, sess.Close(t.Context()))
	return sess.ID().String()
}
