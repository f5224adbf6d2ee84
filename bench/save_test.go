package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// sizes are the numbers of tasks of a small, a usual and a large plan.
var sizes = []int{10, 1_000, 100_000}

func newSession(b testing.TB, tasks int) *lifecycle.Session {
	b.Helper()
	store, _, err := lifecycle.Init(b.TempDir(), lifecycle.Options{})
	require.NoError(b, err)
	sess, err := store.Create(b.Context(), "bench")
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, store.Close(context.Background())) })
	require.NoError(b, sess.Change(session.TriggerPhaseChanged, func(e *session.Edit) error { workload.Fill(e, tasks); return nil }))
	require.NoError(b, sess.Sync(b.Context()))
	return sess
}

// null is a Committer that costs nothing, so that the caller's side is measured alone.
type null struct{ commits int }

func (n *null) Commit(actors.Batch) (actors.Committed, error) {
	n.commits++
	return actors.Committed{}, nil
}
func (n *null) Publication(bool) func() error { return nil }
func (n *null) Published(error)               {}
func (n *null) Recover() error                { return nil }
func (n *null) Close() error                  { return nil }

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
				t, _ := e.Task(workload.TaskID(7))
				t.Attempts = i
				e.Put(t)
				st, err := e.State()
				require.NoError(b, err)
				_ = a.Save(st, session.TriggerStepCompleted)
			}
		})
	}
}

// BenchmarkDurable is a Save and the Sync that makes it durable. The cost must not
// follow the size of the plan.
func BenchmarkDurable(b *testing.B) {
	for _, n := range append(sizes, 1_000_000) {
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			sess := newSession(b, n)
			for i := 0; b.Loop(); i++ {
				require.NoError(b, sess.Change(session.TriggerStepCompleted, workload.Step{Task: 7, Attempts: i + 1}.Apply))
				require.NoError(b, sess.Sync(b.Context()))
			}
		})
	}
}

// BenchmarkBurst is the time from the last of 10,000 triggers until all are
// durable. /floor is one append and fdatasync of as many bytes as the record has.
func BenchmarkBurst(b *testing.B) {
	b.Run("triggers=10000", func(b *testing.B) {
		sess := newSession(b, 1000)
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			require.NoError(b, sess.Flush(b.Context())) // quiet, as before a burst
			for range 9_999 {
				require.NoError(b, sess.Save(nil, session.TriggerStepCompleted))
			}
			b.StartTimer()
			require.NoError(b, sess.Change(session.TriggerStepCompleted, workload.Step{Task: 7, Attempts: i + 1}.Apply))
			require.NoError(b, sess.Sync(b.Context()))
		}
	})
	b.Run("floor", func(b *testing.B) {
		f, err := os.Create(filepath.Join(b.TempDir(), "floor"))
		require.NoError(b, err)
		defer f.Close()
		record := make([]byte, 450)
		for off := int64(0); b.Loop(); off += int64(len(record)) {
			_, err := f.WriteAt(record, off)
			require.NoError(b, err)
			require.NoError(b, datasync(f))
		}
	})
}

// BenchmarkResume decodes, checks and validates a session's files; /json is
// encoding/json alone on the same bytes, into structs that name what they want.
func BenchmarkResume(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			state, metrics := encoded(b, n)
			b.SetBytes(int64(len(state) + len(metrics)))
			for b.Loop() {
				st, _, err := session.Decode(state, metrics)
				require.NoError(b, err)
				session.Check(st)
			}
		})
		b.Run(fmt.Sprintf("tasks=%d/json", n), func(b *testing.B) {
			state, _ := encoded(b, n)
			b.SetBytes(int64(len(state)))
			for b.Loop() {
				var plain plainState
				require.NoError(b, json.Unmarshal(state, &plain))
				require.NotEmpty(b, plain.Tasks)
			}
		})
	}
}

// encoded returns the files of a session with n tasks. The State itself is garbage by
// then, as in a process that begins: a collection during the measurement would
// have to walk through it.
func encoded(b *testing.B, n int) (state, metrics []byte) {
	b.Helper()
	now := time.Date(2026, 2, 14, 9, 0, 0, 0, time.UTC)
	id, err := session.NewID("bench", now, 1)
	require.NoError(b, err)
	st, err := session.New(id, now)
	require.NoError(b, err)
	e := st.Edit()
	workload.Fill(e, n)
	st, err = e.State()
	require.NoError(b, err)
	return session.EncodeState(st, session.Mark{Seq: 1}), session.EncodeMetrics(st, session.Mark{Seq: 1})
}

// plainState is what a program would read of state.json that wants its tasks.
type plainState struct {
	ID     string      `json:"id"`
	Status string      `json:"status"`
	Phase  string      `json:"phase"`
	Tasks  []plainTask `json:"tasks"`
}

type plainTask struct {
	ID       string      `json:"id"`
	Kind     string      `json:"kind"`
	Name     string      `json:"name"`
	State    string      `json:"state"`
	Attempts int         `json:"attempts"`
	Children []plainTask `json:"children"`
}

// BenchmarkList lists 10,000 sessions; /floor opens, reads 1 KiB of and closes as
// many files one after the other.
func BenchmarkList(b *testing.B) {
	many := many(10_000)
	dir := b.TempDir()
	store, _, err := lifecycle.Init(dir, lifecycle.Options{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, store.Close(context.Background())) })
	now := time.Date(2026, 2, 14, 9, 0, 0, 0, time.UTC)
	var names []string
	for i := range many {
		id, err := session.NewID("bench", now, uint64(i+1))
		require.NoError(b, err)
		st, err := session.New(id, now.Add(time.Duration(i)*time.Second))
		require.NoError(b, err)
		folder := filepath.Join(dir, lifecycle.Dir, "sessions", id.String())
		require.NoError(b, os.Mkdir(folder, 0o700))
		names = append(names, filepath.Join(folder, "state.json"))
		require.NoError(b, os.WriteFile(names[i], session.EncodeState(st, session.Mark{Epoch: 1, Seq: 1}), 0o600))
	}
	b.Run("sessions=10000", func(b *testing.B) {
		for b.Loop() {
			infos, err := store.List()
			require.NoError(b, err)
			require.Len(b, infos, many)
		}
	})
	b.Run("floor", func(b *testing.B) {
		buf := make([]byte, 1<<10)
		for b.Loop() {
			for _, name := range names {
				f, err := os.Open(name)
				require.NoError(b, err)
				_, _ = f.Read(buf)
				require.NoError(b, f.Close())
			}
		}
	})
}
