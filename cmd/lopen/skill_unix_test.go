//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/plugin"
)

// TestSkill runs each command line of the skill, as an agent would type it in a turn that hooks keep, in a project
// in which a run's task failed.
func TestSkill(t *testing.T) {
	t.Parallel()
	dir, bin := t.TempDir(), t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(bin, "lopen")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "TODO.md"), []byte("- [ ] one\n"), 0o600))
	must(t, dir, "plan", "create", "m", "--from", "TODO.md")
	_ = command(t, dir, "run", "m", "--keep-failed", "--unattended", "--check", "echo no; exit 3", "--", "sh", "-c", "echo words that were said | tee -a file").Run()
	id := strings.TrimSpace(must(t, dir, "session", "list", "--jq", ".[0].id"))
	turn := &hooked{t: t, dir: dir}
	require.Empty(t, turn.hook("UserPromptSubmit", `,"prompt":"What went wrong?"`))
	require.NotEqual(t, id, strings.TrimSpace(must(t, dir, "session", "show", "--jq", ".id")), "the newest session is the agent's own")

	n := 0
	for line := range strings.Lines(must(t, dir, "help", "skill")) {
		line, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "    lopen ")
		if !is {
			continue
		}
		n++
		line = "lopen " + strings.NewReplacer("TASK", "one", " ID", " "+id, "PATH", "file").Replace(line)
		cmd := command(t, dir)
		cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", line}
		cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := cmd.Output()
		require.NoError(t, err, "%s: %s", line, out)
		if strings.Contains(line, "--json") {
			for one := range strings.Lines(string(out)) {
				require.True(t, json.Valid([]byte(one)), "%s: %s", line, one)
			}
			require.NotContains(t, []string{"[]\n", "{}\n", "null\n", ""}, string(out), line)
			require.NotContains(t, string(out), ":null", line) // a field that there is not
		}
	}
	require.Greater(t, n, 12)
	name, _, _ := strings.Cut(strings.TrimPrefix(plugin.Skill, "---\nname: "), "\n")
	require.Equal(t, "lopen", name)
}
