package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"github.com/lopen-dev/lopen/writer/plain"
)

// doors are the places in the source at which something is written that does not go to a terminal as text, with the
// command whose cases walk through them. One that is not here fails the test.
var doors = map[string]string{
	"assess.go stderr.Output":                "lopen assess",
	"assess.go stdout.Output":                "lopen assess",
	"checkpoint_cat.go stdout.Content":       "lopen checkpoint cat",
	"checkpoint_diff.go stdout.Content":      "lopen checkpoint diff",
	"checkpoint_rewind_show.go w.Content":    "lopen checkpoint rewind",
	"hook.go stdout.JSON":                    "lopen hook",
	"internal/loop/event.go child.RunOn":     "lopen run", // on_event
	"internal/repo/command.go child.RunOn":   "lopen run", // git, with --commit
	"json.go stdout.Content":                 "lopen session show",
	"json.go stdout.JSON":                    "lopen session list",
	"json.go w.Content":                      "lopen session show",
	"json.go w.JSON":                         "lopen session list",
	"key.go stderr.Unwrap":                   "lopen session export", // the command that prints a key
	"log.go to.Colored":                      "lopen run",
	"log.go to.JSON":                         "lopen run",
	"mcp.go stdout.Unwrap":                   "lopen mcp",
	"plan_show.go stdout.Colored":            "lopen plan show",
	"run_dryrun.go stdout.Content":           "lopen run",
	"screen.go stderr.Unwrap":                "lopen run",
	"screen_pane.go stderr.Unwrap":           "lopen run",
	"screen_pane.go stdout.Unwrap":           "lopen run",
	"screen_pane.go stderr.Output":           "lopen work",
	"screen_pane.go stdout.Output":           "lopen work",
	"screen_pane.go to.Output":               "lopen work",
	"search.go stdout.Colored":               "lopen search",
	"section_show.go stdout.Content":         "lopen section show",
	"session_export.go stdout.Content":       "lopen session export",
	"session_output_follow.go stdout.Output": "lopen session output",
	"session_show.go stdout.Colored":         "lopen session show",
	"session_show_format.go stdout.JSON":     "lopen session show",
	"session_show_messages.go stdout.JSON":   "lopen session show",
}

// TestEveryDoorIsWalked holds doors against the source.
func TestEveryDoorIsWalked(t *testing.T) {
	t.Parallel()
	door := regexp.MustCompile(`\b(\w+\.(?:Content|Unwrap|JSON|Output|Colored)\(\)|child\.RunOn\()`)
	found := map[string]bool{}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	inner, err := filepath.Glob("internal/*/*.go")
	require.NoError(t, err)
	for _, name := range slices.Concat(files, inner) {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "internal/terminal/") {
			continue
		}
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, m := range door.FindAllString(string(source), -1) {
			if !slices.Contains([]string{"cmd.Output()", "UI.Output()", "New.Content()", "Old.Content()"}, m) { // of a command, of the run's screen, a file's
				found[name+" "+strings.TrimRight(m, "()")] = true
			}
		}
	}
	for name := range found {
		assert.NotEmpty(t, hostileCases[doors[name]], "%s has no case", name)
	}
	for name := range doors {
		require.True(t, found[name], "%s is no door any more", name)
	}
}

// github reads Markdown as its pages do.
var github = goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()

// requireDead requires that a text that may be shown as Markdown has no link, no image and no HTML, and nothing that is
// not visible.
func requireDead(t *testing.T, source string) {
	t.Helper()
	require.Equal(t, plain.Text(source), source)
	require.NoError(t, ast.Walk(github.Parse(text.NewReader([]byte(source))), func(n ast.Node, _ bool) (ast.WalkStatus, error) {
		switch n.Kind() {
		case ast.KindLink, ast.KindImage, ast.KindAutoLink, ast.KindRawHTML, ast.KindHTMLBlock:
			require.Fail(t, "alive", "%s in\n%s", n.Kind(), source)
		}
		return ast.WalkContinue, nil
	}))
}

// unfenced is a text without the fence that it may stand in.
func unfenced(s string) string {
	if marks, rest, ok := strings.Cut(s, "\n"); ok && strings.Trim(marks, "`") == "" && marks != "" {
		return strings.TrimSuffix(rest, "\n"+marks)
	}
	return s
}

// pasted is what a person may take for a command in what is printed.
var pasted = regexp.MustCompile("(?:^|[\\s(:`])((?:lopen [a-z]|git (?:-C|add|branch|checkout|commit|diff|log|merge|reset|show|stash|status|switch|worktree) |chmod |chown |rm |mv |cd |kill |sed |fuser |mkdir |sudo |psql )[^\\n]*)")

// requireQuoted requires that no command in a text, were it pasted into a shell, runs a part of what evil is: it
// stands between single quotes.
func requireQuoted(t *testing.T, out string) {
	t.Helper()
	for line := range strings.Lines(sgrSequence.ReplaceAllString(out, "")) {
		for _, m := range pasted.FindAllStringSubmatch(line, -1) {
			require.False(t, runs(m[1]), "%q", m[1])
		}
	}
}

// runs reports whether a shell would run what evil names if it was given a line, up to the end of a command in a
// sentence.
func runs(line string) bool {
	for i := 0; i < len(line); i++ {
		rest := line[i:]
		switch {
		case strings.HasPrefix(rest, "PWNED"):
			return true
		case rest[0] == '\'':
			end := strings.IndexByte(rest[1:], '\'')
			if end < 0 {
				return false // the shell waits for the rest of the word
			}
			i += end + 1
		case strings.HasPrefix(rest, `\n`), // in JSON
			strings.HasPrefix(rest, ": "), strings.HasPrefix(rest, ", "), strings.HasPrefix(rest, "; "), strings.HasPrefix(rest, " ("):
			return false
		case rest[0] == '\\':
			i++
		}
	}
	return false
}

func TestRuns(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"lopen show PWNED": true, "lopen show 'x;PWNED' \"PWNED\"": true, `lopen show 'it'\''s;PWNED'`: false, `lopen show $'a\047PWNED'`: false, `lopen show 'it's;PWNED`: true,
		"lopen show x: PWNED": false, "lopen show 'a: b' $(PWNED)": true, "git add 'x' (PWNED)": false,
	} {
		require.Equal(t, want, runs(line), line)
	}
}

// agentHook returns what an agent is told by a hook, as it would show it.
func agentHook(t *testing.T, dir, event string) []string {
	t.Helper()
	cmd := command(t, dir, "hook", "claude")
	cmd.Env = append(cmd.Env, "CLAUDE_PROJECT_DIR="+dir)
	cmd.Stdin = strings.NewReader(event)
	out, err := cmd.Output()
	require.NoError(t, err)
	if len(out) == 0 {
		return nil
	}
	var told struct{ Reason, SystemMessage string }
	require.NoError(t, json.Unmarshal(out, &told), "%s", out)
	return []string{told.Reason, told.SystemMessage}
}

// leaveByHooks are the texts that go to an agent by its hooks: the output of a check that fails, a check that was never
// approved, an event that is none.
func leaveByHooks(t *testing.T, dir string) (all []string) {
	event := func(name string) string {
		return `{"session_id":"0f8fad5b-d9cb","cwd":"/","prompt":` + quoteJSON(t, evil+forged) + `,"hook_event_name":"` + name + `"}`
	}
	must(t, dir, "init")
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".lopen", "config.json"), []byte(`{"gate":true,"check":`+quoteJSON(t, "true #"+evil)+`}`), 0o600))
	all = append(all, agentHook(t, dir, event("UserPromptSubmit"))...)
	all = append(all, agentHook(t, dir, event("Stop"))...)
	require.Contains(t, strings.Join(all, ""), "never approved here")
	require.Eventually(t, func() bool { // the turn ends behind the hook's answer
		return command(t, dir, "config", "set", "check", "sh fail.sh #"+evil).Run() == nil
	}, time.Minute, 10*time.Millisecond)
	all = append(all, agentHook(t, dir, event("UserPromptSubmit"))...)
	all = append(all, agentHook(t, dir, event("Stop"))...)
	require.Contains(t, strings.Join(all, ""), "the check failed: exit 1 (1 of 3 times)")
	all = append(all, agentHook(t, dir, `{"session_id":`+quoteJSON(t, evil)+`,`+evil)...)
	return all
}

// leaveByTools are the texts and the strings of the data that go to a client of each tool.
func leaveByTools(t *testing.T, dir string) (all []string) {
	args := map[string][]map[string]any{
		"search":        {{"query": "e*"}, {"file": hostileFile}, {"query": evil}, {"query": "x", "since": evil}},
		"session_log":   {nil, {"task": "task-one"}, {"session": "claude-one"}, {"session": "m", "seq": 5}, {"session": "edited"}, {"session": "broken"}, {"session": evil}, {"task": evil}},
		"changes_since": {{"checkpoint": "before:task-one", "session": "m", "diff": true}, {"checkpoint": "1", "path": evil}, {"checkpoint": evil}},
		"last_failure":  {nil, {"session": "m"}, {"task": evil}},
	}
	c := newToolClient(t, dir)
	tools, err := c.ListTools(t.Context(), nil)
	require.NoError(t, err)
	for _, tool := range tools.Tools {
		require.NotEmpty(t, args[tool.Name], "%s has no case", tool.Name)
		for _, a := range args[tool.Name] {
			r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool.Name, Arguments: a})
			require.NoError(t, err)
			all = append(all, r.Content[0].(*sdk.TextContent).Text)
			requireVisible(t, r.StructuredContent)
		}
	}
	return all
}

// requireVisible requires that all that a value of JSON says is visible.
func requireVisible(t *testing.T, v any) {
	t.Helper()
	switch v := v.(type) {
	case string:
		require.Equal(t, plain.Text(v), v)
	case []any:
		for _, e := range v {
			requireVisible(t, e)
		}
	case map[string]any:
		for name, e := range v {
			requireVisible(t, name)
			requireVisible(t, e)
		}
	}
}

// leaveByEvents are the texts of the events of a run.
func leaveByEvents(t *testing.T, dir string) (all []string) {
	must(t, dir, "config", "set", "on_event", "cat >>told")
	_ = command(t, dir, "run", "m", "--no-resume", "--max-iterations", "2", "--check", "sh fail.sh #"+evil, "--", "sh", "agent.sh", evil).Run()
	data, err := os.ReadFile(filepath.Join(dir, "told"))
	require.NoError(t, err)
	for line := range strings.Lines(string(data)) {
		var told map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &told))
		requireVisible(t, told)
		for _, name := range []string{"task", "name", "text", "problem"} {
			text, _ := told[name].(string)
			all = append(all, text)
		}
	}
	require.NotEmpty(t, all)
	return all
}

func leaveByReport(t *testing.T, dir string) []string {
	return []string{must(t, dir, "report", "m"), must(t, dir, "report", "--since", "2d"), must(t, dir, "session", "show", "m", "--format", "md")}
}

// TestNothingAliveLeaves takes one hostile project through each place at which its texts leave for somebody else than a
// terminal: what an agent or a program shows as Markdown has no link, no image and no HTML, and nothing that is not
// visible. Commands in it are quoted.
func TestNothingAliveLeaves(t *testing.T) {
	t.Parallel()
	oneByOne(t)
	project, root := hostileProject(t), t.TempDir()
	for name, leave := range map[string]func(*testing.T, string) []string{"hooks": leaveByHooks, "tools": leaveByTools, "events": leaveByEvents, "report": leaveByReport} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, text := range leave(t, hostileCopy(t, root, project)) {
				requireDead(t, text)
				requireQuoted(t, text)
			}
		})
	}
}
