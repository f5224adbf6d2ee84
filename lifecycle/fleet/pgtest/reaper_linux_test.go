package pgtest

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNothingIsLeft ends test processes in all ways, and looks for their servers, folders, shared
// memory and reapers.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	Need(t)
	for _, c := range []struct {
		role, until string
		signal      syscall.Signal
	}{
		{"killed", "ready", syscall.SIGKILL},
		{"killed", "home", syscall.SIGKILL}, // while initdb runs
		{"paused", "ready", syscall.SIGKILL},
		{"interrupted", "ready", syscall.SIGINT},
		{"panic", "ready", 0},
		{"exit", "ready", 0},
	} {
		t.Run(c.role+" "+c.until, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && (c.role != "killed" || c.until != "ready") {
				t.Skip("-short")
			}
			p := start(t, c.role)
			reaper, home := p.hear(t, "reaper"), p.hear(t, "home")
			memory, folder := "", home
			if c.until == "ready" {
				memory = p.hear(t, "memory")
				require.True(t, segment(t, memory))
				if c.role == "paused" {
					folder = p.hear(t, "folder")
				}
				p.hear(t, "ready")
				running, err := processes(filepath.Base(home))
				require.NoError(t, err)
				if c.signal != 0 {
					require.NotEmpty(t, running)
					require.DirExists(t, folder)
				}
			}
			if c.signal != 0 {
				require.NoError(t, p.Process.Signal(c.signal))
			}
			var exit *exec.ExitError
			require.ErrorAs(t, p.Wait(), &exit)
			require.NoError(t, poll("the end of the reaper", func() (bool, error) { return gone(reaper) }))
			left, err := processes(filepath.Base(home))
			require.NoError(t, err)
			require.Empty(t, left)
			require.NoDirExists(t, folder)
			require.NoDirExists(t, home)
			require.False(t, memory != "" && segment(t, memory), "a segment of shared memory is left")
		})
	}
}

// gone says whether a process has ended. It may be a zombie, which has no command line.
func gone(pid string) (bool, error) {
	line, err := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return true, nil
	}
	return len(line) == 0, err
}

// segment says whether there is a segment of shared memory.
func segment(t *testing.T, id string) bool {
	t.Helper()
	all, err := os.ReadFile("/proc/sysvipc/shm")
	require.NoError(t, err)
	for line := range bytes.Lines(all) {
		if f := strings.Fields(string(line)); len(f) > 1 && f[1] == id {
			return true
		}
	}
	return false
}

func TestAKilledServerLeavesNothing(t *testing.T) {
	t.Parallel()
	Need(t)
	var s *Server
	var first, second string
	t.Run("test", func(t *testing.T) {
		s = Start(t, Options{})
		b := s.Backup()
		first = pidFile(s.data).memory
		s.Kill()
		left, err := processes(s.name)
		require.NoError(t, err)
		require.Empty(t, left)
		require.True(t, segment(t, first), "as after kill -9")
		s.RestoreFrom(b)
		require.False(t, segment(t, first))
		s.Start()
		second = pidFile(s.data).memory
		s.Kill()
		require.True(t, segment(t, second))
	})
	require.False(t, segment(t, second))
	require.NoDirExists(t, s.dir)
}
