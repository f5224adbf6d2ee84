//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
)

// A command waits for a hook of lopen that still has the session open after the agent's turn.
func TestCommandsWaitForAHook(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"checkpoint": {"checkpoint", "create"},
		"rewind":     {"checkpoint", "rewind", "prompt:1", "--yes"},
		"delete":     {"session", "delete", "ID", "--yes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHooked(t)
			require.Empty(t, h.hook("UserPromptSubmit", `,"prompt":"one"`))
			require.Empty(t, h.hook("Stop", ""))
			sess := h.heldBy("lopen hook claude")
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "ID", sess.ID().String())
			}
			cmd, out := h.command(args...)
			require.NoError(t, cmd.Start())
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case err := <-ended:
				t.Fatalf("it did not wait: %v: %s", err, out)
			case <-time.After(300 * time.Millisecond): // a command that starts later than that waits as well
			}
			require.NoError(t, sess.Close(t.Context()))
			require.NoError(t, <-ended, "%s", out)
		})
	}
}

// A command waits for nobody else: not for a run, and not for the turn of an agent.
func TestCommandsWaitForNobodyElse(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	require.Empty(t, h.hook("UserPromptSubmit", `,"prompt":"one"`))
	require.Empty(t, h.hook("Stop", ""))
	for _, holder := range []string{"lopen run m", "claude", "lopen"} {
		sess := h.heldBy(holder)
		cmd, out := h.command("checkpoint", "create")
		begun := time.Now()
		err := cmd.Run()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		require.Equal(t, 11, exit.ExitCode(), "%s", out)
		require.Contains(t, out.String(), "("+holder+")")
		require.Less(t, time.Since(begun), hookGrace)
		require.NoError(t, sess.Close(t.Context()))
	}
}

// heldBy opens the session as a process of a command does.
func (h *hooked) heldBy(command string) *lifecycle.Session {
	h.t.Helper()
	store, err := lifecycle.Open(h.dir, lifecycle.Options{Command: command})
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

func (h *hooked) command(args ...string) (*exec.Cmd, *strings.Builder) {
	h.t.Helper()
	exe, err := os.Executable()
	require.NoError(h.t, err)
	cmd, out := exec.CommandContext(h.t.Context(), exe, args...), &strings.Builder{}
	cmd.Dir, cmd.Stdout, cmd.Stderr = h.dir, out, out
	cmd.Env = append(os.Environ(), asCommand, "HOME="+h.dir+"/home", "GORACE="+os.Getenv("GORACE"))
	return cmd, out
}

// The wait ends as soon as the hook has ended, after its grace, and when the person has enough of it.
func TestAfterHook(t *testing.T) {
	t.Parallel()
	byHook := fmt.Errorf("open: %w", &lifecycle.BusyError{Owner: lifecycle.Owner{PID: 1, Command: "lopen hook codex"}})
	for name, tt := range map[string]struct {
		errs  []error // of the calls, the last one for all that follow
		limit time.Duration
		want  error
		takes time.Duration
	}{
		"free":        {[]error{nil}, 0, nil, 0},
		"for a while": {[]error{byHook, byHook, byHook, nil}, 0, nil, 3 * pollHeld},
		"then by a run": {[]error{byHook, &lifecycle.BusyError{Owner: lifecycle.Owner{Command: "lopen run m"}}}, 0,
			lifecycle.ErrBusy, pollHeld},
		"other errors": {[]error{lifecycle.ErrNotFound}, 0, lifecycle.ErrNotFound, 0},
		"for good":     {[]error{byHook}, 0, lifecycle.ErrBusy, hookGrace},
		"stopped":      {[]error{byHook}, time.Second, context.DeadlineExceeded, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, begun, n := t.Context(), time.Now(), 0
				if tt.limit > 0 {
					limited, cancel := context.WithTimeout(ctx, tt.limit)
					defer cancel()
					ctx = limited
				}
				err := afterHook(ctx, func() error {
					n++
					return tt.errs[min(n, len(tt.errs))-1]
				})
				require.True(t, errors.Is(err, tt.want), "%v", err)
				require.Equal(t, tt.takes, time.Since(begun))
			})
		})
	}
}
