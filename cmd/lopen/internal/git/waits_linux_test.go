package git

import (
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const lookEnv = "LOPEN_TEST_LOOK_AT"

// TestGitEndsWithUs kills a process while git works for it.
func TestGitEndsWithUs(t *testing.T) {
	if dir := os.Getenv(lookEnv); dir != "" {
		_, err := Look(t.Context(), dir, os.Environ())
		require.NoError(t, err)
		return
	}
	t.Parallel()
	p := newPlace(t)
	p.repository("a")
	alive := p.path("alive")
	unreadable["fifo"](t, alive)
	p.write("bin/git", "#!/bin/sh\ncase \"$*\" in *--file*) exit 0;; esac\nexec 7>"+alive+"\nexec sleep 60\n")
	require.NoError(t, os.Chmod(p.path("bin/git"), 0o755))
	exe, err := os.Executable()
	require.NoError(t, err)
	us := exec.Command(exe, "-test.run=^TestGitEndsWithUs$")
	us.Env = append(os.Environ(), lookEnv+"="+p.path("a"), "PATH="+p.path("bin")+":"+os.Getenv("PATH"), "TMPDIR="+t.TempDir())
	require.NoError(t, us.Start())
	r, err := os.Open(alive) // returns when git has it open
	require.NoError(t, err)
	defer r.Close()
	require.NoError(t, us.Process.Kill())
	_ = us.Wait()
	require.NoError(t, r.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err = r.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "git has ended")
}
