package fleet_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// roleVar makes the test binary a runner of a machine: see run. Its value is the runner's orders.
const roleVar = "FLEET_TEST_RUNNER"

func TestMain(m *testing.M) {
	if text := os.Getenv(roleVar); text != "" {
		if err := run(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// Most of the tests wait for a database, or for a lease.
	_ = flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0)))
	os.Exit(pgtest.Main(m))
}

// Orders say what a runner does.
type orders struct {
	Host, URL, Dir string
	Module         string // of a new session
	ID             string // else the session that is here
	Lease          time.Duration
	Claim          bool // only claim modules, one for each line of its input
}

// What a runner says, a line of each.
const (
	saysBegun  = "begun"  // and the ID
	saysSaid   = "said"   // and how many messages are on the disk
	saysAcked  = "acked"  // and how many were acknowledged
	saysFenced = "fenced" // and the class of the error of a Save
	saysFork   = "fork"   // and the ID that Part returned
	saysClaim  = "claim"  // and the module
)

// run is a runner: it says numbers and completes tasks until it is killed or fenced.
func run(text string) error {
	ctx := context.Background()
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	store, _, err := lifecycle.Init(o.Dir, lifecycle.Options{Command: "lopen run"})
	if err != nil {
		return err
	}
	f, err := fleet.Open(fleet.Options{URL: o.URL, Project: "p", Host: o.Host, Linger: time.Millisecond})
	if err != nil {
		return err
	}
	f.Hasten(o.Lease, quick)
	if o.Claim {
		return claims(ctx, f)
	}
	s, err := opened(ctx, store, &o)
	if err != nil {
		return err
	}
	sess, err := f.Ship(store, s)
	if err != nil {
		return err
	}
	fmt.Println(saysBegun, sess.ID())
	err = talk(ctx, sess, o.Host)
	if lifecycle.ClassOf(err) != lifecycle.ClassFenced {
		return err
	}
	fmt.Println(saysFenced, sess.Err())
	_ = sess.Close(ctx) // it is fenced
	fork, err := f.Part(ctx, store, sess.ID())
	if err != nil {
		return err
	}
	fmt.Println(saysFork, fork)
	f.Close()
	return store.Close(ctx)
}

func opened(ctx context.Context, store *lifecycle.Store, o *orders) (*lifecycle.Session, error) {
	if o.ID == "" {
		return store.Create(ctx, o.Module)
	}
	id, err := session.ParseID(o.ID)
	if err != nil {
		return nil, err
	}
	return store.Open(id)
}

// talk says numbers until a Save fails, and returns its error.
func talk(ctx context.Context, sess *fleet.Session, host string) error {
	for n := 0; ; n++ {
		if err := sess.Append(message(fmt.Sprintf("%s-%d", host, n))); err != nil {
			return err
		}
		if err := sess.Save(nil, session.TriggerStepCompleted); err != nil {
			return err
		}
		if err := sess.Sync(ctx); err != nil {
			return err
		}
		fmt.Println(saysSaid, n+1)
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond) // the run never waits for the database for long
		err := sess.Replicated(ctx)
		cancel()
		if err == nil {
			fmt.Println(saysAcked, n+1)
		}
		if fenced := (*fleet.FencedError)(nil); errors.As(err, &fenced) {
			fmt.Println("replicated:", err)
		}
	}
}

// claims claims a module for each line of the input, and keeps it.
func claims(ctx context.Context, f *fleet.Fleet) error {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		c, _, err := f.Claim(ctx, nil, nil)
		if err != nil {
			return err
		}
		if c == nil {
			fmt.Println(saysClaim)
			continue
		}
		fmt.Println(saysClaim, c.Module)
	}
	return in.Err()
}

// A runner is a process of this binary. It is killed when the test ends.
type runner struct {
	*exec.Cmd
	in    io.WriteCloser
	ended chan struct{}

	mu    sync.Mutex
	lines map[string][]string // Guarded by mu. What it said, by the first word.
}

func startRunner(t *testing.T, o orders) *runner {
	t.Helper()
	text, err := json.Marshal(o)
	require.NoError(t, err)
	r := &runner{Cmd: exec.Command(os.Args[0]), ended: make(chan struct{}), lines: map[string][]string{}}
	r.Env = append(os.Environ(), roleVar+"="+string(text))
	r.Stderr = os.Stderr
	r.in, err = r.StdinPipe()
	require.NoError(t, err)
	out, err := r.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, r.Start())
	go func() {
		defer close(r.ended)
		for in := bufio.NewScanner(out); in.Scan(); {
			word, rest, _ := strings.Cut(in.Text(), " ")
			r.mu.Lock()
			r.lines[word] = append(r.lines[word], rest)
			r.mu.Unlock()
		}
		_ = r.Wait() // what it said is what counts
	}()
	t.Cleanup(func() {
		_ = r.Process.Kill() // it may have ended
		<-r.ended
	})
	return r
}

// says returns what the runner has said with a word so far.
func (r *runner) says(word string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines[word]
}

// last waits until the runner has said a word so often, and returns what it said last.
func (r *runner) last(t *testing.T, word string, times int) string {
	t.Helper()
	until(t, "the runner says "+word, func() bool { return len(r.says(word)) >= times })
	all := r.says(word)
	return all[len(all)-1]
}
