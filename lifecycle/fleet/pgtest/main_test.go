package pgtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// roleVar makes the test binary another process of tests: "none" has no PostgreSQL; the others
// start servers and say so, and end as the role's name says.
const roleVar = "PGTEST_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleVar) == "none" {
		usual = nil
	}
	code := Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// another is a process of this test binary that runs one test in a role.
type another struct {
	*exec.Cmd
	out *bufio.Reader
}

func start(t *testing.T, role string, env ...string) *another {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestInARole$", "-test.v")
	cmd.Env = append(append(os.Environ(), roleVar+"="+role), env...)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = cmd.Stdout
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &another{cmd, bufio.NewReader(out)}
}

// say is what a role's process says of a thing.
func say(what string, v any) { fmt.Printf("\n%s=%v\n", what, v) }

// hear waits until the process says a thing.
func (p *another) hear(t *testing.T, what string) string {
	t.Helper()
	for {
		line, err := p.out.ReadString('\n')
		require.NoError(t, err, "before %s", what)
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), what+"="); ok {
			return v
		}
	}
}

// TestInARole does what the roles do in a process of its own. It is no test without one.
func TestInARole(t *testing.T) {
	role := os.Getenv(roleVar)
	if role == "" {
		t.Skip("not in a role")
	}
	Need(t)
	h, err := theHome()
	require.NoError(t, err)
	say("reaper", h.reaper.Process.Pid)
	say("home", h.dir)
	Database(t)
	s, err := shared()
	require.NoError(t, err)
	say("memory", pidFile(s.data).memory)
	if role == "paused" {
		p := Start(t, Options{Folder: Folder(t)})
		p.Pause()
		say("folder", p.data)
	}
	say("ready", role)
	switch role {
	case "panic":
		panic("as its role says")
	case "exit":
		os.Exit(3)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestMainSaysThatThereIsNoServer(t *testing.T) {
	t.Parallel()
	Need(t)
	p := start(t, "none", "PATH=")
	said, err := io.ReadAll(p.out)
	require.NoError(t, err)
	require.NoError(t, p.Wait())
	require.Equal(t, 1, strings.Count(string(said), "lifecycle/fleet: no PostgreSQL server here: the fleet's tests are skipped; on Debian: apt-get install postgresql\n"), "%s", said)
	require.Contains(t, string(said), "--- SKIP: TestInARole")
}
