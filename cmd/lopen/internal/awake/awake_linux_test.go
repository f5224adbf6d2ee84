package awake_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/awake"
)

// inhibit stands in for systemd-inhibit: it writes its process, its session and its arguments to
// a pipe, and "over" when the command that it is to run ends.
const inhibit = `#!/bin/sh
printf '%s\n' "$$ $(cut -d' ' -f6 /proc/$$/stat)" "$*" >"$PIPE"
/bin/cat
echo over >"$PIPE"
`

// The tests change the environment, so that they are not parallel.

func TestKeepHoldsTheRequestUntilReleased(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "systemd-inhibit"), []byte(inhibit), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("PIPE", pipe)
	read := func() string { // waits for the other end
		text, err := os.ReadFile(pipe)
		require.NoError(t, err)
		return strings.TrimSpace(string(text))
	}
	log := zerolog.Nop()
	release := awake.Keep("lopen run auth", &log)
	processes, args, _ := strings.Cut(read(), "\n")
	for _, want := range []string{"--what=idle:sleep", "--who=lopen", "--why=lopen run auth", "--mode=block"} {
		require.Contains(t, args, want)
	}
	require.True(t, strings.HasSuffix(args, " cat"), args)
	pid, leader, _ := strings.Cut(processes, " ")
	require.Equal(t, pid, leader, "a Ctrl-C on the terminal does not reach the request")
	release()
	require.Equal(t, "over", read())
}

// logged is a log that tests read while others write.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer // Guarded by mu.
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func TestKeepWithoutSystemd(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var out logged
	log := zerolog.New(&out).Level(zerolog.DebugLevel)
	awake.Keep("lopen run auth", &log)()
	require.Contains(t, out.buf.String(), `"level":"debug"`)
	require.Contains(t, out.buf.String(), "the machine may fall asleep")
}
