//go:build unix

package process

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/plain"
)

// The lock of a command that made it exclusive is found, and its group is ended.
func TestOrphanWithAnExclusiveLock(t *testing.T) {
	t.Parallel()
	tells(t)
	dir := openTemp(t)
	cmd := start(t, dir, process(t, "exclusive"), true)
	require.Equal(t, "exclusive", cmd.line(t))
	o := find(t, dir)
	require.NotNil(t, o)
	require.True(t, o.Alive)
	require.Equal(t, cmd.Process.Pid, o.PGID)

	_, err := Hold(dir, childName)
	path := filepath.Join(dir.Name(), childName)
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, fmt.Sprintf("exclusively (PID %d)", cmd.Process.Pid))
	require.ErrorContains(t, err, fmt.Sprintf("end it with: kill %d", cmd.Process.Pid))

	require.NoError(t, o.End(t.Context(), time.Minute))
	require.Equal(t, syscall.SIGTERM, cmd.signal(t))
	nobody(t, dir)
}

// A command that is in no record is named by its PID where the system tells it.
func TestOrphanWithoutARecordIsNamed(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	cmd := start(t, dir, exec.Command("sh", "-c", "echo ready; exec sleep 60"), false)
	require.Equal(t, "ready", cmd.line(t))
	o := find(t, dir)
	require.True(t, o.Alive)
	require.Zero(t, o.PGID)
	require.Contains(t, o.String(), o.path)
	if groupHolds(cmd.Process.Pid, o.file, "") == unknown {
		require.Equal(t, "find it with: fuser "+plain.Quote(o.path)+"; and end it with: kill PID", o.ByHand())
		return
	}
	pid := strconv.Itoa(cmd.Process.Pid)
	require.True(t, strings.HasSuffix(o.String(), "(PID "+pid+")"), o)
	require.Equal(t, "end it with: kill "+pid, o.ByHand())
	require.ErrorContains(t, o.End(t.Context(), time.Millisecond), "end it with: kill "+pid)
}

func TestHowToFindAHolder(t *testing.T) {
	t.Parallel()
	require.Equal(t, `find it with: fuser '/a b/'\''c'; and end it with: kill PID`, byHand("/a b/'c", nil))
	require.Equal(t, "end it with: kill 12 13", byHand("/x", []int{12, 13}))
}
