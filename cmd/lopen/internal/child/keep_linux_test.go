package child_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/writer/process"
)

// TestCommandOfAKeeperSeesTheSame compares all that a command gets of its parent.
func TestCommandOfAKeeperSeesTheSame(t *testing.T) {
	t.Parallel()
	dir, inherited := t.TempDir(), filepath.Join(t.TempDir(), "inherited")
	require.NoError(t, os.WriteFile(inherited, nil, 0o600))
	saw := func(keep bool) string {
		f, err := os.Open(inherited)
		require.NoError(t, err)
		defer f.Close()
		in, err := os.CreateTemp(t.TempDir(), "")
		require.NoError(t, err)
		defer in.Close()
		_, err = in.WriteString("the prompt")
		require.NoError(t, err)
		_, err = in.Seek(0, io.SeekStart)
		require.NoError(t, err)
		var out, errs bytes.Buffer
		_, err = child.Run(t.Context(), child.Command{
			Argv: []string{"sh", "-c", `cat; echo; pwd; cat /proc/$$/environ | tr '\0' '\n'; tr '\0' '\n' </proc/$$/cmdline
				while read -r key rest; do case $key in Sig[PBIC]*|Shd*|Threads:|Uid:|NoNew*) echo $key $rest ;; esac; done </proc/$$/status; ulimit -n; nice; umask
				for fd in 3 4 5 6 7 8 9; do echo $fd; readlink /proc/self/fd/$fd; done
				read pid comm state ppid pgrp rest </proc/$$/stat; [ $pgrp = $$ ] && echo leads; echo to stderr >&2`, "a b", ""},
			Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH"), "A=1", "B=", "A=2"}, Stdin: in, Stdout: &out, Stderr: &errs, Inherit: []*os.File{f, f}, Keep: keep,
		})
		require.NoError(t, err)
		require.Equal(t, "to stderr\n", errs.String())
		return out.String()
	}
	want := saw(false)
	require.Contains(t, want, "leads")
	require.Contains(t, want, "the prompt")
	require.Equal(t, want, saw(true))
}

// A killed loop is a process of its own, whose command writes its PID to the file pid.
type killed struct {
	*exec.Cmd
	t   *testing.T
	out bytes.Buffer
}

func begin(t *testing.T, script string) *killed {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	k := &killed{Cmd: exec.Command(self), t: t}
	k.Dir = t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(k.Dir, "go"), 0o600))
	k.Env = append(os.Environ(), scriptEnv+"="+script)
	k.Stdout, k.Stderr = &k.out, &k.out
	require.NoError(t, k.Start())
	t.Cleanup(func() {
		for _, name := range []string{"pid", "daemon"} {
			if data, err := os.ReadFile(filepath.Join(k.Dir, name)); err == nil {
				pid, _ := strconv.Atoi(strings.TrimSpace(string(data)))
				_ = syscall.Kill(-max(pid, 2), syscall.SIGKILL)
			}
		}
	})
	return k
}

// pid is what a command wrote to a file.
func (k *killed) pid(name string) (pid int) {
	k.t.Helper()
	require.Eventually(k.t, func() bool {
		data, _ := os.ReadFile(filepath.Join(k.Dir, name))
		text, whole := strings.CutSuffix(string(data), "\n")
		pid, _ = strconv.Atoi(text)
		return whole
	}, 20*time.Second, time.Millisecond)
	return pid
}

// ends sends a signal to the loop and returns its exit code and what it printed.
func (k *killed) ends(s syscall.Signal) (int, string) {
	k.t.Helper()
	require.NoError(k.t, k.Process.Signal(s))
	_ = k.Wait()
	return k.ProcessState.ExitCode(), k.out.String()
}

// noted is how the command ended, as the next holder of the session sees it.
func (k *killed) noted() *process.Ended {
	k.t.Helper()
	store, err := lifecycle.Open(k.Dir, lifecycle.Options{})
	require.NoError(k.t, err)
	defer func() { require.NoError(k.t, store.Close(context.Background())) }()
	infos, err := store.List()
	require.NoError(k.t, err)
	require.Eventually(k.t, func() bool {
		o, err := store.Abandoned(infos[0].ID)
		require.NoError(k.t, err)
		return o == nil
	}, 20*time.Second, time.Millisecond)
	sess, err := store.Open(infos[0].ID)
	require.NoError(k.t, err)
	e, err := sess.CommandEnded()
	require.NoError(k.t, err)
	require.NoError(k.t, sess.Close(context.Background()))
	return e
}

// A command outlives its loop: it prints more than a pipe holds, and how it ended is noted.
func TestCommandOutlivesItsLoop(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]process.Ended{0: {Iteration: 1, Success: true}, 7: {Iteration: 1, Exit: 7}} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			t.Parallel()
			k := begin(t, fmt.Sprintf(`echo $$ >pid; read line <go; head -c 1M /dev/zero && head -c 1M /dev/zero >&2 && echo >written; exit %d`, code))
			pgid := k.pid("pid")
			code, _ := k.ends(syscall.SIGKILL)
			require.Equal(t, -1, code)
			require.True(t, process.GroupLives(pgid))
			require.NoError(t, os.WriteFile(filepath.Join(k.Dir, "go"), []byte("go\n"), 0o600))
			require.Equal(t, &want, k.noted())
			require.FileExists(t, filepath.Join(k.Dir, "written"))
		})
	}
}

// No process of the command is left when all is ended, and those of others are.
func TestKillAll(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("setsid is not here")
	}
	for _, note := range []string{"", ": is recorded late; "} {
		t.Run(note, func(t *testing.T) {
			t.Parallel()
			k := begin(t, note+`trap '' TERM; setsid sh -c 'trap "" TERM; echo $$ >daemon; while :; do sleep 60; done' & until [ -s daemon ]; do :; done; echo $$ >pid; while :; do sleep 60; done`)
			pgid, daemon := k.pid("pid"), k.pid("daemon")
			code, out := k.ends(syscall.SIGINT)
			require.Equal(t, 130, code)
			require.Equal(t, "1 []\n", out)
			require.False(t, process.GroupLives(pgid))
			require.Eventually(t, func() bool { return !process.GroupLives(daemon) }, 20*time.Second, time.Millisecond) // it has closed the lock, and ends
			require.Equal(t, &process.Ended{Iteration: 1, Exit: -1, Signal: "SIGKILL"}, k.noted())
		})
	}
}

// A panic in any goroutine ends the command.
func TestPanicEndsTheCommand(t *testing.T) {
	t.Parallel()
	k := begin(t, `trap '' TERM; echo $$ >pid; while :; do sleep 60; done`)
	pgid := k.pid("pid")
	code, out := k.ends(syscall.SIGHUP)
	require.Equal(t, 2, code)
	require.Contains(t, out, "panic: of a test")
	require.Eventually(t, func() bool { return !process.GroupLives(pgid) }, 20*time.Second, time.Millisecond)
	require.Equal(t, &process.Ended{Iteration: 1, Exit: -1, Signal: "SIGKILL"}, k.noted())
}

// One where the command is run ends it before the process ends.
func TestPanicOfRun(t *testing.T) {
	t.Parallel()
	k := begin(t, `: panics when it has begun; echo $$ >pid; while :; do sleep 60; done`)
	_ = k.Wait()
	require.Equal(t, 2, k.ProcessState.ExitCode())
	require.Contains(t, k.out.String(), "panic: of a test")
	if data, err := os.ReadFile(filepath.Join(k.Dir, "pid")); err == nil && len(data) > 0 {
		require.False(t, process.GroupLives(k.pid("pid")))
	}
}

// untilBegun has a script wait until Run knows of it, which the file of begun says: its
// keeper has nothing more to say then.
const untilBegun = `until [ -e begun ]; do :; done; `

func begun(t *testing.T, dir string) func(int) {
	t.Helper()
	return func(int) { require.NoError(t, os.WriteFile(filepath.Join(dir, "begun"), nil, 0o600)) }
}

// A command that kills its keeper is ended, and has failed.
func TestCommandKillsItsKeeper(t *testing.T) {
	t.Parallel()
	c := withKeeper(t, `trap '' TERM; echo $$ >pid; `+untilBegun+`kill -9 $PPID; while :; do sleep 60; done`, io.Discard)
	c.Started = begun(t, c.Dir)
	res, err := child.Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, -1, res.Exit)
	require.Equal(t, "SIGKILL", res.Signal)
	require.Equal(t, child.CauseNone, res.Cause)
	k := &killed{Cmd: &exec.Cmd{Dir: c.Dir}, t: t}
	require.Eventually(t, func() bool { return !process.GroupLives(k.pid("pid")) }, 20*time.Second, time.Millisecond)
}

// Signals that are meant for the command do not end its keeper.
func TestKeeperStays(t *testing.T) {
	t.Parallel()
	res, err := child.Run(t.Context(), withKeeper(t, `for s in TERM INT HUP QUIT; do kill -$s $PPID; done; exit 4`, io.Discard))
	require.NoError(t, err)
	require.Equal(t, 4, res.Exit)
}

// What opens the terminal is told at once that there is none.
func TestNoTerminal(t *testing.T) { bothWays(t, noTerminal) }

func noTerminal(t *testing.T, shell func(*testing.T, string, io.Writer) child.Command) {
	t.Helper()
	var out bytes.Buffer
	res, err := child.Run(t.Context(), shell(t, `read -r line </dev/tty`, &out))
	require.NoError(t, err)
	require.NotZero(t, res.Exit)
	require.Contains(t, out.String(), "No such device or address", "ENXIO")
}

// Ctrl-Z stops the command as well.
func TestStopAndContinue(t *testing.T) { //nolint:paralleltest // it stops all commands of this process
	state := func(pid int) string {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		require.NoError(t, err)
		return strings.Fields(string(data))[2]
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// It is no shell that waits in vfork for what was stopped: that is not seen as stopped.
	c, began := withKeeper(t, `sleep 60 & exec sleep 60`, io.Discard), make(chan int, 1)
	c.Started = func(pid int) { began <- pid }
	done := make(chan child.Result, 1)
	go func() {
		res, err := child.Run(ctx, c)
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	pid := <-began
	child.WhileStopped(func() {
		require.Eventually(t, func() bool { return state(pid) == "T" }, 20*time.Second, time.Millisecond)
		require.Empty(t, done)
	})
	require.Eventually(t, func() bool { return state(pid) != "T" }, 20*time.Second, time.Millisecond)
	cancel()
	res := <-done
	require.Equal(t, child.CauseCanceled, res.Cause)
	require.Equal(t, "SIGTERM", res.Signal)
}

// What is noted of an earlier start is forgotten before the next one, also where nobody
// saw the next one's end.
func TestAnEarlierEndIsForgotten(t *testing.T) {
	t.Parallel()
	store, _, err := lifecycle.Init(t.TempDir(), lifecycle.Options{})
	require.NoError(t, err)
	defer store.Close(context.Background())
	sess, err := store.Create(t.Context(), "m")
	require.NoError(t, err)
	defer sess.Close(context.Background())
	ended := func(script string) *process.Ended {
		lock, err := sess.HoldChild()
		require.NoError(t, err)
		defer lock.Release()
		c := withKeeper(t, script, io.Discard)
		c.Lock, c.Iteration, c.Started = lock, 1, begun(t, c.Dir)
		_, err = child.Run(t.Context(), c)
		require.NoError(t, err)
		e, err := sess.CommandEnded()
		require.NoError(t, err)
		return e
	}
	require.Equal(t, &process.Ended{Iteration: 1, Success: true}, ended("exit 0"))
	require.Nil(t, ended(untilBegun+"kill -9 $PPID; exit 1"))
}
