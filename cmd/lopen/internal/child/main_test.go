package child_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/writer/process"
)

// scriptEnv makes the test binary a process that runs a command, to be killed.
const scriptEnv = "CHILD_TEST_SCRIPT"

func TestMain(m *testing.M) {
	if script := os.Getenv(scriptEnv); script != "" {
		os.Exit(loop(script))
	}
	os.Exit(m.Run())
}

// loop runs a script as the first command of a new session of the project in the current
// folder. SIGINT ends all as a second Ctrl-C does; SIGHUP is a panic in a goroutine.
func loop(script string) int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGHUP)
	var ending atomic.Bool
	go func() {
		if <-signals == syscall.SIGHUP {
			panic("of a test")
		}
		ending.Store(true)
		n, left := child.KillAll()
		fmt.Println(n, left)
		os.Exit(130)
	}()
	ctx := context.Background()
	store, _, err := lifecycle.Init(".", lifecycle.Options{})
	var sess *lifecycle.Session
	if err == nil {
		sess, err = store.Create(ctx, "m")
	}
	var lock *process.Lock
	if err == nil {
		lock, err = sess.HoldChild()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	c := child.Command{Argv: []string{"sh", "-c", script}, Env: os.Environ(), Keep: true, Lock: lock, Iteration: 1, Stdout: os.Stdout, Stderr: os.Stderr}
	c.Inherit = []*os.File{lock.File()}
	c.Started = func(pid int) {
		for late := time.Now(); strings.Contains(script, "is recorded late") && (!ending.Load() || process.GroupLives(pid) && time.Since(late) < 100*time.Millisecond); {
			if !ending.Load() {
				late = time.Now()
			}
			runtime.Gosched()
		}
		if err := lock.Record(pid, "sh"); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if strings.Contains(script, "panics when it has begun") {
		c.Started = func(int) { panic("of a test") }
	}
	res, err := child.Run(ctx, c)
	if ending.Load() {
		select {}
	}
	fmt.Println(res.Exit, res.Signal, err)
	return 0
}
