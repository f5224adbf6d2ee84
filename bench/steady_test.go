package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/bench/fusedisk"
	"github.com/lopen-dev/lopen/bench/turns"
	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// planTasks is a plan as people have them.
const planTasks = 40

// rates are steps a second: of a loop that waits for its agent, and of a busy one.
var rates = []int{1, 20, 200}

// saving returns a function that saves one step and waits until that is durable.
func saving(tb testing.TB, sess *lifecycle.Session) func() {
	i := 0
	return func() {
		require.NoError(tb, sess.Change(session.TriggerStepCompleted, workload.StepOf(i, planTasks).Apply))
		require.NoError(tb, sess.Sync(tb.Context()))
		i++
	}
}

// BenchmarkSteady is a save of a usual plan until it is durable: /alone when nothing
// else is left to be written, and at a pace, at which the sides have every other turn.
func BenchmarkSteady(b *testing.B) {
	b.Run("alone", func(b *testing.B) {
		all := []*lifecycle.Session{newSession(b, planTasks)}
		floor := appendFloor(b, recordBytes)
		floor.Before = quiet(b, &all)
		turns.Run(b, turns.Side{Name: "lopen", Before: quiet(b, &all), Do: saving(b, all[0])}, floor)
	})
	for _, rate := range rates {
		b.Run(fmt.Sprintf("rate=%d", rate), func(b *testing.B) {
			save, floor := saving(b, newSession(b, planTasks)), appendFloor(b, recordBytes)
			tick := time.NewTicker(time.Second / time.Duration(2*rate))
			defer tick.Stop()
			floor.Before = func() { <-tick.C }
			turns.Run(b, turns.Side{Name: "lopen", Before: floor.Before, Do: save}, floor)
		})
	}
}

// fsyncs counts those of d from now until the returned function is called.
func fsyncs(tb testing.TB, d *fusedisk.Disk) func() float64 {
	before, err := d.Counts()
	require.NoError(tb, err)
	return func() float64 {
		after, err := d.Counts()
		require.NoError(tb, err)
		return float64(after.Fsyncs - before.Fsyncs)
	}
}

// fsyncsOf is how many fsyncs a call has that comes so many times a second for as long
// as there is more, what a session writes between two of them included.
func fsyncsOf(tb testing.TB, rate int, more func() bool, call func(*lifecycle.Session) func()) float64 {
	tb.Helper()
	d := fusedisk.Mount(tb)
	fn := call(sessionIn(tb, d.Dir, planTasks))
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	counted, calls := fsyncs(tb, d), 0
	for ; more(); calls++ {
		fn()
		<-tick.C
	}
	return counted() / float64(calls)
}

// BenchmarkFsyncs is how many fsyncs a save has that is waited for.
func BenchmarkFsyncs(b *testing.B) {
	for _, rate := range rates {
		b.Run(fmt.Sprintf("rate=%d", rate), func(b *testing.B) {
			b.ReportMetric(fsyncsOf(b, rate, b.Loop, func(sess *lifecycle.Session) func() { return saving(b, sess) }), "fsyncs/save")
		})
	}
}

// BenchmarkLargeCommit is the longest that a caller of Save waits, at 200 a second, while
// a change of every task of a large plan is made durable and shown.
func BenchmarkLargeCommit(b *testing.B) {
	tasks := many(1_000_000)
	sess := newSession(b, tasks)
	var states [2]*session.State
	for i := range states {
		e := sess.State().Edit()
		for task := range tasks {
			require.NoError(b, workload.Step{Task: task, Attempts: i + 1}.Apply(e))
		}
		var err error
		states[i], err = e.State()
		require.NoError(b, err)
	}
	tick := time.NewTicker(pace)
	defer tick.Stop()
	var longest time.Duration
	save := func(st *session.State) {
		begun := time.Now()
		err := sess.Save(st, session.TriggerStepCompleted)
		longest = max(longest, time.Since(begun))
		require.NoError(b, err)
	}
	for i := 0; b.Loop(); i++ {
		save(states[i%len(states)])
		done := make(chan error, 1)
		go func() { done <- sess.Flush(b.Context()) }()
		for committed := false; !committed; {
			select {
			case err := <-done:
				require.NoError(b, err)
				committed = true
			case <-tick.C:
				save(nil)
			}
		}
	}
	b.ReportMetric(float64(longest)/1e6, "longest-ms")
}

// BenchmarkBusy is 1,000 sessions that save once a second each, and wait for nothing:
// /disk is what this costs the processor and the memory, /fsyncs what it costs the disk,
// counted of 20 sessions and multiplied.
func BenchmarkBusy(b *testing.B) {
	run := func(b *testing.B, dir string, sessions int, begin func()) (took time.Duration, all []*lifecycle.Session) {
		store, _, err := lifecycle.Init(dir, lifecycle.Options{})
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, store.Close(context.Background())) })
		all = create(b, store, sessions, planTasks)
		tick := time.NewTicker(time.Second / time.Duration(sessions))
		defer tick.Stop()
		begin()
		begun := time.Now()
		for i := 0; b.Loop(); i++ {
			for _, sess := range all {
				<-tick.C
				require.NoError(b, sess.Change(session.TriggerStepCompleted, workload.StepOf(i, planTasks).Apply))
			}
		}
		took = time.Since(begun)
		b.ReportMetric(float64(b.N*sessions)/took.Seconds(), "saves/s")
		return took, all
	}
	b.Run("disk", func(b *testing.B) {
		sessions, dir, heap := many(1000), b.TempDir(), heapBytes()
		var cpu time.Duration
		took, all := run(b, dir, sessions, func() { cpu = cpuTime() })
		cpu = cpuTime() - cpu
		b.ReportMetric(float64(heapBytes()-heap)/float64(sessions)*1000/(1<<20), "heap-MiB")
		if cpu > 0 {
			b.ReportMetric(100*cpu.Seconds()/took.Seconds(), "cpu-%")
		}
		for _, sess := range all { // a disk that does not keep up is noticed
			require.NoError(b, sess.Sync(b.Context()))
		}
	})
	b.Run("fsyncs", func(b *testing.B) {
		const sessions = 20
		d := fusedisk.Mount(b)
		var counted func() float64
		took, _ := run(b, d.Dir, sessions, func() { counted = fsyncs(b, d) })
		b.ReportMetric(counted()/took.Seconds()*1000/sessions, "fsyncs/s")
	})
}
