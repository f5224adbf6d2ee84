//go:build unix

package process

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/internal/proc"
)

const childName = ".child"

// A command that holds the child's lock, in a group of its own.
type command struct {
	*exec.Cmd
	ended chan error
	out   *bufio.Reader
}

// leave starts a shell script that inherits the lock, and gives our descriptor
// up. Its group is killed at the end of the test.
func leave(t *testing.T, dir writer.FS, script string) *command {
	t.Helper()
	return start(t, dir, exec.Command("sh", "-c", script), true)
}

func start(t *testing.T, dir writer.FS, cmd *exec.Cmd, record bool) *command {
	t.Helper()
	l, err := Hold(dir, childName)
	require.NoError(t, err)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	detach(cmd)
	cmd.Stdout, cmd.ExtraFiles = w, []*os.File{l.File()}
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	c := &command{Cmd: cmd, ended: make(chan error, 1), out: bufio.NewReader(r)}
	done := make(chan struct{})
	go func() {
		c.ended <- cmd.Wait()
		close(done)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-done
		require.NoError(t, r.Close())
	})
	if record {
		require.NoError(t, l.Record(cmd.Process.Pid, "a command"))
		require.NoError(t, l.Release())
	} else {
		require.NoError(t, l.File().Close()) // as if we had been killed
	}
	return c
}

func (c *command) line(t *testing.T) string {
	t.Helper()
	line, err := c.out.ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

// signal waits for the command's end and returns what ended it.
func (c *command) signal(t *testing.T) syscall.Signal {
	t.Helper()
	var exit *exec.ExitError
	require.ErrorAs(t, <-c.ended, &exit)
	status, ok := exit.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	require.True(t, status.Signaled())
	return status.Signal()
}

func find(t *testing.T, dir writer.FS) *Orphan {
	t.Helper()
	o, err := FindOrphan(dir, childName)
	require.NoError(t, err)
	return o
}

// nobody requires that the lock is free. Between a fork and its exec a process
// that another test starts has copies of all our descriptors: ForkLock keeps out
// of that moment.
func nobody(t *testing.T, dir writer.FS) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.Nil(t, find(t, dir))
}

// forge changes the record in the lock file.
func forge(t *testing.T, dir writer.FS, change func(*Group)) {
	t.Helper()
	g := decodeGroup([]byte(get(t, dir, childName)))
	change(&g)
	data, err := json.Marshal(g)
	require.NoError(t, err)
	put(t, dir, childName, string(data))
}

// tells skips a test where no group is ended, as nobody knows whose it is.
func tells(t *testing.T) {
	t.Helper()
	if groupHolds(syscall.Getpgrp(), nil, "") == unknown {
		t.Skip("no /proc: which process holds a lock cannot be told, and none is ended")
	}
}

func TestOrphanIsFoundAndEnded(t *testing.T) {
	t.Parallel()
	tells(t)
	dir := openTemp(t)
	nobody(t, dir)
	cmd := leave(t, dir, "echo ready; sleep 60; :")
	require.Equal(t, "ready", cmd.line(t))
	o := find(t, dir)
	require.NotNil(t, o)
	require.True(t, o.Alive)
	require.Equal(t, cmd.Process.Pid, o.PGID)
	require.Equal(t, "a command", o.Command)
	require.Contains(t, o.String(), strconv.Itoa(o.PGID))
	require.Contains(t, o.String(), "a command")

	require.NoError(t, o.End(t.Context(), time.Minute))
	require.Equal(t, syscall.SIGTERM, cmd.signal(t))
	require.False(t, groupExists(o.PGID))
	nobody(t, dir)
	require.NoError(t, o.End(t.Context(), time.Minute), "it has ended")
}

func TestOrphanThatIgnoresTermIsKilled(t *testing.T) {
	t.Parallel()
	tells(t)
	dir := openTemp(t)
	cmd := leave(t, dir, `trap "" TERM; echo ready; while :; do sleep 1; done`)
	require.Equal(t, "ready", cmd.line(t))
	o := find(t, dir)
	require.NotNil(t, o)
	require.NoError(t, o.End(t.Context(), 50*time.Millisecond))
	require.Equal(t, syscall.SIGKILL, cmd.signal(t))
	nobody(t, dir)
}

// The leader has ended, the rest of its group has not: it is the same group.
func TestOrphanWithoutItsLeader(t *testing.T) {
	t.Parallel()
	tells(t)
	dir := openTemp(t)
	cmd := leave(t, dir, "sleep 60 & exit 0")
	require.NoError(t, <-cmd.ended)
	o := find(t, dir)
	require.NotNil(t, o)
	require.True(t, o.Alive)
	require.NoError(t, o.End(t.Context(), time.Minute))
	require.False(t, groupExists(o.PGID))
	nobody(t, dir)
}

// End returns with its context, and what does not end is not said to have ended.
func TestOrphanEndStopsWithItsContext(t *testing.T) {
	t.Parallel()
	tells(t)
	dir := openTemp(t)
	cmd := leave(t, dir, `trap "" TERM; echo ready; while :; do sleep 1; done`)
	require.Equal(t, "ready", cmd.line(t))
	o := find(t, dir)
	require.NotNil(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, o.End(ctx, time.Minute), ctx.Err())
	require.True(t, find(t, dir).Alive)
}

// A daemon in another group keeps the descriptor: it is found, and nobody is
// signalled for it.
func TestDaemonLeftBehind(t *testing.T) {
	t.Parallel()
	tells(t)
	dir := openTemp(t)
	cmd := start(t, dir, process(t, "daemon"), true)
	pid, err := strconv.Atoi(cmd.line(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	require.NoError(t, <-cmd.ended)

	o := find(t, dir)
	require.NotNil(t, o)
	require.False(t, o.Alive)
	require.Equal(t, cmd.Process.Pid, o.PGID)
	require.NoError(t, o.End(t.Context(), time.Minute))
	require.True(t, groupExists(pid), "the daemon lives")

	// The next command shares the lock with it, and is found beside it.
	next := leave(t, dir, "echo ready; sleep 60; :")
	require.Equal(t, "ready", next.line(t))
	o = find(t, dir)
	require.True(t, o.Alive)
	require.Equal(t, next.Process.Pid, o.PGID)
	require.NoError(t, o.End(t.Context(), time.Minute))
	require.False(t, find(t, dir).Alive)

	// A command that could not be started is no unknown one afterwards.
	l, err := Hold(dir, childName)
	require.NoError(t, err)
	require.NoError(t, l.Release())
	o = find(t, dir)
	require.NotNil(t, o)
	require.False(t, o.Alive)
}

// The number may be another's by now: no signal.
func TestOrphanOfAnotherBootOrStart(t *testing.T) {
	t.Parallel()
	if proc.BootID() == "" || proc.Start(os.Getpid()) == "" {
		t.Skip("no /proc: neither the boot nor the start of a process can be told")
	}
	for name, change := range map[string]func(*Group){
		"another boot":  func(g *Group) { g.Boot = "another" },
		"another start": func(g *Group) { g.Start += "1" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := openTemp(t)
			cmd := leave(t, dir, "echo ready; sleep 60; :")
			require.Equal(t, "ready", cmd.line(t))
			forge(t, dir, change)
			o := find(t, dir)
			require.NotNil(t, o)
			require.False(t, o.Alive)
			require.NoError(t, o.End(t.Context(), time.Millisecond))
			select {
			case err := <-cmd.ended:
				require.Fail(t, "it was signalled", "%v", err)
			default:
			}
			require.True(t, groupExists(cmd.Process.Pid))
		})
	}
}

// Killed between the start and Record: a command runs, and which is not known.
func TestOrphanBeforeRecord(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	cmd := start(t, dir, exec.Command("sh", "-c", "echo ready; sleep 60; :"), false)
	require.Equal(t, "ready", cmd.line(t))
	o := find(t, dir)
	require.NotNil(t, o)
	require.True(t, o.Alive)
	require.Zero(t, o.PGID)
	require.Contains(t, o.String(), filepath.Join(dir.Name(), childName))
	require.Error(t, o.End(t.Context(), time.Millisecond))
	require.True(t, groupExists(cmd.Process.Pid))

	// The same record of another boot is no living command: a reboot ends all.
	forge(t, dir, func(g *Group) { g.Boot = "another" })
	require.False(t, find(t, dir).Alive)
	// Nor is the empty one that Release leaves, on any system.
	put(t, dir, childName, `{"pgid":0,"boot":"`+proc.BootID()+`","since":"0001-01-01T00:00:00Z"}`)
	require.False(t, find(t, dir).Alive)
}

func TestChildLockRecord(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	l, err := Hold(dir, childName)
	require.NoError(t, err)
	require.NoError(t, l.Record(os.Getpid(), strings.Repeat("long ", childRecord)))
	require.Len(t, get(t, dir, childName), childBytes)
	g := decodeGroup([]byte(get(t, dir, childName))[:childRecord])
	require.Equal(t, os.Getpid(), g.PGID)
	require.Empty(t, g.Command, "a record is never cut")
	require.Equal(t, proc.Start(os.Getpid()), g.Start)
	require.NoError(t, l.Record(os.Getpid(), "short"))
	require.Len(t, get(t, dir, childName), childBytes)
	require.NoError(t, l.Release())
	require.NoError(t, l.Release(), "Release is idempotent")
	nobody(t, dir)

	_, err = Hold(dir, "removed/"+childName)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// bystander is a process in a group of its own that works on something else. Its
// standard input is a file, if there is one.
func bystander(t *testing.T, stdin *os.File) int {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	detach(cmd)
	if stdin != nil {
		cmd.Stdin = stdin
	}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		require.Equal(t, syscall.SIGKILL, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(), "something else ended it")
	})
	return cmd.Process.Pid
}

// Whoever may write in the project may write the record, and hold a lock as well: no
// group is ended that does not hold it itself.
func TestForgedGroupIsLeftAlone(t *testing.T) {
	t.Parallel()
	tells(t)
	for name, victim := range map[string]func(t *testing.T, dir writer.FS) int{
		"a bystander": func(t *testing.T, _ writer.FS) int { return bystander(t, nil) },
		"one that has the file open": func(t *testing.T, dir writer.FS) int {
			f, err := os.Open(filepath.Join(dir.Name(), childName))
			require.NoError(t, err)
			defer f.Close()
			return bystander(t, f)
		},
		"one that holds another lock": func(t *testing.T, _ writer.FS) int {
			f, err := os.Create(filepath.Join(t.TempDir(), "another"))
			require.NoError(t, err)
			defer f.Close()
			require.NoError(t, holdShared(f, f.Name()))
			return bystander(t, f)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := openTemp(t)
			holder := leave(t, dir, "echo ready; sleep 60; :")
			require.Equal(t, "ready", holder.line(t))
			pid := victim(t, dir)
			forge(t, dir, func(g *Group) { g.PGID, g.Start = pid, proc.Start(pid) })
			o := find(t, dir)
			require.NotNil(t, o, "something holds the lock")
			require.Equal(t, pid, o.PGID)
			require.False(t, o.Alive)
			require.ErrorContains(t, o.End(t.Context(), time.Millisecond), "none of its processes holds "+o.path)
			require.True(t, groupExists(pid))
		})
	}
}

// The group of this process, and that of its session's leader, are never a command's,
// whatever they hold.
func TestOwnGroupIsNeverEnded(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	l, err := Hold(dir, childName)
	require.NoError(t, err)
	sid, err := unix.Getsid(0)
	require.NoError(t, err)
	for _, pgid := range []int{syscall.Getpgrp(), sid} {
		if pgid <= 1 {
			continue // in a container: outside its PID namespace, or its first process; no record names either
		}
		require.NoError(t, l.Record(pgid, "a shell"))
		o := find(t, dir)
		require.NotNil(t, o)
		require.False(t, o.Alive)
		require.NoError(t, o.End(t.Context(), time.Millisecond))
	}
	require.NoError(t, l.Release())
}

// What another user wrote names nobody's group.
func TestChildLockOfAnotherUser(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	cmd := leave(t, dir, "echo ready; sleep 60; :")
	require.Equal(t, "ready", cmd.line(t))
	if err := os.Chown(filepath.Join(dir.Name(), childName), 12345, -1); err != nil {
		t.Skipf("a file can be given to another user by root only: %v", err)
	}
	o := find(t, dir)
	require.NotNil(t, o)
	require.False(t, o.Alive)
	require.Zero(t, o.PGID)
	require.Error(t, o.End(t.Context(), time.Millisecond))
	require.True(t, groupExists(cmd.Process.Pid))
}
