package main

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFullDiskPausesAndResumes fills a real file system while the loop runs: it
// pauses, names path and error, and goes on by itself when space is back.
func TestFullDiskPausesAndResumes(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("mounting a tmpfs takes root")
	}
	dir, outside := t.TempDir(), t.TempDir()
	require.NoError(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"))
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	require.NoError(t, os.WriteFile(filepath.Join(dir, "TODO.md"), []byte("- [ ] one\n- [ ] two\n"), 0o600))
	must(t, dir, "plan", "create", "m", "--from", "TODO.md")

	cmd := command(t, dir, "run", "m", "--", "sh", "-c",
		`[ "$LOPEN_TASK" = two ] || { cat /dev/zero >fill 2>/dev/null; true; }`)
	cmd.Env = append(cmd.Env, "TMPDIR="+outside)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var all bytes.Buffer
	lines := bufio.NewScanner(stderr)
	paused := false
	for lines.Scan() {
		all.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "warning: paused, nothing can be saved") {
			paused = true
			require.Contains(t, lines.Text(), "no space left on device")
			require.Contains(t, lines.Text(), filepath.Join(dir, ".lopen")+"/", "the session or the plan: who comes first")
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "fill"))) // said once for the plan and once for the session
		}
	}
	require.NoError(t, cmd.Wait(), all.String())
	require.True(t, paused, all.String())
	require.Contains(t, all.String(), "saved again after")
	require.NotContains(t, all.String(), " ERR ", "it is said once, in the run's words")
	require.NotContains(t, all.String(), " WRN the disk")
	require.Contains(t, all.String(), "2/2 tasks done")
	require.JSONEq(t, `["complete",2]`, lastLine(must(t, dir, "session", "show", "--jq", `[.status, .progress.done]`)))
}

// TestFullDiskEndsARunThatMayNotWait gives a run no time for space to come back.
func TestFullDiskEndsARunThatMayNotWait(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("mounting a tmpfs takes root")
	}
	dir, outside := t.TempDir(), t.TempDir()
	require.NoError(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"))
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	require.NoError(t, os.WriteFile(filepath.Join(dir, "TODO.md"), []byte("- [ ] one\n"), 0o600))
	must(t, dir, "plan", "create", "m", "--from", "TODO.md")
	cmd := command(t, dir, "run", "m", "--log-level", "warn", "--pause-timeout", "1500ms", "--", "sh", "-c", `cat /dev/zero >fill 2>/dev/null; true`)
	cmd.Env = append(cmd.Env, "TMPDIR="+outside)
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 14, cmd.ProcessState.ExitCode(), string(out))
	require.Contains(t, string(out), "the newest state is not on the disk")
	require.Equal(t, 1, strings.Count(string(out), "the disk is nearly full"), "each try says it once more:\n%s", out)

	require.NoError(t, os.Remove(filepath.Join(dir, "fill")))
	require.Contains(t, must(t, dir, "run", "m", "--", "true"), "1/1 tasks done")
}

// TestFullDiskFailsEveryCommandAlike lets each command that writes meet a full disk,
// and then one that is mounted read-only: the exit code says that it was the disk,
// the message which file and what the system said. What reads still works.
func TestFullDiskFailsEveryCommandAlike(t *testing.T) {
	t.Parallel()
	oneByOne(t)
	if os.Getuid() != 0 {
		t.Skip("mounting a tmpfs takes root")
	}
	dir := t.TempDir()
	require.NoError(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=3m"))
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	require.NoError(t, os.WriteFile(filepath.Join(dir, "TODO.md"), []byte("- [ ] one\n- [ ] two\n"), 0o600))
	must(t, dir, "plan", "create", "m", "--from", "TODO.md")
	cmd := command(t, dir, "run", "m", "--max-iterations", "1", "--", "sh", "-c", "echo a >a.txt")
	require.Error(t, cmd.Run())
	require.Equal(t, 2, cmd.ProcessState.ExitCode())

	each := func(cause, hint string) {
		for _, args := range []string{
			"checkpoint create", "checkpoint rewind before:one --yes", "undo --yes", "session rename m other", "session pin m", "session fork m",
			"session pause m", "session recover m --yes", "plan tick m two", "config set unattended true", "files record", "run m -- true",
		} {
			cmd := command(t, dir, strings.Fields(args)...)
			out, err := cmd.CombinedOutput()
			require.Error(t, err)
			require.Equal(t, 14, cmd.ProcessState.ExitCode(), "%s: %s", args, out)
			require.Contains(t, string(out), filepath.Join(dir, ".lopen")+"/", args)
			require.Contains(t, string(out), cause, args)
			require.Contains(t, string(out), hint, args)
			require.NotContains(t, string(out), "pause it first", args)
		}
		for _, args := range []string{"session list", "session show m", "checkpoint list", "checkpoint diff 1 2", "session verify m"} {
			must(t, dir, strings.Fields(args)...)
		}
	}
	require.NoError(t, os.RemoveAll(filepath.Join(dir, ".lopen", "ballast"))) // a disk this small may have none
	fill, err := os.Create(filepath.Join(dir, "fill"))
	require.NoError(t, err)
	for buf := make([]byte, 4<<10); err == nil; {
		_, err = fill.Write(buf)
	}
	require.NoError(t, fill.Close())
	each("no space left on device", "free space on this disk")
	require.NotContains(t, must(t, dir, "session", "recover", "m", "--dry-run"), "cannot be told", "whether the old command lives takes no space")

	require.NoError(t, os.Remove(fill.Name()))
	require.NoError(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "size=3m"))
	each("read-only file system", "make the folder writable again")
}
