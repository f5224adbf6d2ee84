//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// command is lopen as a process of its own, in dir, with a user state beside it.
func command(t testing.TB, dir string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, args...)
	cmd.Dir = dir
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "LOPEN_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, asCommand, "XDG_STATE_HOME="+filepath.Join(dir, ".xdg"), "HOME="+filepath.Join(dir, ".home"))
	return cmd
}

func must(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := command(t, dir, args...).CombinedOutput()
	require.NoError(t, err, "lopen %s: %s", strings.Join(args, " "), out)
	return string(out)
}

// TestKilled kills a run with SIGKILL at random moments and starts it again
// until the plan is done, as often as -kills says. Whatever the moment: every task
// is done in the end, the plan is ticked in full, the state agrees with it, and no
// kill makes more than one task run again.
func TestKilled(t *testing.T) {
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("go test -run TestKilled ./cmd/lopen -kills %d -seed %d", *kills, s)
	rnd := rand.New(rand.NewPCG(s, 1))
	killed, repeated := 0, 0
	for round := 1; killed < *kills; round++ {
		k, r := killedRound(t, rnd, *kills-killed)
		killed, repeated = killed+k, repeated+r
		require.Less(t, round, *kills+50, "the runs end before they can be killed")
	}
	t.Logf("%d kills, %d tasks run again", killed, repeated)
}

func killedRound(t *testing.T, rnd *rand.Rand, budget int) (killed, repeated int) {
	const tasks = 12
	dir := t.TempDir()
	var list bytes.Buffer
	for i := range tasks {
		fmt.Fprintf(&list, "- [ ] task %d\n", i+1)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "TODO.md"), list.Bytes(), 0o600))
	must(t, dir, "plan", "create", "m", "--from", "TODO.md")
	// The agent notes its start, works for a moment and writes a file.
	agent := []string{"run", "m", "--check", `test -s "done-${LOPEN_TASK_ID}"`, "--",
		"sh", "-c", `echo "$LOPEN_TASK_ID" >>started; sleep 0.01; echo x >"done-$LOPEN_TASK_ID"`}
	for {
		cmd := command(t, dir, agent...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		require.NoError(t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		if killed < budget {
			timer := time.NewTimer(time.Duration(rnd.Int64N(int64(250 * time.Millisecond))))
			select {
			case <-timer.C:
				require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
			case err := <-ended:
				timer.Stop()
				require.NoError(t, err, out.String())
				return killed, checkRound(t, dir, tasks, killed)
			}
		}
		err := <-ended
		var exit *exec.ExitError
		if err == nil {
			return killed, checkRound(t, dir, tasks, killed)
		}
		require.True(t, errors.As(err, &exit) && exit.ExitCode() == -1, "killed, or done: %v\n%s", err, out.String())
		killed++
	}
}

// checkRound checks what a person finds when the runs are over and returns how
// many tasks ran again.
func checkRound(t *testing.T, dir string, tasks, killed int) int {
	t.Helper()
	started, err := os.ReadFile(filepath.Join(dir, "started"))
	require.NoError(t, err)
	runs := map[string]int{}
	total := 0
	for _, id := range strings.Fields(string(started)) {
		runs[id]++
		total++
	}
	require.Len(t, runs, tasks, "every task ran")
	require.LessOrEqual(t, total, tasks+killed, "a kill makes at most one task run again: %v", runs)

	plan, err := os.ReadFile(filepath.Join(dir, lifecycle.PlanPath("m")))
	require.NoError(t, err)
	require.Equal(t, tasks, strings.Count(string(plan), "- [x] "), "the plan is ticked in full:\n%s", plan)

	store, err := lifecycle.Open(dir, lifecycle.Options{})
	require.NoError(t, err)
	infos, err := store.List()
	require.NoError(t, err)
	complete := 0
	for _, info := range infos {
		require.NoError(t, info.Err)
		st, _, err := store.Read(info.ID)
		require.NoError(t, err)
		if st.Status() == session.StatusComplete {
			complete++
			require.Equal(t, session.Progress{Done: tasks, Total: tasks}, st.Progress())
		}
	}
	require.Equal(t, 1, complete)
	require.NoError(t, store.Close(context.Background()))
	return total - tasks
}

// TestOrphanIsEndedBeforeItsTaskRunsAgain kills the loop alone while its command
// sleeps: the next run must not work beside the old one.
func TestOrphanIsEndedBeforeItsTaskRunsAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wait    string // in place of the run's own
		printed string
		args    []string
	}{
		"resumed": {"", "5s", []string{"run", "m"}},
		"new":     {"500ms", "500ms", []string{"run", "m", "--no-resume", "--", "true"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			orphaned(t, c.wait, c.printed, c.args)
		})
	}
}

func orphaned(t *testing.T, wait, printed string, args []string) {
	if runtime.GOOS != "linux" {
		t.Skip("no /proc: which process holds a lock cannot be told, and none is ended")
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "TODO.md"), []byte("- [ ] one\n"), 0o600))
	must(t, dir, "plan", "create", "m", "--from", "TODO.md")
	fifo := filepath.Join(dir, "alive")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	// The first agent says that it runs by opening the fifo, which it holds
	// until it ends, and waits; a later one finds its mark and is done.
	agent := `if [ -e second ]; then exit 0; fi; touch second; exec 7>alive; sleep 600`
	cmd := command(t, dir, "run", "m", "--", "sh", "-c", agent)
	require.NoError(t, cmd.Start())
	r, err := os.Open(fifo) // returns when the agent has it open
	require.NoError(t, err)
	store, err := lifecycle.Open(dir, lifecycle.Options{})
	require.NoError(t, err)
	id, err := store.Resolve("m")
	require.NoError(t, err)
	require.Eventually(t, func() bool { // the group is known a moment after the agent works
		orphan, err := store.Orphan(id)
		return err == nil && orphan != nil && orphan.PGID > 0
	}, time.Minute, time.Millisecond)
	require.NoError(t, store.Close(t.Context()))
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()

	// Who holds nothing ends nothing.
	cmd = command(t, dir, "run", "m", "--no-save", "--", "true")
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Run(), &exit)
	require.Equal(t, 11, exit.ExitCode())

	// The old agent may still be writing: nothing is stored or brought back meanwhile.
	for _, args := range [][]string{{"checkpoint", "create"}, {"checkpoint", "rewind", "last", "--yes"}, {"undo", "--yes"}} {
		refused := command(t, dir, args...)
		out, err := refused.CombinedOutput()
		require.Error(t, err, "%v: %s", args, out)
		require.Equal(t, 11, refused.ProcessState.ExitCode(), "%v: %s", args, out)
		require.Contains(t, string(out), "still works on the files (process group")
	}
	log := filepath.Join(t.TempDir(), "log")
	cmd = command(t, dir, append([]string{"--log-level", "info", "--log-format", "json", "--log-file", log}, args...)...)
	cmd.Env = append(cmd.Env, shortWaits+"="+wait)
	all, err := cmd.CombinedOutput()
	out := string(all)
	require.NoError(t, err, "%s", out)
	require.Contains(t, out, "a command of an earlier run still works (process group")
	require.Contains(t, out, "waiting "+printed+" before it is ended")
	lines, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Regexp(t, `"level":"warn","session":"`+id.String()+`","process_group":\d+,"command":"sh -c .*"message":"orphan found"`, string(lines))
	require.Regexp(t, `"level":"info","session":"`+id.String()+`","process_group":.*"duration_ms":.*"message":"orphan ended"`, string(lines))
	require.Contains(t, out, "1/1 tasks done")
	n, err := r.Read(make([]byte, 1))
	require.Zero(t, n)
	require.Error(t, err, "the old agent is gone: the fifo has no writer left")
}

func TestInterruptSavesAndPrintsHowToResume(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "TODO.md"), []byte("- [ ] one\n"), 0o600))
			must(t, dir, "plan", "create", "m", "--from", "TODO.md")
			fifo := filepath.Join(dir, "alive")
			require.NoError(t, syscall.Mkfifo(fifo, 0o600))
			cmd := command(t, dir, "run", "m", "--", "sh", "-c", `exec 7>alive; sleep 600`)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			require.NoError(t, cmd.Start())
			r, err := os.Open(fifo)
			require.NoError(t, err)
			require.NoError(t, cmd.Process.Signal(sig))
			err = cmd.Wait()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, 130, exit.ExitCode(), out.String())
			require.Contains(t, out.String(), "interrupted: go on with: lopen run m")
			_, err = r.Read(make([]byte, 1))
			require.Error(t, err, "the command was ended")
			require.JSONEq(t, `["paused","interrupted",null]`,
				lastLine(must(t, dir, "session", "show", "--jq", `[.status, .exitReason, .tasks[0].attempts]`)))
		})
	}
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}
