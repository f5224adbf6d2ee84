package lifecycle_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

var (
	cuts  = flag.Int("cuts", 3, "how often TestPowerCut cuts the power of each file system")
	kills = flag.Int("kills", 20, "how often TestKill9 kills a process")
	seed  = flag.Uint64("seed", 0, "seed of TestPowerCut and TestKill9; 0 takes one from the clock")
)

func init() { roles["save"] = roleSave }

// roleSave opens the project's one session and saves until it cannot, one save at
// a time. It prints the number of every State that is durable, the one that it
// found included, and when it was acknowledged.
func roleSave(project string) error {
	ctx := context.Background()
	store, err := lifecycle.Open(project, lifecycle.Options{Command: "lopen run auth"})
	if err != nil {
		return err
	}
	store.Shrink(48<<10, 64<<10) // so that segments end and large records go to history/
	infos, err := store.List()
	if err != nil {
		return err
	}
	sess, err := store.Open(infos[0].ID)
	if err != nil {
		return err
	}
	for n := sess.State().Header().TurnCount; ; n++ {
		if _, err := fmt.Println(n, now()); err != nil {
			return err
		}
		if err := saveTurn(sess, n+1); err != nil {
			return err
		}
		wait := sess.Sync
		if n%7 == 0 {
			wait = sess.Flush
		}
		if err := wait(ctx); err != nil {
			return err
		}
	}
}

// now is the machine's clock, the same for all processes, in nanoseconds.
func now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// saveTurn saves a State that names its number twice, in records of several sizes.
func saveTurn(sess *lifecycle.Session, n int) error {
	pad := 10
	switch {
	case n%40 == 0:
		pad = 64 << 10
	case n%9 == 0:
		pad = 9 << 10
	}
	return sess.Change(session.TriggerTaskCompleted, func(e *session.Edit) error {
		e.Header().TurnCount = n
		e.Header().Data = strictjson.Value(fmt.Sprintf(`{"turn":%d,"pad":%q}`, n, strings.Repeat("x", pad)))
		if n%5 == 0 {
			e.AppendIteration(session.Iteration{Task: "a", Attempt: n, StartedAt: day, OutputTokens: 10})
		}
		return nil
	})
}

// requireWhole says that all of a State is of one save.
func requireWhole(t *testing.T, st *session.State) {
	t.Helper()
	if st.Header().TurnCount == 0 {
		return
	}
	var data struct{ Turn int }
	require.NoError(t, json.Unmarshal(st.Header().Data, &data))
	require.Equal(t, st.Header().TurnCount, data.Turn)
}

// requireGapless says that the records of a journal are numbered from 1 to last.
func requireGapless(t *testing.T, store *lifecycle.Store, id session.ID, last uint64) {
	t.Helper()
	n := uint64(0)
	require.NoError(t, store.Log(id, 0, func(r record.Record) error {
		n++
		require.Equal(t, n, r.Seq)
		return nil
	}))
	require.Equal(t, last, n)
}

// saver is a process in the role "save".
type saver struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	first  chan struct{} // closed when the session is open
	ended  chan struct{} // closed when its stdout has ended

	// Owned by listen until ended is closed.
	acks []ack
}

// ack is a State that a process saw acknowledged as durable.
type ack struct {
	turn int
	at   int64 // when, by now
}

func startSaver(t *testing.T, project string) *saver {
	t.Helper()
	s := &saver{cmd: exec.Command(os.Args[0], project), first: make(chan struct{}), ended: make(chan struct{})}
	s.cmd.Env = append(os.Environ(), roleVar+"=save")
	s.cmd.Stderr = &s.stderr
	out, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	})
	go s.listen(out)
	return s
}

func (s *saver) listen(out io.Reader) {
	defer close(s.ended)
	for r := bufio.NewReader(out); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		var a ack
		if _, err := fmt.Sscan(line, &a.turn, &a.at); err != nil {
			return
		}
		if s.acks = append(s.acks, a); len(s.acks) == 1 {
			close(s.first)
		}
	}
}

// begun waits until the session is open.
func (s *saver) begun(t *testing.T) {
	t.Helper()
	select {
	case <-s.first:
	case <-s.ended:
		s.end(t)
		require.Fail(t, "the process ended by itself", "%s", s.stderr.String())
	case <-time.After(time.Minute):
		require.Fail(t, "the session is not open after a minute")
	}
}

// end waits for the end of a process that was struck.
func (s *saver) end(t *testing.T) {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(time.Minute):
		_ = s.cmd.Process.Kill()
		<-s.ended
		require.Fail(t, "the process goes on after what should have ended it")
	}
	_ = s.cmd.Wait()
}
