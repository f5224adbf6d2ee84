package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStandIn has the stand-in work on tasks of each kind that ends at once, as a loop that
// leaves the boxes to it would, and counts what a person finds.
func TestStandIn(t *testing.T) {
	t.Parallel()
	n := &night{name: "a loop", dir: t.TempDir(), tasks: 40, ticks: true}
	require.NoError(t, n.prepare())
	start := func(task int) (int, string) {
		var out bytes.Buffer
		s := &standIn{project: n.project(), state: n.state(), plan: n.plan(), task: task, out: &out}
		s.begin()
		return s.work(), out.String()
	}
	for task, want := range map[int]int{1: 0, 2: 0, 5: 1, 10: 0, 12: 0, 26: 1, 28: 0, 32: 0} {
		exit, out := start(task)
		require.Equal(t, want, exit, "task %d", task)
		require.Contains(t, out, `"session_id"`)
	}
	_, out := start(5) // its limit is over, or the mood is
	require.Contains(t, out, "Done.")
	_, _ = start(1)
	m := morning{name: n.name, Took: time.Minute}
	require.NoError(t, n.look(&m))
	require.Equal(t, morning{name: n.name, Ticked: 9, Done: 4, False: 5, Repeated: 1, Starts: 10, Took: time.Minute}, withoutOthers(m))
	require.False(t, m.Builds, "task 10 does not compile")
	require.Contains(t, table([]morning{m}, 40), "| boxes ticked without the work | 5 |")
}

func withoutOthers(m morning) morning { m.Builds = false; return m }

// TestCheck has the check of the plan judge: a file that is missing is named.
func TestCheck(t *testing.T) {
	t.Parallel()
	n := &night{dir: t.TempDir(), tasks: 3, ticks: true}
	require.NoError(t, n.prepare())
	s := &standIn{project: n.project(), state: n.state(), plan: n.plan(), task: 2, out: &bytes.Buffer{}}
	s.done()
	require.NoError(t, os.Remove(filepath.Join(n.project(), "t02.go")))
	s.validate()
	require.True(t, isDone(n.project(), 2), "what an honest agent finds missing it writes again")
}
