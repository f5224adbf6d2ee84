package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

var (
	kills = flag.Int("kills", 5, "how often TestKilled kills the command")
	seed  = flag.Uint64("seed", 1, "seed of TestKilled; 0 takes one from the clock")

	updateScripts = flag.Bool("update-scripts", false, "record the files anew that scripts compare the command's output with")
)

// asCommand makes the test binary be the command: for tests that need a real
// process to kill.
const asCommand = "LOPEN_TEST_AS_COMMAND=1"

// asAgent makes the test binary an agent with one prompt, whose hooks are this command.
const asAgent = "LOPEN_TEST_AS_AGENT=1"

// shortWaits is a duration that the waits of a run take in place of their own, for tests.
const shortWaits = "LOPEN_TEST_WAIT"

// shortIdle is a duration that unattendedIdle takes in place of its own, for tests.
const shortIdle = "LOPEN_TEST_IDLE"

// patience, if it is set, has an agent wait for its hooks as long as it does without tests.
const patience = "LOPEN_TEST_PATIENCE"

// pidVariable is the command's own PID in what the tests start, which kills it: its parent
// is the keeper.
const pidVariable = "LOPEN_TEST_PID"

func TestMain(m *testing.M) {
	if d, err := time.ParseDuration(os.Getenv(shortWaits)); err == nil {
		w := &loop.Waits
		w.Limit, w.Overload, w.Longest, w.Poll, w.Orphan, w.Storage = d, d, 4*d, d, d, d
	}
	if d, err := time.ParseDuration(os.Getenv(shortIdle)); err == nil {
		unattendedIdle = d
	}
	if os.Getenv(patience) == "" { // on a busy machine a test would see what is done later
		promptPatience, hookPatience, endPatience = time.Minute, time.Minute, time.Minute
	}
	if os.Getenv("LOPEN_TEST_AS_AGENT") != "" {
		os.Exit(oneTurn())
	}
	if os.Getenv("LOPEN_TEST_AS_COMMAND") != "" {
		code := asMain()
		if to := os.Getenv("LOPEN_TEST_STATUS"); to != "" { // see runBounded
			if status, err := os.ReadFile("/proc/self/status"); err == nil {
				_ = os.WriteFile(to, status, 0o600)
			}
		}
		os.Exit(code)
	}
	// Most of the tests wait: for processes, the disk and moments.
	_ = flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0)))
	testscript.Main(withServer{m}, map[string]func(){
		"lopen":    func() { os.Exit(asMain()) },
		"drained":  drained,
		"say":      say,
		"database": database,
	})
}

// oneTurn calls the hooks of a prompt and of the end of its turn, as an agent does.
func oneTurn() int {
	_ = os.Unsetenv("LOPEN_TEST_AS_AGENT")
	for _, event := range []string{"UserPromptSubmit", "Stop"} {
		hook := exec.Command(os.Args[0], "hook", "claude")
		hook.Env = append(os.Environ(), asCommand)
		hook.Stdin = strings.NewReader(`{"session_id":"0f8fad5b-d9cb","cwd":"/","hook_event_name":"` + event + `"}`)
		if err := hook.Run(); err != nil {
			return 1
		}
	}
	return 0
}

// asMain is what main does. SIGUSR1 makes the command panic in a goroutine.
func asMain() int {
	usr1 := make(chan os.Signal, 1)
	panicSignal(usr1)
	go func() {
		<-usr1
		panic("of a test")
	}()
	return run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, append(os.Environ(), fmt.Sprintf("%s=%d", pidVariable, os.Getpid())))
}

// TestScripts runs the scripts in testdata/script: each is a terminal session in
// a fresh folder, with a state folder and a home of its own.
//
// The files that a script compares output of the command with (want, list and the like)
// were recorded from the command and read by a person: they show that what is printed
// changed, and not that it is right. To record them again: go test ./cmd/lopen -run
// TestScripts -update-scripts, and read the difference.
func TestScripts(t *testing.T) {
	t.Parallel()
	sample, err := filepath.Abs("testdata/sample")
	if err != nil {
		t.Fatal(err)
	}
	standin, err := filepath.Abs("testdata/standin")
	if err != nil {
		t.Fatal(err)
	}
	dir, files := "testdata/script", []string(nil)
	if testing.Short() {
		dir, files = "", make([]string, len(atOnce))
		for i, name := range atOnce {
			files[i] = filepath.Join("testdata/script", name+".txtar")
		}
	}
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		Files:               files,
		WorkdirRoot:         scriptsRoot(t),
		RequireExplicitExec: true,
		UpdateScripts:       *updateScripts,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "xdg-state"))
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "xdg-config"))
			env.Setenv("SAMPLE", sample)
			env.Setenv("STANDIN", standin) // agents that print what the real ones print
			env.Setenv("TZ", "UTC")
			setUpFleet(t, env)
			// Under the race detector each command would sleep for a second before it exits.
			env.Setenv("GORACE", os.Getenv("GORACE"))
			return nil
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "root":
				return os.Geteuid() == 0, nil
			case "postgres":
				return pgtest.Found(), nil
			}
			return false, fmt.Errorf("no condition is called %q", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "person": byPerson, "psql": psql, "expire": expire},
	})
}

// atOnce are the scripts that -short leaves, for the race detector: those in which several
// processes or runs work at once, and one of each kind of goroutine that a command starts. What
// starts one command after another tells it nothing more: it sees one process only.
var atOnce = []string{
	"agent-first",      // a plan is looked for while the run begins
	"awake",            // the system is asked not to sleep
	"cache",            // outlines are made by several
	"carry-live",       // a run is exported and backed up while it works
	"edits",            // a plan is edited while a task runs
	"files",            // a folder is read by several
	"hook-gate",        // a check ends with its hook
	"hook-log",         // hooks of one agent at once
	"hook-transcript",  // what a hook leaves to be done behind it
	"killed",           // a run on a terminal, and what others see of it
	"leftover",         // temporary folders of the dead and the living
	"on-event",         // events are told while the run goes on
	"orphan-exclusive", // a command outlives its run
	"output",           // output is kept while it comes
	"output-follow",    // output is followed
	"plan-in-the-way",  // a run waits for an edit
	"record",           // two streams of output, and a run that is shown meanwhile
	"search",           // an index is made by several
	"search-all",       // histories are read by several
	"spec-live",        // specification and plan change under a run
	"transaction",      // git beside a run
	"two-runs",         // two runs in one folder
	"wait-asked",       // a wait on a terminal that Enter ends
	"wake",             // a wait that another terminal ends
	"watch",            // a session is followed
	"work-shared",      // runs in one process that share limits and a budget
}

// oneByOne leaves a test out of -short that starts one command after another, as scripts are: see
// atOnce.
func oneByOne(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("one command after another; -short")
	}
}

// scriptsRoot is the folder of the scripts' folders, in memory where there is room: they sync a great deal.
// They are removed together, at the end: where files go while others are made, some file systems search for
// long where a new one can be.
func scriptsRoot(t *testing.T) string {
	const memory, room = "/dev/shm", 4 << 30
	dir := ""
	if free, err := writer.FreeBytes(memory); err == nil && free > room {
		dir = memory
	}
	root, err := os.MkdirTemp(dir, "lopen-scripts")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, _ error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(path, 0o700) // #nosec G302 -- a folder, which is to be emptied
			}
			return nil
		})
		_ = os.RemoveAll(root)
	})
	return root
}

// say MODULE TEXT... appends messages to a session, as a program does that has one.
func say() {
	err := func() error {
		store, err := lifecycle.Open(".", lifecycle.Options{})
		if err != nil {
			return err
		}
		id, err := store.Resolve(os.Args[1])
		if err != nil {
			return err
		}
		sess, err := store.Open(id)
		if err != nil {
			return err
		}
		for i, text := range os.Args[2:] {
			err = errors.Join(err, sess.Append(&session.Message{ID: fmt.Sprint(i), Time: time.Now(), Role: session.RoleUser, Content: session.Text(text)}))
		}
		return errors.Join(err, closeStore(store))
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// person CODE COMMAND... runs a command that must end with an exit code as a person does in a terminal of their own: no
// ancestor of it is that of the script's other commands, which stands for an agent where hooks are called.
func byPerson(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: person CODE COMMAND [ARG...]")
	}
	ts.Setenv("want", args[0])
	ts.Check(ts.Exec("sh", append([]string{"-c", onItsOwn + ` & exit 0`, "sh"}, args[1:]...)...))
	if code := strings.TrimSpace(ts.ReadFile(ts.MkAbs(".code"))); code != args[0] {
		ts.Fatalf("exit code %s, wanted %s", code, args[0])
	}
	ts.Check(os.Remove(ts.MkAbs(".code")))
}

// onItsOwn is a part of a script of sh that runs "$@" once the shell has ended, and leaves the exit code in .code.
const onItsOwn = `(while kill -0 $$ 2>/dev/null; do :; done; "$@"; echo $? >.code)`

// exits CODE COMMAND... runs a command that must end with an exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG...]")
	}
	script := `"$@"; code=$?; [ "$code" = "$want" ] && exit 0; echo "exit code $code, wanted $want" >&2; exit 1`
	ts.Setenv("want", args[0])
	ts.Check(ts.Exec("sh", append([]string{"-c", script, "sh"}, args[1:]...)...))
}
