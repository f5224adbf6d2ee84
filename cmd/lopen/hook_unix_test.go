//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/turns"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// hooked is a project with a store, and an agent that calls its hooks.
type hooked struct {
	t   *testing.T
	dir string
	env []string
}

func newHooked(t *testing.T) *hooked {
	t.Helper()
	h := &hooked{t: t, dir: t.TempDir() + "/project"}
	require.NoError(t, os.Mkdir(h.dir, 0o700))
	store, _, err := lifecycle.Init(h.dir, lifecycle.Options{})
	require.NoError(t, err)
	require.NoError(t, store.Close(t.Context()))
	h.keep()
	return h
}

// keep is what lopen init notes: a person wants sessions kept.
func (h *hooked) keep() {
	h.t.Helper()
	approvals, err := trust.Open(func(key string) string { return map[string]string{"HOME": h.dir + "/home"}[key] })
	require.NoError(h.t, err)
	require.NoError(h.t, approvals.SetHere(h.dir, (*trust.Here).Keep))
}

// start starts the hook of an event in a group of its own.
func (h *hooked) start(event, more string) (*exec.Cmd, *strings.Builder) {
	h.t.Helper()
	exe, err := os.Executable()
	require.NoError(h.t, err)
	cmd := exec.Command(exe, "hook", "claude", "--log-file", h.log(), "--log-level", "info")
	cmd.Env = append(os.Environ(), asCommand, "CLAUDE_PROJECT_DIR="+h.dir, "HOME="+h.dir+"/home", "XDG_STATE_HOME=", "GORACE="+os.Getenv("GORACE"))
	cmd.Env = append(cmd.Env, h.env...)
	cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"session_id":"0f8fad5b-d9cb","cwd":"/","hook_event_name":%q%s}`, event, more))
	out := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(h.t, cmd.Start())
	return cmd, out
}

// log is the file that the hooks log to.
func (h *hooked) log() string { return h.dir + "/../log" }

func (h *hooked) hook(event, more string) string {
	h.t.Helper()
	cmd, out := h.start(event, more)
	require.NoError(h.t, cmd.Wait(), "%s", out)
	return out.String()
}

// holds opens the session as a process does that has not ended.
func (h *hooked) holds() *lifecycle.Session {
	h.t.Helper()
	store, err := lifecycle.Open(h.dir, lifecycle.Options{})
	require.NoError(h.t, err)
	h.t.Cleanup(func() { _ = store.Close(context.Background()) })
	var sess *lifecycle.Session
	require.Eventually(h.t, func() bool {
		id, err := store.Latest("")
		if err == nil {
			sess, err = store.Open(id)
		}
		return err == nil
	}, time.Minute, time.Millisecond)
	return sess
}

// forAgent opens the session in the middle of its turn, as a hook does that has not ended.
func (h *hooked) forAgent() *lifecycle.Session {
	h.t.Helper()
	store, err := lifecycle.Open(h.dir, lifecycle.Options{For: lifecycle.HolderOf(os.Getpid(), "claude")})
	require.NoError(h.t, err)
	h.t.Cleanup(func() { _ = store.Close(context.Background()) })
	id, err := store.Latest("")
	require.NoError(h.t, err)
	var sess *lifecycle.Session
	require.Eventually(h.t, func() bool {
		sess, err = store.Open(id)
		return err == nil
	}, time.Minute, time.Millisecond)
	return sess
}

// seen waits until the session has a status.
func (h *hooked) seen(status session.Status) {
	h.t.Helper()
	store, err := lifecycle.Open(h.dir, lifecycle.Options{})
	require.NoError(h.t, err)
	defer store.Close(h.t.Context())
	require.Eventually(h.t, func() bool {
		all, err := store.List()
		if err != nil || len(all) != 1 || all[0].Status != status {
			return false
		}
		owner, err := store.Holder(all[0].ID)
		return err == nil && (status == session.StatusActive) == (owner != nil && owner.PID != 0 && owner.Command == "claude")
	}, time.Minute, 5*time.Millisecond)
}

// An agent does not wait for a store that hangs: the hook returns, and says so. The event is kept
// as soon as that is possible.
func TestAHookDoesNotWaitForTheStore(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	require.Empty(t, h.hook("UserPromptSubmit", `,"prompt":"one"`))
	require.Empty(t, h.hook("Stop", ""))
	sess := h.holds()
	h.env = []string{patience + "=1"}
	begun := time.Now()
	require.Contains(t, h.hook("UserPromptSubmit", `,"prompt":"two"`), "the files are still being kept")
	require.Less(t, time.Since(begun), 30*time.Second, "five, and more on a busy machine")
	h.env = nil
	require.Equal(t, session.StatusPaused, sess.State().Status())
	require.NoError(t, sess.Close(t.Context()))
	h.seen(session.StatusActive)
	require.Empty(t, h.hook("SessionEnd", ""))
	h.seen(session.StatusComplete)
}

// The end of a turn and of a session wait for less, and the begin of a session for nothing.
func TestNoHookWaitsForTheStore(t *testing.T) {
	t.Parallel()
	for _, event := range []string{"SessionStart", "Stop", "StopFailure", "SessionEnd"} {
		t.Run(event, func(t *testing.T) {
			t.Parallel()
			h := newHooked(t)
			require.Empty(t, h.hook("UserPromptSubmit", `,"prompt":"one"`))
			sess := h.forAgent()
			h.env = []string{patience + "=1"}
			begun := time.Now()
			require.Empty(t, h.hook(event, ""))
			require.Less(t, time.Since(begun), 30*time.Second, "two at most, and more on a busy machine")
			require.NoError(t, sess.Close(t.Context()))
			h.env = nil
			require.Empty(t, h.hook("SessionEnd", ""))
			h.seen(session.StatusComplete)
		})
	}
}

// An agent ends its hooks when it ends: by their process, their group, and what they started. What
// keeps the event is none of these.
func TestAHookThatIsKilledKeepsItsEvent(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	require.Empty(t, h.hook("UserPromptSubmit", `,"prompt":"one"`))
	require.Empty(t, h.hook("Stop", ""))
	sess := h.holds()
	cmd, out := h.start("UserPromptSubmit", `,"prompt":"two"`)
	require.Eventually(t, func() bool {
		log, err := os.ReadFile(h.log())
		return err == nil && strings.Count(string(log), "event=UserPromptSubmit") == 2
	}, time.Minute, time.Millisecond, "%s", out)
	require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL))
	require.Error(t, cmd.Wait())
	require.NoError(t, sess.Close(t.Context()))
	h.seen(session.StatusActive)
	require.Empty(t, h.hook("SessionEnd", ""))
	h.seen(session.StatusComplete)
}

// The end of a turn that waited for the session while the next turn began ends nothing.
func TestALateStopEndsNoLaterTurn(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	require.Empty(t, h.hook("UserPromptSubmit", `,"prompt":"one","prompt_id":"p1"`))
	sess := h.forAgent()
	cmd, out := h.start("Stop", `,"prompt_id":"p1"`)
	require.Eventually(t, func() bool {
		log, err := os.ReadFile(h.log())
		return err == nil && strings.Contains(string(log), "event=Stop")
	}, time.Minute, time.Millisecond, "%s", out)
	next := turns.Keeper{Sess: sess, Agent: "claude", Holder: lifecycle.HolderOf(os.Getpid(), "claude")}
	require.NoError(t, next.Begin(t.Context(), &turns.Event{Prompt: "two", PromptID: "p2", Came: time.Now()}))
	id := sess.ID()
	require.NoError(t, sess.Close(t.Context()))
	require.NoError(t, cmd.Wait())
	require.Empty(t, out.String())
	h.seen(session.StatusActive)
	require.Empty(t, h.hook("Stop", `,"prompt_id":"p2"`))
	h.seen(session.StatusPaused)
	require.Empty(t, h.hook("SessionEnd", ""))
	h.seen(session.StatusComplete)
	store, err := lifecycle.Open(h.dir, lifecycle.Options{})
	require.NoError(t, err)
	defer store.Close(t.Context())
	st, _, err := store.Read(id)
	require.NoError(t, err)
	for task, want := range map[string]session.TaskState{"prompt-1": session.TaskSkipped, "prompt-2": session.TaskComplete} {
		got, ok := st.Task(task)
		require.True(t, ok)
		require.Equal(t, want, got.State, task)
	}
}

// An event is a line. An agent may leave the input open behind it.
func TestAHookReadsALine(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	in, out, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	_, err = out.WriteString(`{"session_id":"0f8fad5b-d9cb","cwd":"/","hook_event_name":"SessionEnd"}` + "\n")
	require.NoError(t, err)
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe, "hook", "claude")
	cmd.Env = append(os.Environ(), asCommand, "CLAUDE_PROJECT_DIR="+h.dir, "HOME="+h.dir+"/home")
	cmd.Stdin = in
	said, err := cmd.CombinedOutput()
	require.NoError(t, err)
	require.Empty(t, string(said))
}

// A check of a turn whose agent is killed ends with it, and the session is free: nobody reads its outcome.
func TestACheckEndsWithItsAgent(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	require.NoError(t, os.WriteFile(h.dir+"/.lopen/config.json", []byte(`{"gate":true}`), 0o600))
	h.env = append(h.env, "LOPEN_CHECK=echo $$ >running; exec sleep 600")
	exe, err := os.Executable()
	require.NoError(t, err)
	agent := exec.Command(exe)
	agent.Dir = h.dir
	agent.Env = append(os.Environ(), asAgent, "CLAUDE_PROJECT_DIR="+h.dir, "HOME="+h.dir+"/home", "XDG_STATE_HOME=", "GORACE="+os.Getenv("GORACE"))
	agent.Env = append(agent.Env, h.env...)
	require.NoError(t, agent.Start())
	defer func() { _ = agent.Process.Kill() }()
	pid := 0
	require.Eventually(t, func() bool {
		data, err := os.ReadFile(h.dir + "/running")
		pid, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		return err == nil && pid > 0
	}, time.Minute, time.Millisecond)
	require.NoError(t, agent.Process.Kill())
	_ = agent.Wait()
	require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, time.Minute, time.Millisecond)
	h.seen(session.StatusPaused)
	require.NoError(t, h.holds().Close(t.Context())) // what killed the check has ended as well
}

// A check of a turn whose hook the agent has ended, as after Esc, ends as well: nobody reads its outcome.
func TestACheckEndsWithItsHook(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	require.NoError(t, os.WriteFile(h.dir+"/.lopen/config.json", []byte(`{"gate":true}`), 0o600))
	h.env = []string{"LOPEN_CHECK=echo $$ >running; exec sleep 600"}
	require.Empty(t, h.hook("UserPromptSubmit", `,"prompt":"one"`))
	cmd, out := h.start("Stop", "")
	pid := 0
	require.Eventually(t, func() bool {
		data, err := os.ReadFile(h.dir + "/running")
		pid, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		return err == nil && pid > 0
	}, time.Minute, time.Millisecond, "%s", out)
	require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL))
	_ = cmd.Wait()
	require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, time.Minute, time.Millisecond)
	h.seen(session.StatusPaused)
	require.NoError(t, h.holds().Close(t.Context()))
}
