package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOutputLeavesRoomForTheState prints more than a disk holds: the output of those attempts
// ends early, which is printed once, and the run neither fails nor pauses.
func TestOutputLeavesRoomForTheState(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("mounting a tmpfs takes root")
	}
	dir, outside := t.TempDir(), t.TempDir()
	require.NoError(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=24m"))
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	require.NoError(t, os.WriteFile(filepath.Join(dir, "TODO.md"), []byte("- [ ] one\n- [ ] two\n"), 0o600))
	must(t, dir, "plan", "create", "m", "--from", "TODO.md")
	run := func(dir string, args ...string) string {
		cmd := command(t, dir, args...)
		cmd.Env = append(cmd.Env, "TMPDIR="+outside)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		require.NoError(t, cmd.Run(), stderr.String())
		return stderr.String()
	}
	printed := run(dir, "run", "m", "--pause-timeout", "1s", "--", "sh", "-c", `echo begin; yes "a line of the output" | head -c 41943040; echo end`)
	require.Equal(t, 1, strings.Count(printed, "the output of this attempt is not kept: keep output: "), printed)
	require.Contains(t, printed, "are for the state")
	require.NotContains(t, printed, "paused")
	require.Contains(t, printed, "2/2 tasks done")
	shown := must(t, dir, "session", "output", "one")
	require.Contains(t, shown, "begin\n")
	require.NotContains(t, shown, "end\n")
	require.JSONEq(t, `["complete",2]`, lastLine(must(t, dir, "session", "show", "--jq", `[.status, .progress.done]`)))
}

// TestMuchOutput keeps begin and end of what an attempt prints.
func TestMuchOutput(t *testing.T) {
	t.Parallel()
	oneByOne(t)
	const bytes = 40 << 20
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "TODO.md"), []byte("- [ ] one\n"), 0o600))
	must(t, dir, "plan", "create", "m", "--from", "TODO.md")
	cmd := command(t, dir, "run", "m", "--transcript", "--", "sh", "-c", fmt.Sprintf(`echo begin; yes "a line of the output" | head -c %d; echo end`, bytes))
	require.NoError(t, cmd.Run())
	for _, flags := range [][]string{nil, {"--raw"}} {
		cmd := command(t, dir, append([]string{"session", "output"}, flags...)...)
		out, err := cmd.Output()
		require.NoError(t, err)
		shown := string(out)
		require.Less(t, len(shown), 16<<20+100)
		require.Greater(t, len(shown), 12<<20)
		require.True(t, strings.HasPrefix(shown, "begin\n"))
		require.True(t, strings.HasSuffix(shown, "end\n"))
		_, rest, ok := strings.Cut(shown, "\n[")
		require.True(t, ok)
		var missing int
		_, err = fmt.Sscanf(rest, "%d bytes are left out here]", &missing)
		require.NoError(t, err)
		marker := fmt.Sprintf("[%d bytes are left out here]\n", missing)
		require.Equal(t, len("begin\n")+bytes+len("end\n"), len(shown)-len(marker)+missing)
	}
	var kept int64
	for _, f := range []string{"000001.log*", "000001.raw*"} {
		all, err := filepath.Glob(filepath.Join(dir, sessionFolder(t, dir, "m"), "output", f))
		require.NoError(t, err)
		for _, name := range all {
			info, err := os.Stat(name)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode())
			kept += info.Size()
		}
	}
	require.LessOrEqual(t, kept, int64(32<<20))
}
