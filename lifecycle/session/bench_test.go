package session_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// plan is a State of n tasks beneath components of 100 each, or, flat, beneath one.
func plan(tb testing.TB, n, perComponent int) *session.State {
	tb.Helper()
	id, err := session.NewID("auth", at, 1)
	require.NoError(tb, err)
	st, err := session.New(id, at)
	require.NoError(tb, err)
	e := st.Edit()
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
	st, err = e.State()
	require.NoError(tb, err)
	return st
}

// BenchmarkFlat changes one task of a plan whose only component has all tasks,
// and compares the two States.
func BenchmarkFlat(b *testing.B) {
	for _, n := range []int{10, 1_000_000} {
		st := plan(b, n, n)
		b.Run(fmt.Sprintf("change/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			attempts := 0
			for b.Loop() {
				attempts++
				e := st.Edit()
				t, _ := e.Task("component-0/task-7")
				t.Attempts = attempts
				e.Put(t)
				_, err := e.State()
				require.NoError(b, err)
			}
		})
		e := st.Edit()
		t, _ := e.Task("component-0/task-7")
		t.Attempts = 77
		e.Put(t)
		next, err := e.State()
		require.NoError(b, err)
		b.Run(fmt.Sprintf("diff/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				session.Diff(st, next, func(string, *session.Task, *session.Task) bool { return true })
			}
		})
		b.Run(fmt.Sprintf("parent/%d", n), func(b *testing.B) {
			for b.Loop() {
				e := st.Edit()
				t, _ := e.Task("component-0")
				t.State = session.TaskComplete
				e.Put(t)
				_, err := e.State()
				require.NoError(b, err)
			}
		})
	}
}

func BenchmarkBuild(b *testing.B) {
	for b.Loop() {
		plan(b, 1_000_000, 1_000_000)
	}
}

func BenchmarkCheck(b *testing.B) {
	st := plan(b, 100_000, 100)
	b.ReportAllocs()
	for b.Loop() {
		session.Check(st)
	}
}
