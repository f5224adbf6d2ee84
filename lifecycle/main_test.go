package lifecycle_test

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// roleVar makes the test binary another process of the same project: "create"
// makes sessions and prints their IDs; "hold" works on one session, says what is
// durable and stays until its stdin ends or it is killed.
const roleVar = "LIFECYCLE_TEST_ROLE"

// roles has the roles that exist only on some systems.
var roles = map[string]func(project string) error{}

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(roleVar) {
	case "":
		// Crash tests make and read thousands of small disks: collecting after each few
		// megabytes took a third of their time.
		debug.SetGCPercent(1000)
		debug.SetMemoryLimit(1 << 30)
		crashfs.InMemory()
		// Most of the tests wait for the disk.
		_ = flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0)))
		code := m.Run()
		if n := crashStates.Load(); n > 0 {
			fmt.Printf("%d crash states explored\n", n)
		}
		os.Exit(code)
	case "create":
		err = roleCreate(os.Args[1])
	case "hold":
		err = roleHold(os.Args[1])
	case "random":
		err = roleRandom(os.Args[1])
	default:
		err = roles[os.Getenv(roleVar)](os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func roleCreate(project string) error {
	// All processes are started before one begins: they wait for their stdin.
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	store, _, err := lifecycle.Init(project, lifecycle.Options{Now: clock()})
	if err != nil {
		return err
	}
	sess, err := store.Create(context.Background(), "auth")
	if err != nil {
		return err
	}
	fmt.Println(sess.ID())
	return store.Close(context.Background())
}

func roleHold(project string) error {
	ctx := context.Background()
	store, err := lifecycle.Open(project, lifecycle.Options{Command: "lopen run auth"})
	if err != nil {
		return err
	}
	sess, err := store.Create(ctx, "auth")
	if err != nil {
		return err
	}
	for i := 1; i <= 20; i++ {
		if err := sess.Change(session.TriggerTaskCompleted, func(e *session.Edit) error {
			e.Header().TurnCount = i
			e.AppendIteration(session.Iteration{Task: "a", Attempt: i, StartedAt: day, OutputTokens: 10})
			return nil
		}); err != nil {
			return err
		}
	}
	if err := sess.Sync(ctx); err != nil {
		return err
	}
	fmt.Println(sess.ID())
	_, err = io.Copy(io.Discard, os.Stdin)
	fmt.Println(sess.PauseRequested())
	return err
}

var day = time.Date(2026, 2, 14, 9, 0, 0, 0, time.UTC)

// clock starts at day and advances by a second whenever it is looked at.
func clock() func() time.Time {
	var n atomic.Int64
	return func() time.Time { return day.Add(time.Duration(n.Add(1)) * time.Second) }
}

// another is a process of this test binary in a role. It is killed when the test ends.
type another struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t *testing.T, role, project string) *another {
	t.Helper()
	cmd := exec.Command(os.Args[0], project)
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &another{cmd, in, bufio.NewReader(out)}
}

func (p *another) line(t *testing.T) string {
	t.Helper()
	s, err := p.out.ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(s)
}

// initStore makes a store in a fresh project.
func initStore(t *testing.T) *lifecycle.Store { return storeIn(t, t.TempDir()) }

func storeIn(t *testing.T, project string) *lifecycle.Store {
	t.Helper()
	return storeWith(t, project, lifecycle.Policy{})
}

// storeWith opens another Store on a project, with a policy.
func storeWith(t *testing.T, project string, p lifecycle.Policy) *lifecycle.Store {
	t.Helper()
	store, _, err := lifecycle.Init(project, lifecycle.Options{Now: clock(), Policy: p})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close(context.Background()) })
	return store
}

func create(t *testing.T, store *lifecycle.Store, module string) *lifecycle.Session {
	t.Helper()
	sess, err := store.Create(t.Context(), module)
	require.NoError(t, err)
	return sess
}

// interrupted makes a session as a kill of its holder leaves it: its files are those of
// before the close.
func interrupted(t *testing.T, store *lifecycle.Store, module string) session.ID {
	t.Helper()
	sess := create(t, store, module)
	dir := path(store, "sessions", sess.ID().String())
	before := tree(t, dir)
	require.NoError(t, sess.Close(t.Context()))
	for name, content := range before {
		write(t, filepath.Join(dir, name), content)
	}
	return sess.ID()
}

// made creates a session and closes it at once.
func made(t *testing.T, store *lifecycle.Store, module string) session.ID {
	t.Helper()
	sess := create(t, store, module)
	require.NoError(t, sess.Close(t.Context()))
	return sess.ID()
}

func turns(n int) func(*session.Edit) error {
	return func(e *session.Edit) error {
		e.Header().TurnCount = n
		return nil
	}
}

// bulky is turns with more than what is left of any block on the disk.
func bulky(n int) func(*session.Edit) error {
	return func(e *session.Edit) error {
		e.Header().TurnCount = n
		e.Header().Data = strictjson.Value(fmt.Sprintf(`{"turn%d":%q}`, n, strings.Repeat("x", 80<<10)))
		return nil
	}
}

func path(store *lifecycle.Store, parts ...string) string {
	return filepath.Join(append([]string{store.Path()}, parts...)...)
}

func write(t *testing.T, name, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
}

// storeLogging opens another Store on the same project, with a log.
func storeLogging(t *testing.T, store *lifecycle.Store, w io.Writer) *lifecycle.Store {
	t.Helper()
	s, err := lifecycle.Open(filepath.Dir(store.Path()), lifecycle.Options{Now: clock(), Logger: zerolog.New(zerolog.SyncWriter(w))})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// reseal gives a line of a journal the checksum of what it holds now.
func reseal(t *testing.T, line string) string {
	t.Helper()
	body, _, found := strings.Cut(line, `,"crc":"`)
	require.True(t, found)
	return fmt.Sprintf("%s,\"crc\":\"%08x\"}\n", body, crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli)))
}

func splitLines(data []byte) [][]byte { return bytes.SplitAfter(data, []byte("\n")) }

// lineOf is the place of a record among the lines of a segment; 0, the header, where it is
// not there.
func lineOf(lines [][]byte, seq int) int {
	return max(slices.IndexFunc(lines, func(line []byte) bool { return bytes.HasPrefix(line, fmt.Appendf(nil, `{"seq":%d,`, seq)) }), 0)
}

// ruin takes the newest record from a session's journal: its readable files tell that it
// was acknowledged, so that it cannot be opened, and recover has all of it.
func ruin(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "journal-*.jsonl"))
	require.NoError(t, err)
	slices.Sort(files)
	for _, file := range slices.Backward(files) {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		if at := bytes.LastIndex(data, []byte("\n{\"seq\":")); at >= 0 {
			write(t, file, string(data[:at+1]))
			return
		}
	}
	t.Fatal("it has no record")
}

func joinLines(lines [][]byte) string { return string(bytes.Join(lines, nil)) }

// memory is a folder in memory where there is one: these tests sync a great deal.
func memory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "lopen-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}
