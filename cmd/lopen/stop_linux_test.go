package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/process"
)

// A stopped run is one whose command works until somebody ends the run.
type stoppedRun struct {
	*exec.Cmd
	t   *testing.T
	out bytes.Buffer
}

// working starts a run of one task. Its command, or its check, writes the PIDs of its
// processes to files, the one called pid last.
func working(t *testing.T, args ...string) *stoppedRun {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "TODO.md"), []byte("- [ ] one\n"), 0o600))
	must(t, dir, "plan", "create", "m", "--from", "TODO.md")
	r := &stoppedRun{Cmd: command(t, dir, append([]string{"run", "m"}, args...)...), t: t}
	r.Stdout, r.Stderr = &r.out, &r.out
	require.NoError(t, r.Start())
	return r
}

// pid waits for what a process of the command wrote to a file.
func (r *stoppedRun) pid(name string) (pid int) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		data, _ := os.ReadFile(filepath.Join(r.Dir, name))
		text, whole := strings.CutSuffix(string(data), "\n")
		pid, _ = strconv.Atoi(text)
		return whole
	}, 20*time.Second, time.Millisecond)
	r.t.Cleanup(func() { _ = syscall.Kill(-pid, syscall.SIGKILL) })
	return pid
}

const (
	ignoresTerm = `trap '' TERM; echo $$ >pid; while :; do sleep 60; done`
	endsAtOnce  = `echo $$ >pid; exec sleep 60`
	otherGroups = `setsid sh -c 'trap "" TERM; echo $$ >daemon; while :; do sleep 60; done' & until [ -s daemon ]; do :; done; ` + endsAtOnce
)

// Whatever the command does against it, none of its processes is left when lopen has
// returned, and the session can be resumed.
func TestStopMeansStop(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("setsid is not here")
	}
	for name, c := range map[string]struct {
		args   []string
		daemon bool
		twice  bool
	}{
		"ignores SIGTERM":                  {args: []string{"--", "sh", "-c", ignoresTerm}, twice: true},
		"ends at once":                     {args: []string{"--", "sh", "-c", endsAtOnce}, twice: true},
		"children in other groups":         {args: []string{"--", "sh", "-c", otherGroups}, daemon: true, twice: true},
		"children in other groups, Ctrl-C": {args: []string{"--", "sh", "-c", otherGroups}, daemon: true},
		"a check":                          {args: []string{"--check", `[ -e ran ] || exit 1; ` + ignoresTerm, "--", "touch", "ran"}, twice: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := working(t, c.args...)
			pids := []int{r.pid("pid")}
			if c.daemon {
				pids = append(pids, r.pid("daemon"))
			}
			require.NoError(t, r.Process.Signal(syscall.SIGTERM))
			if c.twice {
				// Like timeout(1), which signals the process and then its group; but the
				// system makes one signal of two equal ones that come at once.
				require.NoError(t, r.Process.Signal(syscall.SIGINT))
			}
			_ = r.Wait()
			require.False(t, process.GroupLives(pids[0]))
			for _, pid := range pids { // a process that ends has closed the lock before it is gone
				require.Eventually(t, func() bool { return !process.GroupLives(pid) }, 20*time.Second, time.Millisecond)
			}
			require.Equal(t, 130, r.ProcessState.ExitCode(), r.out.String())
			require.Contains(t, r.out.String(), "interrupted")
			require.Equal(t, "paused interrupted\n", must(t, r.Dir, "session", "show", "--jq", `"\(.status) \(.exitReason)"`))
			must(t, r.Dir, "run", "m", "--check", "true", "--", "true")
		})
	}
}

// A panic of lopen ends the command, which is said.
func TestPanicEndsTheCommand(t *testing.T) {
	t.Parallel()
	r := working(t, "--", "sh", "-c", ignoresTerm)
	pid := r.pid("pid")
	require.NoError(t, r.Process.Signal(syscall.SIGUSR1))
	_ = r.Wait()
	require.Equal(t, 2, r.ProcessState.ExitCode())
	require.Contains(t, r.out.String(), "panic: of a test")
	require.Eventually(t, func() bool { return !process.GroupLives(pid) }, 20*time.Second, time.Millisecond)
	must(t, r.Dir, "run", "m", "--", "true")
}

// Ctrl-Z stops the run and its command, and fg continues both.
func TestCtrlZ(t *testing.T) {
	t.Parallel()
	r := working(t, "--", "sh", "-c", `echo $$ >pid; until [ -e go ]; do :; done`)
	pid := r.pid("pid")
	stopped := func(pid int) bool {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		require.NoError(t, err)
		_, rest, _ := strings.Cut(string(data), ") ")
		return strings.HasPrefix(rest, "T")
	}
	require.NoError(t, r.Process.Signal(syscall.SIGTSTP))
	require.Eventually(t, func() bool { return stopped(r.Process.Pid) && stopped(pid) }, 20*time.Second, time.Millisecond)
	require.NoError(t, os.WriteFile(filepath.Join(r.Dir, "go"), nil, 0o600))
	require.NoError(t, r.Process.Signal(syscall.SIGCONT))
	require.NoError(t, r.Wait(), r.out.String())
}

// A run that is killed while its check works knows of the agent's success.
func TestTheAgentsEndIsKnownAfterAKill(t *testing.T) {
	t.Parallel()
	r := working(t, "--check", `[ -e ran ] || exit 1; `+ignoresTerm, "--", "touch", "ran")
	pid := r.pid("pid")
	require.NoError(t, r.Process.Kill())
	_ = r.Wait()
	require.NoError(t, syscall.Kill(-pid, syscall.SIGKILL))
	id := strings.TrimSpace(must(t, r.Dir, "session", "list", "--jq", ".[0].id"))
	data, err := os.ReadFile(filepath.Join(r.Dir, ".lopen/sessions", id, ".child"))
	require.NoError(t, err)
	require.Contains(t, string(data[4096:]), `{"iteration":1,"exit":0,"success":true`)
}
