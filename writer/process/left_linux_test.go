package process

import (
	"bufio"
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

	"github.com/lopen-dev/lopen/writer"
)

// stubborn prints its PID and works until it gets SIGKILL.
const stubborn = `trap "" TERM INT HUP; echo $$; while :; do sleep 0.1; done`

// A cutOff command is one whose loop was killed, with the PIDs that its processes print.
type cutOff struct {
	*exec.Cmd
	out *bufio.Reader
}

// cutLoop starts a shell script as a loop would that is killed right after it.
func cutLoop(t *testing.T, dir writer.FS, script string) *cutOff {
	t.Helper()
	cmd, l := begin(t, dir, script)
	require.NoError(t, l.File().Close())
	return cmd
}

// begin starts a shell script as a loop does.
func begin(t *testing.T, dir writer.FS, script string) (*cutOff, *Lock) {
	t.Helper()
	l, err := Hold(dir, childName)
	require.NoError(t, err)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command("sh", "-c", script)
	detach(cmd)
	cmd.Stdout, cmd.ExtraFiles, cmd.Env = w, []*os.File{l.File()}, append(os.Environ(), l.Environment())
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-done
		_ = r.Close()
	})
	require.NoError(t, l.Record(cmd.Process.Pid, "a command"))
	return &cutOff{cmd, bufio.NewReader(r)}, l
}

// pid is the next one that a process of the command prints. It is killed at the end of the test.
func (c *cutOff) pid(t *testing.T) int {
	t.Helper()
	line, err := c.out.ReadString('\n')
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	return pid
}

// lives says whether a process runs.
func lives(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, _ := strings.Cut(string(data), ") ")
	return err == nil && rest[0] != 'Z' && rest[0] != 'X'
}

// What the command of a killed loop started outside of its group is found and ended with it, by
// the lock or by the variable that it inherited.
func TestStraysOfAKilledLoopAreEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		gone   bool // the group ends by itself
	}{
		"a session of its own":              {script: `setsid sh -c '` + stubborn + `' & wait`},
		"its parents have ended":            {script: `(setsid sh -c '(` + stubborn + `) & exit' &); exit`, gone: true},
		"its descriptors are closed":        {script: `setsid sh -c 'exec 3>&-; ` + stubborn + `' & exit`, gone: true},
		"its variables are gone":            {script: `env -i setsid sh -c '` + stubborn + `' & exit`, gone: true},
		"a member of the group closed them": {script: `sh -c 'exec 3>&-; ` + stubborn + `' & exit`, gone: false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := openTemp(t)
			cmd := cutLoop(t, dir, c.script)
			stray := cmd.pid(t)
			if c.gone {
				require.Eventually(t, func() bool { return !GroupLives(cmd.Process.Pid) }, 20*time.Second, time.Millisecond)
			}
			o := find(t, dir)
			require.NotNil(t, o)
			require.True(t, o.Alive)
			require.True(t, o.CanEnd(), "%+v", o)
			if !strings.HasPrefix(name, "a member") && !strings.HasPrefix(name, "its parents") {
				require.Contains(t, o.String(), "PID "+strconv.Itoa(stray)+" (", o.String())
				require.Contains(t, o.ByHand(), strconv.Itoa(stray))
			}
			require.NoError(t, o.End(t.Context(), 50*time.Millisecond))
			require.False(t, lives(stray))
			nobody(t, dir)
		})
	}
}

// What another command started, or a person, is left alone, whatever it has of ours.
func TestStraysOfOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	earlier, l := begin(t, dir, `setsid sh -c '`+stubborn+`' & exit`) // of the same lock file
	daemon := earlier.pid(t)
	require.Eventually(t, func() bool { return !GroupLives(earlier.Process.Pid) }, 20*time.Second, time.Millisecond)
	require.NoError(t, l.Release())
	o := find(t, dir)
	require.False(t, o.Alive, "its loop saw the end of its command")
	require.NoError(t, o.End(t.Context(), time.Millisecond))

	cmd := cutLoop(t, dir, `setsid sh -c '`+stubborn+`' & exit`)
	stray := cmd.pid(t)
	foreign := exec.Command("sleep", "60")
	foreign.Env = append(os.Environ(), markVariable+"=another")
	detach(foreign)
	require.NoError(t, foreign.Start())
	t.Cleanup(func() {
		_ = foreign.Process.Kill()
		_ = foreign.Wait()
	})
	require.NoError(t, find(t, dir).End(t.Context(), 10*time.Millisecond))
	require.False(t, lives(stray))
	require.True(t, lives(daemon))
	require.True(t, lives(foreign.Process.Pid))
	o = find(t, dir)
	require.NotNil(t, o, "the daemon holds the lock")
	require.False(t, o.Alive)

	// A number that is another process's by now gets no signal.
	s := Stray{PID: foreign.Process.Pid, start: "1"}
	require.ErrorIs(t, s.Signal(syscall.SIGKILL), os.ErrProcessDone)
	require.True(t, lives(foreign.Process.Pid))
}

// What cannot be known to be the command's is alive, named, and never ended.
func TestWhatMayBeOfAKilledLoopIsNamed(t *testing.T) {
	t.Parallel()
	// It has no variable, and moved the position of its descriptor.
	unknown := `env -i setsid sh -c 'trap "" TERM; dd bs=1 count=1 skip=10 <&3 2>/dev/null; echo $$; while :; do sleep 0.1; done' & exit`
	for name, c := range map[string]struct {
		script string
		change func(*Group)
		says   string
	}{
		"no mark":               {unknown, func(*Group) {}, "what may be of the command"},
		"another PID namespace": {`setsid sh -c '` + stubborn + `' & exit`, func(g *Group) { g.Space = "pid:[1]" }, "what may be of the command"},
		"no start":              {`setsid sh -c '` + stubborn + `' & exit`, func(g *Group) { g.Start = "" }, "what may be of the command"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := openTemp(t)
			cmd := cutLoop(t, dir, c.script)
			pid := cmd.pid(t)
			require.Eventually(t, func() bool { return !GroupLives(cmd.Process.Pid) }, 20*time.Second, time.Millisecond)
			forge(t, dir, c.change)
			o := find(t, dir)
			require.NotNil(t, o)
			require.True(t, o.Alive)
			require.False(t, o.CanEnd())
			require.Contains(t, o.String(), c.says)
			require.Contains(t, o.String(), "PID "+strconv.Itoa(pid)+" (")
			require.Equal(t, "end it with: kill "+strconv.Itoa(pid), strings.Join(strings.Fields(o.ByHand())[:5], " "))
			require.ErrorContains(t, o.End(t.Context(), time.Millisecond), "left alone")
			require.True(t, lives(pid))
		})
	}
}

// In another PID namespace nothing is believed gone, and no number is believed.
func TestKilledLoopOfAnotherNamespace(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root makes PID namespaces")
	}
	dir := openTemp(t)
	cmd := cutLoop(t, dir, `setsid sh -c '`+stubborn+`' & wait`)
	stray := cmd.pid(t)
	for _, mode := range []string{"look", "look beneath its own /proc"} {
		look := process(t, mode)
		look.Dir = dir.Name()
		look.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
		out, err := look.Output()
		require.NoError(t, err, "%s", out)
		require.Equal(t, "alive: true, can be ended: false, ended: false", strings.TrimSpace(string(out)), mode)
	}
	require.True(t, lives(stray))
	require.True(t, GroupLives(cmd.Process.Pid))
}

// look is a process of another PID namespace that looks for an orphan in its folder.
func look() error {
	wd, err := os.Getwd()
	if err != nil {
		return err
	}
	dir, err := writer.OpenFS(wd)
	if err != nil {
		return err
	}
	defer dir.Close()
	o, err := FindOrphan(dir, childName)
	if err != nil || o == nil {
		return err
	}
	fmt.Printf("alive: %t, can be ended: %t, ended: %t\n", o.Alive, o.CanEnd(), o.End(context.Background(), 0) == nil)
	return nil
}

func lookBeneathOwnProc() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	return look()
}

func init() { modes["look"], modes["look beneath its own /proc"] = look, lookBeneathOwnProc }

// In a container the session and the group of a process may be outside of its PID namespace, and their
// numbers 0: a command that is in no record, with the number 0 as well, is at work all the same.
func TestOrphanBeforeRecordInAContainer(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("not root: no PID namespace is made")
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "unshare", "--pid", "--fork", "--mount-proc", exe, // #nosec G204 -- this test
		"-test.run=^(TestOrphanBeforeRecord|TestOrphanWithoutARecordIsNamed)$", "-test.count=1", "-test.v")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: TestOrphanBeforeRecord (")
}
