package main

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/bench/turns"
	"github.com/lopen-dev/lopen/bench/workload"
)

const (
	usual = 40                   // tasks of a plan as people have them
	pace  = 5 * time.Millisecond // of a busy loop: 200 saves a second
	hold  = 50 * time.Millisecond
)

// full is n, or less in a quick run.
func full[T any](n, quick T) T {
	if testing.Short() {
		return quick
	}
	return n
}

// sides have each contender do something in its turn.
func sides(all []*contender, side func(*contender) turns.Side) (sides []turns.Side) {
	for _, c := range all {
		s := side(c)
		s.Name = c.key
		sides = append(sides, s)
	}
	return sides
}

// BenchmarkPeerWaits is what the caller of Save waits at a steady pace, on an idle disk
// and on one whose fsyncs are slow.
func BenchmarkPeerWaits(b *testing.B) {
	paced := func(c *contender) turns.Side {
		return turns.Side{For: full(1600*time.Millisecond, 100*time.Millisecond), Pace: pace, Do: c.save, After: c.sync}
	}
	b.Run("idle", func(b *testing.B) { turns.Run(b, sides(openAll(b, b.TempDir(), usual), paced)...) })
	b.Run("slow", func(b *testing.B) {
		d := mount(b)
		all := openAll(b, d.Dir, usual)
		require.NoError(b, d.Hold(hold))
		turns.Run(b, sides(all, paced)...)
		require.NoError(b, d.Hold(0))
	})
}

// samples are figures by what they are of.
type samples map[string][]float64

func (s samples) add(c *contender, stat string, v ...float64) {
	s[c.key+"-"+stat] = append(s[c.key+"-"+stat], v...)
}

// report reports the medians.
func (s samples) report(b *testing.B) {
	for unit, values := range s {
		b.ReportMetric(median(values), unit)
	}
	b.ReportMetric(0, "ns/op") // of all together: of no use
}

// each has all contenders do a work, until -benchtime is over.
func each(b *testing.B, all []*contender, work func(*contender, samples)) {
	s := samples{}
	for b.Loop() {
		for _, c := range all {
			work(c, s)
		}
	}
	s.report(b)
}

func since(begun time.Time) float64 { return float64(time.Since(begun)) }

// BenchmarkPeerStall is the longest wait while the disk answers no fsync at all. All are
// stalled at once: they wait, and take nothing from each other.
func BenchmarkPeerStall(b *testing.B) {
	d, stall := mount(b), full(30*time.Second, 3*time.Second)
	all := openAll(b, d.Dir, usual)
	longest, saves := make([]float64, len(all)), make([]float64, len(all))
	require.NoError(b, d.Stall(stall))
	until := time.Now().Add(stall)
	var wg sync.WaitGroup
	for i, c := range all {
		wg.Go(func() {
			tick := time.Tick(pace)
			for time.Now().Before(until) {
				<-tick
				begun := time.Now()
				c.save()
				longest[i] = max(longest[i], since(begun))
				if time.Now().Before(until) {
					saves[i]++
				}
			}
		})
	}
	wg.Wait()
	s := samples{}
	for i, c := range all {
		s.add(c, "longest-ns", longest[i])
		s.add(c, "saves", saves[i])
		c.sync()
	}
	s.report(b)
}

// BenchmarkPeerBurst is many saves back to back.
func BenchmarkPeerBurst(b *testing.B) {
	triggers := full(10_000, 1000)
	each(b, openAll(b, b.TempDir(), usual), func(c *contender, s samples) {
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
	})
}

// BenchmarkPeerCosts is the fsyncs, bytes and commits of a save, until all is closed.
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
			d, s := mount(b), samples{}
			for _, c := range openAll(b, d.Dir, w.tasks) {
				first := commits(c)
				before, err := d.Counts()
				require.NoError(b, err)
				for range w.saves {
					w.save(c)
				}
				c.sync()
				last := commits(c)
				c.end()
				after, err := d.Counts()
				require.NoError(b, err)
				s.add(c, "commits", (last-first)/float64(w.saves))
				s.add(c, "fsyncs", float64(after.Fsyncs-before.Fsyncs)/float64(w.saves))
				s.add(c, "bytes", float64(after.Bytes-before.Bytes)/float64(w.saves))
			}
			s.report(b)
		})
	}
}

// commits are those of a contender so far: as many as there were saves, or records of the
// log.
func commits(c *contender) float64 {
	p, ok := c.Peer.(*project)
	if !ok {
		return float64(c.steps)
	}
	n, err := p.records()
	require.NoError(c.tb, err)
	return n
}

// BenchmarkPeerMessage is one message of a conversation, waited for.
func BenchmarkPeerMessage(b *testing.B) {
	for _, size := range []int{200, 4 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			all := slices.DeleteFunc(openAll(b, b.TempDir(), usual), func(c *contender) bool { _, ok := c.Peer.(Appender); return !ok })
			text := workload.Text(size, 0)
			turns.Run(b, sides(all, func(c *contender) turns.Side { return turns.Side{Do: func() { c.say(text) }} })...)
		})
	}
}

func (c *contender) say(text string) {
	require.NoError(c.tb, c.Peer.(Appender).Append(text))
	c.sync()
}

// BenchmarkPeerTogether is many sessions of one process, each with a folder of its own.
func BenchmarkPeerTogether(b *testing.B) {
	const sessions, saves = 16, 10
	dir, all := b.TempDir(), [sessions][]*contender{}
	for i := range all {
		all[i] = openAll(b, dir, usual)
	}
	s := samples{}
	for b.Loop() {
		for i, c := range all[0] {
			var wg sync.WaitGroup
			begun := time.Now()
			for _, session := range all {
				wg.Go(func() {
					for range saves {
						session[i].durable()
					}
				})
			}
			wg.Wait()
			s.add(c, "each-ns", since(begun)/float64(sessions*saves))
		}
	}
	s.report(b)
}

// BenchmarkPeerIterations is a session whose metrics grow: what its last saves cost.
func BenchmarkPeerIterations(b *testing.B) {
	s, n := samples{}, full(1000, 200)
	for _, c := range openAll(b, b.TempDir(), usual) {
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
			turns.Run(b, sides(openAll(b, b.TempDir(), n), func(c *contender) turns.Side { return turns.Side{Do: c.durable} })...)
		})
	}
}
