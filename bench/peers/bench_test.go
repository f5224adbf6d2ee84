package main

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/bench/fusedisk"
	"github.com/lopen-dev/lopen/bench/turns"
	"github.com/lopen-dev/lopen/bench/workload"
)

const (
	usual = 40                   // tasks of a plan as people have them
	pace  = 5 * time.Millisecond // of a busy loop: 200 saves a second
)

// full is n, or less in a quick run.
func full[T any](n, quick T) T {
	if testing.Short() {
		return quick
	}
	return n
}

// BenchmarkPeerWaits is what the caller of Save waits at a steady pace, on an idle disk
// and on one whose fsyncs are slow.
func BenchmarkPeerWaits(b *testing.B) {
	paced := func(c *contender) turns.Side {
		return turns.Side{For: full(1600*time.Millisecond, 100*time.Millisecond), Pace: pace, Do: c.save, After: c.sync}
	}
	b.Run("idle", func(b *testing.B) { inTurns(b, open(b, b.TempDir(), usual, contenders...), paced) })
	b.Run("slow", func(b *testing.B) {
		d := fusedisk.Mount(b)
		all := open(b, d.Dir, usual, contenders...)
		require.NoError(b, d.Hold(50*time.Millisecond))
		inTurns(b, all, paced)
		require.NoError(b, d.Hold(0))
	})
}

// samples are figures by what they are of.
type samples map[string][]float64

func (s samples) add(c *contender, stat string, v float64) {
	s[c.key+"-"+stat] = append(s[c.key+"-"+stat], v)
}

// report reports the medians.
func (s samples) report(b *testing.B) {
	for unit, values := range s {
		b.ReportMetric(median(values), unit)
	}
	b.ReportMetric(0, "ns/op") // of all together: of no use
}

func since(begun time.Time) float64 { return float64(time.Since(begun)) }

// BenchmarkPeerStall is the longest wait while the disk answers no fsync at all. All are
// stalled at once: they wait, and take nothing from each other.
func BenchmarkPeerStall(b *testing.B) {
	d, stall := fusedisk.Mount(b), full(30*time.Second, 3*time.Second)
	all, s := open(b, d.Dir, usual, contenders...), samples{}
	require.NoError(b, d.Stall(stall))
	until := time.Now().Add(stall)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, c := range all {
		wg.Go(func() {
			longest, saves := 0.0, 0.0
			for tick := time.Tick(pace); time.Now().Before(until); {
				<-tick
				begun := time.Now()
				c.save()
				longest = max(longest, since(begun))
				if time.Now().Before(until) {
					saves++
				}
			}
			mu.Lock()
			defer mu.Unlock()
			s.add(c, "longest-ns", longest)
			s.add(c, "saves", saves)
		})
	}
	wg.Wait()
	for _, c := range all {
		c.sync()
	}
	s.report(b)
}

// BenchmarkPeerBurst is many saves back to back.
func BenchmarkPeerBurst(b *testing.B) {
	triggers, all, s := full(10_000, 1000), open(b, b.TempDir(), usual, contenders...), samples{}
	for b.Loop() {
		for _, c := range all {
			begun := time.Now()
			for range triggers {
				c.save()
			}
			saved := time.Now()
			c.sync()
			one, last := float64(saved.Sub(begun))/float64(triggers), since(saved)
			if c.saved == "" { // the last save was waited for by the caller already
				last = one
			}
			s.add(c, "last-ns", last)
			s.add(c, "each-ns", one)
			s.add(c, "all-ns", since(begun))
		}
	}
	s.report(b)
}

// BenchmarkPeerCosts is the fsyncs and bytes of a save, until all is closed.
func BenchmarkPeerCosts(b *testing.B) {
	paced := func(c *contender) { c.durable(); time.Sleep(pace) }
	for _, w := range []struct {
		name         string
		tasks, saves int
		save         func(*contender)
	}{
		{"alone", usual, 50, (*contender).durable}, {"tasks=1000", 1000, 50, (*contender).durable},
		{"paced", usual, 200, paced}, {"burst", usual, 1000, (*contender).save},
	} {
		b.Run(w.name, func(b *testing.B) {
			d, s := fusedisk.Mount(b), samples{}
			for _, c := range open(b, d.Dir, w.tasks, contenders...) {
				before := must(d.Counts())
				for range w.saves {
					w.save(c)
				}
				c.sync()
				c.end()
				after := must(d.Counts())
				s.add(c, "fsyncs", float64(after.Fsyncs-before.Fsyncs)/float64(w.saves))
				s.add(c, "bytes", float64(after.Bytes-before.Bytes)/float64(w.saves))
			}
			s.report(b)
		})
	}
}

// BenchmarkPeerMessage is one message of a conversation, waited for. Those that write one
// file whole would write the conversation again for each.
func BenchmarkPeerMessage(b *testing.B) {
	for _, size := range []int{200, 4 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			text := workload.Text(size, 0)
			inTurns(b, open(b, b.TempDir(), usual, contenders[:recorders]...), func(c *contender) turns.Side { return turns.Side{Do: func() { c.say(text) }} })
		})
	}
}

// BenchmarkPeerTogether is many sessions of one process, each with a folder of its own.
func BenchmarkPeerTogether(b *testing.B) {
	const sessions, saves = 16, 10
	dir, all := b.TempDir(), map[string][]*contender{}
	for range sessions - 1 {
		for _, c := range open(b, dir, usual, contenders...) {
			all[c.key] = append(all[c.key], c)
		}
	}
	inTurns(b, open(b, dir, usual, contenders...), func(c *contender) turns.Side {
		return turns.Side{Calls: sessions * saves, Do: func() {
			var wg sync.WaitGroup
			for _, session := range append(all[c.key], c) {
				wg.Go(func() {
					for range saves {
						session.durable()
					}
				})
			}
			wg.Wait()
		}}
	})
}

// BenchmarkPeerIterations is a session whose metrics grow: what its last saves cost.
func BenchmarkPeerIterations(b *testing.B) {
	s, n := samples{}, full(1000, 200)
	for _, c := range open(b, b.TempDir(), usual, contenders...) {
		took := make([]float64, n)
		for i := range took {
			step := c.next()
			step.Iteration = true
			begun := time.Now()
			require.NoError(b, c.Save(step))
			c.sync()
			took[i] = since(begun)
		}
		last := median(took[n-n/10:])
		s.add(c, "last-ns", last)
		s.add(c, "times", last/median(took[:n/10]))
	}
	s.report(b)
}

// BenchmarkPeerDurable is one save that is waited for, against the size of the plan.
func BenchmarkPeerDurable(b *testing.B) {
	for _, n := range full([]int{10, usual, 1000, 100_000, 1_000_000}, []int{10, usual, 1000, 100_000}) {
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			inTurns(b, open(b, b.TempDir(), n, contenders...), func(c *contender) turns.Side { return turns.Side{Do: c.durable} })
		})
	}
}
