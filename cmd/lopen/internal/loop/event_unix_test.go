//go:build unix

package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/writer/plain"
)

// recorder is a UI that keeps warnings.
type recorder struct {
	UI
	mu    sync.Mutex
	lines []string // Guarded by mu.
}

func (h *recorder) Warn(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, fmt.Sprintf(format, args...))
}

// eventful is a runner that tells a shell command of events, with a limit for each.
func eventful(t *testing.T, command string, limit time.Duration) (*runner, *recorder, string) {
	dir, ui := t.TempDir(), &recorder{}
	store, err := lifecycle.OpenUnsaved(dir, lifecycle.Options{})
	require.NoError(t, err)
	sess, err := store.Create(t.Context(), "m")
	require.NoError(t, err)
	log := zerolog.New(zerolog.NewTestWriter(t))
	r := &runner{sess: sess, log: &log, cfg: Config{Module: "m", Project: dir, OnEvent: command, UI: ui, Environ: os.Environ(),
		ExitCode: func(error) int { return 75 }}}
	r.events = newEvents(r.log, limit, r.onEvent(limit))
	return r, ui, dir
}

func TestEventsComeInOrder(t *testing.T) {
	t.Parallel()
	r, ui, dir := eventful(t, `cat >>told; echo "$LOPEN_EVENT $LOPEN_MODULE $LOPEN_SESSION_ID" >>env; echo x >/dev/tty || echo no terminal >>env`, eventLimit)
	r.emit(event{Event: eventBegun})
	r.emit(event{Event: eventDone, Task: "a", Name: "A\nsk-ant-api03-" + strings.Repeat("Ab1", 31) + "AA", Duration: 2})
	r.emit(r.ended(errors.New("the limit lasts"), time.Now()))
	r.events.stop()
	require.Empty(t, ui.lines)
	delivered, err := os.ReadFile(filepath.Join(dir, "told"))
	require.NoError(t, err)
	var names []string
	var last event
	for text := range strings.Lines(string(delivered)) {
		last = event{}
		require.NoError(t, json.Unmarshal([]byte(text), &last))
		names = append(names, last.Event)
		require.Equal(t, "m", last.Module)
		require.Equal(t, dir, last.Project)
		require.NotZero(t, last.At)
	}
	require.Equal(t, []string{eventBegun, eventDone, eventEnded}, names)
	require.Equal(t, 75, *last.Exit)
	require.Equal(t, "the limit lasts", last.Text)
	require.NotContains(t, string(delivered), "Ab1Ab1")
	id := r.sess.State().ID().String()
	env, err := os.ReadFile(filepath.Join(dir, "env"))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("run-begun m %[1]s\nno terminal\ntask-done m %[1]s\nno terminal\nrun-ended m %[1]s\nno terminal\n", id), string(env))
}

func TestAFailingOnEventIsWarnedOfOnce(t *testing.T) {
	t.Parallel()
	r, ui, _ := eventful(t, `exit 3`, eventLimit) // leaves its stdin unread
	r.emit(event{Event: eventBegun})
	r.emit(event{Event: eventDone, Text: strings.Repeat("\x01", 1<<20)})
	r.events.stop()
	require.Equal(t, []string{`on_event "exit 3" at run-begun: exit 3; --log-level debug shows what it prints`}, ui.lines)
}

// A command that hangs is ended with the processes that it started, and the next event is
// delivered.
func TestAHangingOnEventIsEnded(t *testing.T) {
	t.Parallel()
	const limit = 2 * eventGrace
	r, ui, dir := eventful(t, `[ $LOPEN_EVENT = task-done ] && { touch done; exit; }; trap '' TERM; sleep 600 & echo $! >pid; wait; sleep 600`, limit)
	begun := time.Now()
	r.emit(event{Event: eventBegun})
	r.emit(event{Event: eventDone})
	require.Less(t, time.Since(begun), limit/2) // out of the run's way
	require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(dir, "done")); return err == nil }, time.Minute, 5*time.Millisecond)
	r.events.stop()
	require.Len(t, ui.lines, 1)
	require.Contains(t, ui.lines[0], "at run-begun: ended after 1s")
	var pid int
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	require.NoError(t, err)
	_, err = fmt.Sscan(string(text), &pid)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return gone(pid) }, time.Minute, 5*time.Millisecond)
}

// gone reports whether a process has ended, also if nobody has waited for it yet.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil {
		_, state, _ := strings.Cut(string(stat), ") ")
		return strings.HasPrefix(state, "Z")
	}
	return syscall.Kill(pid, 0) != nil
}

// The number of waiting events is bounded: the oldest are lost, and the run never waits.
func TestEventsThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	logger := zerolog.New(&log)
	var delivered []string
	busy, free := make(chan struct{}), make(chan struct{})
	e := newEvents(&logger, time.Minute, func(_ context.Context, m message) {
		if delivered = append(delivered, m.name); len(delivered) == 1 {
			close(busy)
			<-free
		}
	})
	e.send(message{name: "first"})
	<-busy
	for i := range maxWaiting + 2 {
		e.send(message{name: fmt.Sprint(i)})
	}
	close(free)
	e.stop()
	require.Len(t, delivered, 1+maxWaiting)
	require.Equal(t, []string{"first", "2", "3"}, delivered[:3])
	require.Equal(t, fmt.Sprint(maxWaiting+1), delivered[maxWaiting])
	require.Equal(t, 2, strings.Count(log.String(), "event dropped"))
}

// The end of the run ends the delivery in progress and drops the events that still wait.
func TestTheEndOfTheRunWaitsForABoundedTime(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	logger := zerolog.New(&log)
	var delivered []string
	begun := make(chan struct{})
	e := newEvents(&logger, 3*eventGrace, func(ctx context.Context, m message) {
		delivered = append(delivered, m.name)
		close(begun)
		<-ctx.Done()
	})
	e.send(message{name: "slow"})
	e.send(message{name: "left out"})
	<-begun
	e.stop()
	<-e.over
	require.Equal(t, []string{"slow"}, delivered)
	require.Contains(t, log.String(), "left out")
}

// TestEventsTellNothingAlive fills each text of an event, whatever its name: nobody knows where it is sent to, and
// most places take Markdown.
func TestEventsTellNothingAlive(t *testing.T) {
	t.Parallel()
	r, _, _ := eventful(t, "true", eventLimit)
	r.events.stop()
	var delivered []byte
	r.events = newEvents(r.log, eventLimit, func(_ context.Context, m message) { delivered = append(delivered, m.data...) })
	pieces := []string{"![a](http://x.example/a.png)", "[a](javascript:x)", "<img src=x>", "http://x.example", "@all", "`", "\x1b[2J", "\u202e", "a", " ", "\n"}
	const all = 60
	for i := range all {
		e := event{Event: eventFailed}
		v := reflect.ValueOf(&e).Elem()
		for f := range v.NumField() {
			if v.Field(f).Kind() == reflect.String && v.Type().Field(f).Name != "Event" {
				v.Field(f).SetString(pieces[i%len(pieces)] + pieces[(i/3+f)%len(pieces)] + pieces[(i/7+2*f)%len(pieces)])
			}
		}
		r.emit(e)
	}
	r.events.stop()
	github, n := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser(), 0
	for line := range strings.Lines(string(delivered)) {
		var told map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &told))
		n++
		for name, v := range told {
			s, ok := v.(string)
			if !ok {
				continue
			}
			require.Equal(t, plain.Text(s), s, name)
			require.NoError(t, ast.Walk(github.Parse(text.NewReader([]byte(s))), func(node ast.Node, _ bool) (ast.WalkStatus, error) {
				require.NotContains(t, []ast.NodeKind{ast.KindLink, ast.KindImage, ast.KindAutoLink, ast.KindRawHTML, ast.KindHTMLBlock}, node.Kind(), "%s: %q", name, s)
				return ast.WalkContinue, nil
			}))
		}
	}
	require.Equal(t, all, n)
}
