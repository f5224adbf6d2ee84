package bench

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/bench/turns"
	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// sizes are the numbers of tasks of a small, a usual and a large plan.
var sizes = []int{10, 1_000, 100_000}

func newSession(b testing.TB, tasks int) *lifecycle.Session { return sessionIn(b, b.TempDir(), tasks) }

// null is a Committer that costs nothing, so that the caller's side is measured alone.
type null struct{ commits int }

func (n *null) Commit(actors.Batch) (actors.Committed, error) {
	n.commits++
	return actors.Committed{}, nil
}
func (n *null) Check() error                  { return nil }
func (n *null) Publication(bool) func() error { return nil }
func (n *null) Published(error)               {}
func (n *null) Recover() error                { return nil }
func (n *null) Close() error                  { return nil }

// slow is a Committer whose disk takes 50 ms for each commit, or hangs until it is let go.
type slow struct {
	null
	letGo chan struct{} // nil does not hang
}

func (s *slow) Commit(b actors.Batch) (actors.Committed, error) {
	if s.letGo != nil {
		<-s.letGo
	} else {
		time.Sleep(50 * time.Millisecond)
	}
	return s.null.Commit(b)
}

// planState is a State of n tasks, and one of which a task differs.
func planState(b testing.TB, n int) (one, other *session.State) {
	b.Helper()
	id, err := session.NewID("bench", time.Unix(0, 0), 1)
	require.NoError(b, err)
	st, err := session.New(id, time.Unix(0, 0))
	require.NoError(b, err)
	e := st.Edit()
	workload.Fill(e, n)
	one, err = e.State()
	require.NoError(b, err)
	e = one.Edit()
	require.NoError(b, workload.StepOf(0, n).Apply(e))
	other, err = e.State()
	require.NoError(b, err)
	return one, other
}

// BenchmarkSave is what a loop waits for one Save back to back, by the number of
// tasks: /idle while commits go to the real disk, /slow while each takes 50 ms,
// /stalled while one hangs. send is a send to a goroutine that receives as fast as
// it can, of which 100 are timed together. /allocs counts the allocations of the caller.
func BenchmarkSave(b *testing.B) {
	const block = 10_000
	sizes := usual(append(slices.Clone(sizes), 1_000_000)...)
	name := func(n int) string { return fmt.Sprintf("tasks=%d", n) }
	saves := func(save func(*session.State, session.Trigger) error, one, other *session.State) func() {
		return func() {
			_ = save(one, session.TriggerStepCompleted)
			one, other = other, one
		}
	}
	b.Run("idle", func(b *testing.B) {
		var sides []turns.Side
		var all []*lifecycle.Session
		for _, n := range sizes {
			sess := newSession(b, n)
			all = append(all, sess)
			one := sess.State()
			e := one.Edit()
			require.NoError(b, workload.StepOf(0, n).Apply(e))
			other, err := e.State()
			require.NoError(b, err)
			sides = append(sides, turns.Side{Name: name(n), Block: block, Before: quiet(b, &all), Do: saves(sess.Save, one, other)})
		}
		to := make(chan int, 256)
		b.Cleanup(func() { close(to) })
		go func() {
			for range to {
			}
		}()
		turns.Run(b, append(sides, turns.Side{Name: "send", Block: block / 100, Before: quiet(b, &all), Calls: 100, Do: func() {
			for range 100 {
				to <- 1
			}
		}})...)
	})
	ends := []int{sizes[0], sizes[len(sizes)-1]}
	var plans [][2]*session.State // of the ends, when they are needed
	for _, disk := range []string{"slow", "stalled"} {
		b.Run(disk, func(b *testing.B) {
			var sides []turns.Side
			for i, n := range ends {
				if i == len(plans) {
					one, other := planState(b, n)
					plans = append(plans, [2]*session.State{one, other})
				}
				one, other := plans[i][0], plans[i][1]
				c := &slow{}
				if disk == "stalled" {
					c.letGo = make(chan struct{})
				}
				a := actors.Start(one, c, actors.Options{})
				b.Cleanup(func() {
					if c.letGo != nil {
						close(c.letGo)
					}
					require.NoError(b, a.Close(context.Background()))
				})
				sides = append(sides, turns.Side{Name: name(n), Block: block, Do: saves(a.Save, one, other)})
			}
			turns.Run(b, sides...)
		})
	}
	b.Run("allocs", func(b *testing.B) {
		st, _ := planState(b, 1000)
		a := actors.Start(st, &null{}, actors.Options{})
		b.Cleanup(func() { require.NoError(b, a.Close(context.Background())) })
		b.ReportAllocs()
		for b.Loop() {
			_ = a.Save(st, session.TriggerStepCompleted)
		}
	})
}

// BenchmarkHeld is a burst of 10,000 triggers while one commit is held back: how
// many commits they take.
func BenchmarkHeld(b *testing.B) {
	st, _ := planState(b, 10)
	for b.Loop() {
		b.ReportMetric(float64(commitsAfterHeld(b, st)-1), "more-commits")
	}
}

// BenchmarkChange is one edit of one task and its Save.
func BenchmarkChange(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			st, _ := planState(b, n)
			a := actors.Start(st, &null{}, actors.Options{})
			b.Cleanup(func() { require.NoError(b, a.Close(context.Background())) })
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				e := a.State().Edit()
				require.NoError(b, workload.Step{Task: 7, Attempts: i}.Apply(e))
				st, err := e.State()
				require.NoError(b, err)
				_ = a.Save(st, session.TriggerStepCompleted)
			}
		})
	}
}

// recordBytes is about what the record of one changed task has.
const recordBytes = 450

// BenchmarkDurable is a Save and the Sync that makes it durable. The cost must not
// follow the size of the plan.
func BenchmarkDurable(b *testing.B) {
	const block = 100
	var sides []turns.Side
	var all []*lifecycle.Session
	for _, n := range usual(append(slices.Clone(sizes), 1_000_000)...) {
		sess, i := newSession(b, n), 0
		all = append(all, sess)
		sides = append(sides, turns.Side{Name: fmt.Sprintf("tasks=%d", n), Block: block, Before: quiet(b, &all), Do: func() {
			i++
			require.NoError(b, sess.Change(session.TriggerStepCompleted, workload.Step{Task: 7, Attempts: i}.Apply))
			require.NoError(b, sess.Sync(b.Context()))
		}})
	}
	floor := appendFloor(b, recordBytes)
	floor.Block, floor.Before = block, quiet(b, &all)
	turns.Run(b, append(sides, floor)...)
}

// quiet returns a function that waits until nothing is written any more, not even the
// readable files: no side pays for what another one left to be written.
func quiet(b *testing.B, all *[]*lifecycle.Session) func() {
	return func() {
		for _, sess := range *all {
			require.NoError(b, sess.Flush(b.Context()))
		}
	}
}

// BenchmarkBurst is the time from the last of 10,000 triggers until all are durable.
func BenchmarkBurst(b *testing.B) {
	sess, i := newSession(b, 1000), 0
	turns.Run(b, turns.Side{Name: "lopen",
		Before: func() {
			require.NoError(b, sess.Flush(b.Context())) // quiet, as before a burst
			for range 9_999 {
				require.NoError(b, sess.Save(nil, session.TriggerStepCompleted))
			}
		},
		Do: func() {
			i++
			require.NoError(b, sess.Change(session.TriggerStepCompleted, workload.Step{Task: 7, Attempts: i}.Apply))
			require.NoError(b, sess.Sync(b.Context()))
		},
	}, appendFloor(b, recordBytes))
}
