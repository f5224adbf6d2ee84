//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRecordedHooks replays what the real agents gave to their hooks, with the events that are not ours.
func TestRecordedHooks(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"claude/interactive": "done done done interrupted failed interrupted", // one was stopped by Esc, and the last one by the end
		"claude/forked":      "done",                                          // the start names the session that it was forked from
		"claude/overloaded":  "failed",
		"claude/blocked":     "done", // another hook sent it back
		"claude/subagent":    "done",
		"codex/plain":        "done",
		"codex/failed":       "interrupted", // there is no event for errors
		"codex/interrupted":  "interrupted", // the daemon lives on: no end of the session
		"codex/blocked":      "done",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			must(t, dir, "init")
			data, err := os.ReadFile(filepath.Join("testdata", "hooks", name+".jsonl"))
			require.NoError(t, err)
			for line := range strings.Lines(strings.ReplaceAll(string(data), "PROJECT", dir)) {
				cmd := command(t, dir, "hook", strings.Split(name, "/")[0])
				cmd.Env = append(cmd.Env, "CLAUDE_PROJECT_DIR="+dir) // the folder of an event follows cd
				cmd.Stdin = strings.NewReader(line)
				out, err := cmd.CombinedOutput()
				require.NoError(t, err)
				require.Empty(t, string(out))
			}
			require.Eventually(t, func() bool {
				out := must(t, dir, "session", "list", "--jq", `[.[].status]`)
				return lastLine(out) == `["complete"]` || name == "codex/interrupted" && lastLine(out) == `["paused"]`
			}, 20*time.Second, 20*time.Millisecond)
			require.Equal(t, want, lastLine(must(t, dir, "session", "log", "--task", "", "--jq", `[.[].then] | join(" ")`)))
		})
	}
}

// TestAHookThatIsDenied: nobody may read the store; the agent goes on, and the person is told.
func TestAHookThatIsDenied(t *testing.T) {
	t.Parallel()
	dir, lopen, process := asNobody(t)
	lopen(0, "init")
	store := filepath.Join(dir, ".lopen")
	require.NoError(t, os.Chmod(store, 0))
	t.Cleanup(func() { require.NoError(t, os.Chmod(store, 0o700)) })
	for _, event := range []string{"UserPromptSubmit", "Stop", "SessionEnd"} {
		cmd := process("hook", "claude")
		cmd.Stdin = strings.NewReader(`{"session_id":"a","cwd":"` + dir + `","hook_event_name":"` + event + `","prompt":"x"}`)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Regexp(t, `^\{"systemMessage":"lopen: .*permission denied.*"\}\n$`, string(out))
	}
}
