package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// sizes are the numbers of tasks of a small, a usual and a large plan.
var sizes = []int{10, 1_000, 100_000}

// fill gives a State n tasks in components of a hundred.
func fill(e *session.Edit, n int) {
	var roots []string
	for c := 0; c*100 < n; c++ {
		component := session.Task{ID: fmt.Sprintf("component-%d", c), Name: "component", Kind: session.KindComponent, State: session.TaskPending}
		for i := c * 100; i < min(n, (c+1)*100); i++ {
			id := fmt.Sprintf("%s/task-%d", component.ID, i)
			component.Children = append(component.Children, id)
			e.Put(session.Task{ID: id, Parent: component.ID, Name: "do one thing", Kind: session.KindTask, State: session.TaskPending})
		}
		e.Put(component)
		roots = append(roots, component.ID)
	}
	e.SetRoots(roots)
}

func newSession(b *testing.B, tasks int) *lifecycle.Session {
	b.Helper()
	store, _, err := lifecycle.Init(b.TempDir(), lifecycle.Options{})
	require.NoError(b, err)
	sess, err := store.Create(b.Context(), "bench")
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, store.Close(context.Background())) })
	require.NoError(b, sess.Change(session.TriggerPhaseChanged, func(e *session.Edit) error { fill(e, tasks); return nil }))
	require.NoError(b, sess.Sync(b.Context()))
	return sess
}

// null is a Committer that costs nothing, so that the caller's side is measured alone.
type null struct{ commits int }

func (n *null) Commit(actors.Batch) (actors.Committed, error) {
	n.commits++
	return actors.Committed{}, nil
}
func (n *null) Publish(bool) error { return nil }
func (n *null) Recover() error     { return nil }
func (n *null) Close() error       { return nil }

// BenchmarkSave is what a loop waits for one Save while commits go on.
func BenchmarkSave(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			sess := newSession(b, n)
			st := sess.State()
			a := actors.Start(st, &null{}, actors.Options{})
			b.Cleanup(func() { require.NoError(b, a.Close(context.Background())) })
			b.ReportAllocs()
			for b.Loop() {
				_ = a.Save(st, session.TriggerStepCompleted)
			}
		})
	}
}

// BenchmarkChange is one edit of one task and its Save.
func BenchmarkChange(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			sess := newSession(b, n)
			a := actors.Start(sess.State(), &null{}, actors.Options{})
			b.Cleanup(func() { require.NoError(b, a.Close(context.Background())) })
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				e := a.State().Edit()
				t, _ := e.Task("component-0/task-7")
				t.Attempts = i
				e.Put(t)
				st, err := e.State()
				require.NoError(b, err)
				_ = a.Save(st, session.TriggerStepCompleted)
			}
		})
	}
}

// BenchmarkDurable is a Save and the Sync that makes it durable; /floor is one
// write and fsync of a file of the same size on the same disk.
func BenchmarkDurable(b *testing.B) {
	for _, n := range sizes[:2] {
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			sess := newSession(b, n)
			for i := 0; b.Loop(); i++ {
				require.NoError(b, sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
					e.Header().TurnCount = i
					return nil
				}))
				require.NoError(b, sess.Sync(b.Context()))
			}
		})
		b.Run(fmt.Sprintf("tasks=%d/floor", n), func(b *testing.B) {
			data := session.EncodeState(newSession(b, n).State(), session.Mark{Seq: 1})
			f, err := os.Create(filepath.Join(b.TempDir(), "floor"))
			require.NoError(b, err)
			defer f.Close()
			for b.Loop() {
				_, err := f.WriteAt(data, 0)
				require.NoError(b, err)
				require.NoError(b, f.Sync())
			}
		})
	}
}

// BenchmarkResume decodes, checks and validates a session's files.
func BenchmarkResume(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			st := newSession(b, n).State()
			state, metrics := session.EncodeState(st, session.Mark{Seq: 1}), session.EncodeMetrics(st, session.Mark{Seq: 1})
			b.SetBytes(int64(len(state) + len(metrics)))
			for b.Loop() {
				_, _, err := session.Decode(state, metrics)
				require.NoError(b, err)
			}
		})
	}
}
