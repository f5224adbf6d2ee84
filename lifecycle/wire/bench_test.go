package wire_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
)

// jsonTask is what encoding/json decodes a task into, for comparison.
type jsonTask struct {
	ID          string        `json:"id"`
	Kind        string        `json:"kind"`
	Name        string        `json:"name"`
	State       string        `json:"state"`
	DependsOn   []string      `json:"dependsOn"`
	Box         string        `json:"box"`
	Attempts    int           `json:"attempts"`
	LastError   string        `json:"lastError"`
	StartedAt   time.Time     `json:"startedAt"`
	CompletedAt time.Time     `json:"completedAt"`
	Log         []jsonAttempt `json:"log"`
	Children    []jsonTask    `json:"children"`
}

type jsonAttempt struct {
	Number    int       `json:"number"`
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt"`
	Exit      int       `json:"exit"`
	Artifacts []string  `json:"artifacts"`
}

// plan returns a State of n tasks, in components of 100 tasks each.
func plan(tb testing.TB, n int) *session.State {
	tb.Helper()
	const perComponent = 100
	e := fresh(tb).Edit()
	var roots []string
	for c := 0; c*perComponent < n; c++ {
		comp := session.Task{ID: fmt.Sprintf("component-%d", c), Kind: session.KindComponent, Name: fmt.Sprintf("Component %d", c), State: session.TaskInProgress}
		for i := c * perComponent; i < min(n, (c+1)*perComponent); i++ {
			t := session.Task{ID: fmt.Sprintf("%s/task-%d", comp.ID, i), Parent: comp.ID, Kind: session.KindTask,
				Name: fmt.Sprintf("Write the part that does %d", i), State: session.TaskPending, Box: session.BoxOpen}
			if i%2 == 0 {
				t.State, t.Box, t.Attempts = session.TaskComplete, session.BoxTicked, 1
				t.StartedAt, t.CompletedAt = at, at.Add(time.Duration(i)*time.Millisecond)
				t.Log = []session.Attempt{{Number: 1, StartedAt: t.StartedAt, EndedAt: t.CompletedAt, Artifacts: []string{"src/main.go"}}}
			}
			comp.Children = append(comp.Children, t.ID)
			e.Put(t)
		}
		e.Put(comp)
		roots = append(roots, comp.ID)
	}
	e.SetRoots(roots)
	st, err := e.State()
	require.NoError(tb, err)
	return st
}

// BenchmarkDecode compares reading 100,000 tasks, with every rule checked, with
// a bare encoding/json into structs: less than half is what is asked for.
func BenchmarkDecode(b *testing.B) {
	st := plan(b, 100_000)
	state, metrics := wire.EncodeState(st, session.Mark{Seq: 1}), wire.EncodeMetrics(st, session.Mark{Seq: 1})
	b.Run("session", func(b *testing.B) {
		b.SetBytes(int64(len(state)))
		b.ReportAllocs()
		for b.Loop() {
			st, _, err := decode(state, metrics)
			require.NoError(b, err)
			require.Empty(b, session.Check(st))
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.SetBytes(int64(len(state)))
		b.ReportAllocs()
		for b.Loop() {
			var v struct {
				Tasks []jsonTask `json:"tasks"`
			}
			require.NoError(b, json.Unmarshal(state, &v))
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	st := plan(b, 100_000)
	b.ReportAllocs()
	for b.Loop() {
		b.SetBytes(int64(len(wire.EncodeState(st, session.Mark{Seq: 1}))))
	}
}

func BenchmarkCheck(b *testing.B) {
	st := plan(b, 100_000)
	b.ReportAllocs()
	for b.Loop() {
		session.Check(st)
	}
}
