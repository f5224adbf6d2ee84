package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPluginTakes prints how long the agent waits for each hook in a project of 5,000 files, by the real
// command: make agents. The limits are wide, since others may work on the machine.
func TestPluginTakes(t *testing.T) {
	if *realAgents == "" {
		t.Skip("measures: make agents, or -agents DIR")
	}
	dir, home := t.TempDir(), t.TempDir()
	bin := filepath.Join(home, "lopen")
	out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for i := range 5000 {
		name := filepath.Join(dir, "d"+strconv.Itoa(i/100), "f"+strconv.Itoa(i))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, bytes.Repeat([]byte("a line of file "+strconv.Itoa(i)+"\n"), 50), 0o600))
	}
	timed := func(stdin string, args ...string) time.Duration {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "CLAUDE_PROJECT_DIR=" + dir}
		cmd.Stdin = bytes.NewBufferString(stdin)
		begun := time.Now()
		out, err := cmd.CombinedOutput()
		took := time.Since(begun)
		require.NoError(t, err, "%s", out)
		return took
	}
	event := func(name string) time.Duration {
		return timed(fmt.Sprintf(`{"session_id":"a","transcript_path":"/nonexistent","cwd":%q,"hook_event_name":%q,"prompt":"do it"}`, dir, name), "/bin/sh", "-c", "'"+bin+"' hook claude || exit 1")
	}
	timed("", "git", "init", "-q")
	timed("", bin, "init")
	t.Logf("the first prompt, which reads all files: %v", event("UserPromptSubmit").Round(time.Millisecond))
	event("Stop")
	took := map[string][]time.Duration{}
	for i := range 30 {
		took["version"] = append(took["version"], timed("", bin, "version"))
		took["git status"] = append(took["git status"], timed("", "git", "status", "--porcelain"))
		took["SessionStart"] = append(took["SessionStart"], event("SessionStart"))
		took["UserPromptSubmit"] = append(took["UserPromptSubmit"], event("UserPromptSubmit"))
		for k := range 5 {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "d"+strconv.Itoa(k), "new"+strconv.Itoa(i)), []byte("new\n"), 0o600))
		}
		took["Stop"] = append(took["Stop"], event("Stop"))
		took["SessionEnd"] = append(took["SessionEnd"], event("SessionEnd"))
	}
	for _, name := range []string{"version", "git status", "SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"} {
		all := took[name]
		slices.Sort(all)
		t.Logf("%-16s median %4d ms, at most %4d ms", name, all[len(all)/2].Milliseconds(), all[len(all)-1].Milliseconds())
		require.Less(t, all[len(all)/2], time.Second, name)
		require.Less(t, all[len(all)-1], 2500*time.Millisecond, name)
	}
}
