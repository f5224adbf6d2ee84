//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// TestImportIsKilled kills imports of a history at several moments, and the agent writes on between
// them. In the end each message is in the session once.
func TestImportIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "0a1b2c3d-x.jsonl")
	lines := 0
	write := func(n int) {
		var b bytes.Buffer
		for range n {
			fmt.Fprintf(&b, `{"type":"user","uuid":"m%d","timestamp":"2026-02-14T09:00:00Z","message":{"content":"%s"}}`+"\n", lines, strings.Repeat("x", 4<<10))
			lines++
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = f.Write(b.Bytes())
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	write(5000)
	must(t, dir, "init")
	killed := 0
	for wait := 20 * time.Millisecond; killed < *kills && wait < 5*time.Second; wait += wait / 2 {
		cmd := command(t, dir, "session", "import", "--from", "claude", path)
		require.NoError(t, cmd.Start())
		timer := time.AfterFunc(wait, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
		err := cmd.Wait()
		timer.Stop()
		if exit := (*exec.ExitError)(nil); err != nil {
			require.ErrorAs(t, err, &exit)
			require.Equal(t, -1, exit.ExitCode(), "killed, or done")
			killed++
		}
		write(10)
	}
	must(t, dir, "session", "import", "--from", "claude", path)
	must(t, dir, "session", "import", "--from", "claude", path) // what came after the pass that was killed had begun
	t.Logf("%d kills", killed)

	store, err := lifecycle.Open(dir, lifecycle.Options{})
	require.NoError(t, err)
	defer release(store)
	infos, err := store.List()
	require.NoError(t, err)
	require.Len(t, infos, 1)
	meta, err := store.Meta(infos[0].ID)
	require.NoError(t, err)
	require.NotEmpty(t, meta.Name)
	next := 0
	for m, err := range store.Messages(infos[0].ID) {
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("m%d", next), m.ID)
		next++
	}
	require.Equal(t, lines, next)
}

// TestImportThatAnotherDoes imports two histories while another process has the session of one.
func TestImportThatAnotherDoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, id := range []string{"0a1b2c3d-x", "f0000000-x"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, id+".jsonl"), []byte(`{"type":"user","uuid":"m","message":{"content":"x"}}`+"\n"), 0o600))
	}
	must(t, dir, "init")
	store, err := lifecycle.Open(dir, lifecycle.Options{})
	require.NoError(t, err)
	defer release(store)
	held, _, err := store.OpenOfAgent(t.Context(), "claude-f0000000", "f0000000-x", "", func(h *session.Header) { h.Status = session.StatusComplete })
	require.NoError(t, err)
	defer held.Close(t.Context())
	cmd := command(t, dir, "session", "import", "--from", "claude", dir)
	var said bytes.Buffer
	cmd.Stderr = &said
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Run(), &exit)
	require.Equal(t, 11, exit.ExitCode())
	require.Contains(t, said.String(), "another lopen imports it; try again: ")
	require.Contains(t, said.String(), "2 sessions of claude, 1 with something new\nlook at one: lopen session show claude-0a1b2c3d")
	require.NotContains(t, said.String(), "show claude-f0000000")
}
