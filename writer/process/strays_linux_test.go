package process

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a command started in another group is told from what an earlier one left, and from
// what merely has the file open.
func TestStrays(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	sh := exec.Command("sh", "-c", "echo ready; read go; sleep 60 & echo $!; wait")
	later, err := sh.StdinPipe()
	require.NoError(t, err)
	earlier := start(t, dir, sh, true)
	require.Equal(t, "ready", earlier.line(t))

	l, err := Hold(dir, childName)
	require.NoError(t, err)
	defer l.Release()
	ours, others := l.Strays()
	require.Empty(t, ours)
	require.Empty(t, others, "nothing is said of who holds it before a command began")

	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	cmd := exec.Command("sh", "-c", `setsid sh -c 'echo $$; exec sleep 60' & sleep 60 & wait`)
	detach(cmd)
	cmd.Stdout, cmd.ExtraFiles = w, []*os.File{l.File()}
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	require.NoError(t, l.Record(cmd.Process.Pid, "a command"))
	text := make([]byte, 20)
	n, err := r.Read(text)
	require.NoError(t, err)
	stray, err := strconv.Atoi(string(text[:n-1]))
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = syscall.Kill(stray, syscall.SIGKILL)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	_, err = later.Write([]byte("go\n")) // what an earlier command starts now is not this one's
	require.NoError(t, err)
	more, err := strconv.Atoi(earlier.line(t))
	require.NoError(t, err)
	ours, others = l.Strays()
	require.Equal(t, []int{stray}, pids(ours))
	require.ElementsMatch(t, []int{earlier.Process.Pid, more}, pids(others))

	// A process that had the lock before the command began is none of its own.
	g := *l.group.Load()
	g.Start = "99999999999"
	l.group.Store(&g)
	ours, others = l.Strays()
	require.Empty(t, ours)
	require.ElementsMatch(t, []int{stray, earlier.Process.Pid, more}, pids(others))
}
