package session_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// flat returns a State of one component with n tasks.
func flat(tb testing.TB, n int) *session.State {
	tb.Helper()
	e := fresh(tb).Edit()
	component := task("component", "")
	for i := range n {
		t := task(fmt.Sprintf("component/task-%d", i), component.ID)
		component.Children = append(component.Children, t.ID)
		e.Put(t)
	}
	e.Put(component)
	e.SetRoots([]string{component.ID})
	st, err := e.State()
	require.NoError(tb, err)
	return st
}

// BenchmarkFlat changes one task of a plan whose only component has all tasks,
// and compares the two States.
func BenchmarkFlat(b *testing.B) {
	for _, n := range []int{10, 1_000_000} {
		st := flat(b, n)
		b.Run(fmt.Sprintf("change/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			attempts := 0
			for b.Loop() {
				attempts++
				e := st.Edit()
				t, _ := e.Task("component/task-7")
				t.Attempts = attempts
				e.Put(t)
				_, err := e.State()
				require.NoError(b, err)
			}
		})
		e := st.Edit()
		t, _ := e.Task("component/task-7")
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
				t, _ := e.Task("component")
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
		flat(b, 1_000_000)
	}
}
