package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// TestExitOfEachClass requires a decision for each class of storage error: with what a command
// exits, and whether it says what to do. Of the others the message says it.
func TestExitOfEachClass(t *testing.T) {
	t.Parallel()
	exits := map[string]struct {
		code int
		hint bool
	}{
		"unknown":        {loop.ExitFailed, false},
		"invalid":        {loop.ExitFailed, false},
		"busy":           {loop.ExitBusy, false},
		"transient":      {loop.ExitFailed, false},
		"no-space":       {loop.ExitStorage, true},
		"denied":         {loop.ExitStorage, true},
		"device":         {loop.ExitStorage, true},
		"corrupt":        {exitCorrupt, false},
		"future-version": {loop.ExitFailed, false},
		"fenced":         {loop.ExitFailed, false},
		"removed":        {loop.ExitFailed, false},
	}
	for c := lifecycle.Class(0); !strings.HasPrefix(c.String(), "class "); c++ {
		want, ok := exits[c.String()]
		require.True(t, ok, "decide in exit.go about %s", c)
		err := fmt.Errorf("save: %w", &lifecycle.Error{Op: "replace", Path: "/x", Class: c, Err: io.ErrShortWrite})
		require.Equal(t, want.code, exitCode(err), "%s", c)
		if want.hint {
			require.Equal(t, "  "+c.Hint()+"\n", hint(err))
		} else {
			require.Empty(t, hint(err), "%s", c)
		}
		delete(exits, c.String())
	}
	require.Empty(t, exits, "no class")
}

// What to do about a session that is held depends on who holds it. Nobody is told to end an agent's
// process, which may be one that all projects share, or the one that the advice is given to.
func TestHintOfAHolder(t *testing.T) {
	t.Parallel()
	for holder, want := range map[string]string{
		"claude":            "  a turn of claude is in progress: wait until it ends, or stop it there (Esc)\n",
		"codex":             "  a turn of codex is in progress: wait until it ends, or stop it there (Esc)\n",
		"lopen hook claude": "  a hook still keeps what the agent did: try again in a moment\n",
		"lopen run m":       "",
		"":                  "",
	} {
		err := fmt.Errorf("open: %w", &lifecycle.BusyError{Owner: lifecycle.Owner{PID: 1, Command: holder}})
		require.Equal(t, loop.ExitBusy, exitCode(err))
		require.Equal(t, want, hint(err), holder)
	}
}

// A damaged session of a run can be begun anew by a run, and an agent's own by no command.
func TestHintOfADamagedSession(t *testing.T) {
	t.Parallel()
	for module, fresh := range map[string]string{"m": "  or start fresh:                         lopen run m --no-resume -- CMD\n", "claude-04e3bf75": ""} {
		id, err := session.ParseID(module + "-20260214-1")
		require.NoError(t, err)
		damaged := fmt.Errorf("open: %w", &lifecycle.DamagedError{ID: id, Err: lifecycle.ErrCorrupt})
		require.Equal(t, exitCorrupt, exitCode(damaged))
		require.Equal(t, "  make a new session of what can be read: lopen session recover "+id.String()+"\n"+fresh, hint(damaged))
	}
}
