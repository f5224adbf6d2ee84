//go:build unix

package child_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
)

// shell is a command that runs a script and keeps what it prints in out.
func shell(t *testing.T, script string, out io.Writer) child.Command {
	t.Helper()
	return child.Command{Argv: []string{"sh", "-c", script}, Dir: t.TempDir(), Env: os.Environ(), Stdout: out, Stderr: out}
}

// withKeeper is shell with a keeper.
func withKeeper(t *testing.T, script string, out io.Writer) child.Command {
	t.Helper()
	c := shell(t, script, out)
	c.Keep = true
	return c
}

// bothWays runs a test of commands without and with a keeper.
func bothWays(t *testing.T, test func(t *testing.T, shell func(*testing.T, string, io.Writer) child.Command)) {
	t.Helper()
	t.Parallel()
	t.Run("alone", func(t *testing.T) { t.Parallel(); test(t, shell) })
	t.Run("kept", func(t *testing.T) { t.Parallel(); test(t, withKeeper) })
}

func TestHowACommandEnds(t *testing.T) { bothWays(t, howACommandEnds) }

func howACommandEnds(t *testing.T, shell func(*testing.T, string, io.Writer) child.Command) {
	t.Helper()
	for name, c := range map[string]struct {
		script string
		change func(*child.Command)
		exit   int
		signal string
		cause  child.Cause
	}{
		"done":         {script: "exit 0"},
		"exit code":    {script: "exit 7", exit: 7},
		"signal":       {script: "kill -SEGV $$", exit: -1, signal: "SIGSEGV"},
		"timeout":      {script: "sleep 60", change: func(c *child.Command) { c.Timeout = 50 * time.Millisecond }, exit: -1, signal: "SIGTERM", cause: child.CauseTimeout},
		"idle":         {script: "sleep 60", change: func(c *child.Command) { c.IdleTimeout = 50 * time.Millisecond }, exit: -1, signal: "SIGTERM", cause: child.CauseIdle},
		"kept alive":   {script: "for i in 1 2 3 4 5 6; do echo $i; sleep 0.4; done", change: func(c *child.Command) { c.IdleTimeout = 2 * time.Second }},
		"ignores TERM": {script: "trap '' TERM; while :; do sleep 60; done", change: func(c *child.Command) { c.Timeout, c.Grace = 50*time.Millisecond, 50*time.Millisecond }, exit: -1, signal: "SIGKILL", cause: child.CauseTimeout},
		"stdin":        {script: `[ "$(cat)" = "" ]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := shell(t, c.script, io.Discard)
			if c.change != nil {
				c.change(&cmd)
			}
			res, err := child.Run(t.Context(), cmd)
			require.NoError(t, err)
			require.Equal(t, c.exit, res.Exit)
			require.Equal(t, c.signal, res.Signal)
			require.Equal(t, c.cause, res.Cause)
			require.False(t, res.LeftBehind)
			require.False(t, res.EndedAt.Before(res.StartedAt))
		})
	}
}

func TestCancelEndsTheWholeGroup(t *testing.T) { bothWays(t, cancelEndsTheWholeGroup) }

func cancelEndsTheWholeGroup(t *testing.T, shell func(*testing.T, string, io.Writer) child.Command) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := shell(t, `sh -c 'exec 7>alive; sleep 600' & wait`, io.Discard)
	fifo := filepath.Join(cmd.Dir, "alive")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	done := make(chan child.Result, 1)
	go func() {
		res, err := child.Run(ctx, cmd)
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	r, err := os.Open(fifo) // returns when the grandchild has it open
	require.NoError(t, err)
	cancel()
	require.Equal(t, child.CauseCanceled, (<-done).Cause)
	_, err = r.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the grandchild is gone")
}

func TestOutputComesThroughAndItsTailRemains(t *testing.T) {
	bothWays(t, outputComesThroughAndItsTailRemains)
}

func outputComesThroughAndItsTailRemains(t *testing.T, shell func(*testing.T, string, io.Writer) child.Command) {
	t.Helper()
	var n countingWriter
	res, err := child.Run(t.Context(), shell(t, `head -c 64M /dev/zero | tr '\0' x; printf END`, &n))
	require.NoError(t, err)
	require.EqualValues(t, 64<<20+3, n)
	require.Equal(t, "[the last line is longer than 16384 bytes and left out]\n", string(res.Tail))
}

// The beginning of a line may be what says that the rest is a secret.
func TestTheTailBeginsWithALine(t *testing.T) { bothWays(t, theTailBeginsWithALine) }

func theTailBeginsWithALine(t *testing.T, shell func(*testing.T, string, io.Writer) child.Command) {
	t.Helper()
	for script, want := range map[string]string{
		`printf 'password='; head -c 16k /dev/zero | tr '\0' x; echo; echo END`:  "END\n",
		`echo first; head -c 16379 /dev/zero | tr '\0' x; echo; echo END`:        strings.Repeat("x", 16379) + "\nEND\n",
		`echo first; head -c 16380 /dev/zero | tr '\0' x; echo; echo END`:        "END\n",
		`printf 'password='; head -c 100k /dev/zero | tr '\0' x; echo; echo END`: "END\n",
		`seq 100000`:       "", // below
		`printf 'no line'`: "no line",
	} {
		var n countingWriter
		res, err := child.Run(t.Context(), shell(t, script, &n))
		require.NoError(t, err)
		if script == `seq 100000` {
			require.Regexp(t, `^\d{5}\n(\d{5}\n)*100000\n$`, string(res.Tail))
			require.Greater(t, len(res.Tail), 16<<10-7)
			continue
		}
		require.Equal(t, want, string(res.Tail), script)
	}
}

type countingWriter int64

func (n *countingWriter) Write(p []byte) (int, error) {
	*n += countingWriter(len(p))
	return len(p), nil
}

func TestOutputThatNobodyTakesDoesNotStopTheCommand(t *testing.T) {
	bothWays(t, outputThatNobodyTakesDoesNotStopTheCommand)
}

func outputThatNobodyTakesDoesNotStopTheCommand(t *testing.T, shell func(*testing.T, string, io.Writer) child.Command) {
	t.Helper()
	cmd := shell(t, `head -c 1M /dev/zero | tr '\0' x; printf END`, nil)
	cmd.Stdout = failingWriter{}
	res, err := child.Run(t.Context(), cmd)
	require.NoError(t, err)
	require.Zero(t, res.Exit)
	require.Contains(t, string(res.Tail), "left out")
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("the terminal went away") }

func TestDaemonIsLeftBehind(t *testing.T) { bothWays(t, daemonIsLeftBehind) }

func daemonIsLeftBehind(t *testing.T, shell func(*testing.T, string, io.Writer) child.Command) {
	t.Helper()
	cmd := shell(t, `setsid sh -c 'echo $$ >pid; exec sleep 600' & while [ ! -s pid ]; do :; done; exit 3`, io.Discard)
	if _, err := os.Stat("/usr/bin/setsid"); err != nil {
		t.Skip("setsid is not here")
	}
	t.Cleanup(func() {
		pid, err := os.ReadFile(filepath.Join(cmd.Dir, "pid"))
		require.NoError(t, err)
		var n int
		for _, c := range strings.TrimSpace(string(pid)) {
			n = n*10 + int(c-'0')
		}
		require.NoError(t, syscall.Kill(n, syscall.SIGKILL), "the daemon was left alone")
	})
	res, err := child.Run(t.Context(), cmd)
	require.NoError(t, err)
	require.Equal(t, 3, res.Exit)
	require.True(t, res.LeftBehind)
}

func TestInheritedFileAndStart(t *testing.T) { bothWays(t, inheritedFileAndStart) }

func inheritedFileAndStart(t *testing.T, shell func(*testing.T, string, io.Writer) child.Command) {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer f.Close()
	cmd := shell(t, `echo from the command >&3`, io.Discard)
	cmd.Inherit = []*os.File{f}
	pid := 0
	cmd.Started = func(p int) { pid = p }
	_, err = child.Run(t.Context(), cmd)
	require.NoError(t, err)
	require.Positive(t, pid)
	got, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	require.Equal(t, "from the command\n", string(got))
}

func TestWhatCannotBeStarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "text"), []byte("x"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tool"), []byte("#!/bin/sh\n"), 0o700))
	env := []string{"PATH=" + dir}
	for argv0, want := range map[string]string{
		"":          "it is empty",
		"no-such":   "no-such: not found in PATH",
		"text":      "text: it is not executable",
		"./text":    "./text: it is not executable",
		"./folder":  "./folder: it is a folder",
		"./missing": "./missing: no such file or directory",
	} {
		err := child.Look([]string{argv0}, dir, env)
		require.ErrorIs(t, err, child.ErrNotStarted, argv0)
		require.ErrorContains(t, err, want)
		_, err = child.Run(t.Context(), child.Command{Argv: []string{argv0}, Dir: dir, Env: env})
		require.ErrorIs(t, err, child.ErrNotStarted, argv0)
	}
	// By another process: what a test beside starts has the files of this one open until its
	// exec, and a file that is open for writing cannot be executed.
	require.NoError(t, exec.Command("sh", "-c", `printf '#!/no/such/interpreter\n' >"$0" && chmod 700 "$0"`, filepath.Join(dir, "for-nobody")).Run())
	for _, keep := range []bool{false, true} {
		begun := func(int) { t.Error("it began") }
		_, err := child.Run(t.Context(), child.Command{Argv: []string{filepath.Join(dir, "tool")}, Dir: filepath.Join(dir, "moved"), Env: env, Keep: keep, Started: begun})
		require.ErrorIs(t, err, child.ErrNotStarted)
		require.ErrorContains(t, err, "stat "+filepath.Join(dir, "moved")+": no such file or directory", "not the tool")
		_, err = child.Run(t.Context(), child.Command{Argv: []string{"for-nobody"}, Dir: dir, Env: env, Keep: keep, Started: begun})
		require.ErrorIs(t, err, child.ErrNotStarted)
		require.EqualError(t, err, "the command cannot be started: for-nobody: fork/exec "+filepath.Join(dir, "for-nobody")+": no such file or directory")
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	for _, argv0 := range []string{"tool", "./tool", filepath.Join(dir, "tool")} {
		require.NoError(t, child.Look([]string{argv0}, dir, env), argv0)
	}
}

// TestPeakMemoryIsTheCommandsOwn has none told of a command that needs less than who
// started it has: the system counts that for the command, too.
func TestPeakMemoryIsTheCommandsOwn(t *testing.T) { bothWays(t, peakMemoryIsTheCommandsOwn) }

func peakMemoryIsTheCommandsOwn(t *testing.T, shell func(*testing.T, string, io.Writer) child.Command) {
	t.Helper()
	res, err := child.Run(t.Context(), shell(t, "exit 0", io.Discard))
	require.NoError(t, err)
	require.Zero(t, res.MaxRSS, "of a shell")
	const buffer = 256 << 20
	res, err = child.Run(t.Context(), shell(t, fmt.Sprintf("dd if=/dev/zero of=/dev/null bs=%d count=1", buffer), io.Discard))
	require.NoError(t, err)
	require.Greater(t, res.MaxRSS, int64(buffer))
	require.Less(t, res.MaxRSS, int64(buffer+buffer/2))
}

// What a caller calls activity counts in place of output.
func TestActivity(t *testing.T) {
	t.Parallel()
	cmd := shell(t, `while :; do echo noise; sleep 0.01; done`, io.Discard)
	cmd.Activity, cmd.IdleTimeout = make(chan struct{}), 100*time.Millisecond
	res, err := child.Run(t.Context(), cmd)
	require.NoError(t, err)
	require.Equal(t, child.CauseIdle, res.Cause, "output is none")

	active := make(chan struct{})
	cmd = shell(t, `sleep 0.5`, io.Discard)
	cmd.Activity, cmd.IdleTimeout = active, 250*time.Millisecond
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				select {
				case active <- struct{}{}:
				case <-done:
					return
				}
			case <-done:
				return
			}
		}
	}()
	res, err = child.Run(t.Context(), cmd)
	close(done)
	require.NoError(t, err)
	require.Equal(t, child.CauseNone, res.Cause)
}

func TestStop(t *testing.T) { bothWays(t, stop) }

func stop(t *testing.T, shell func(*testing.T, string, io.Writer) child.Command) {
	t.Helper()
	end := make(chan struct{})
	cmd := shell(t, `sleep 60`, io.Discard)
	cmd.Stop, cmd.Started = end, func(int) { close(end) }
	res, err := child.Run(t.Context(), cmd)
	require.NoError(t, err)
	require.Equal(t, child.CauseStopped, res.Cause)
	require.Equal(t, "SIGTERM", res.Signal)
}
