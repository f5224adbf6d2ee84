package turns

import (
	"slices"
	"testing"
	"time"
)

// A Side is one way to do the work of a benchmark.
type Side struct {
	Name          string
	Before, After func() // before and after each block; not timed
	Do            func()
	Block         int           // how often in a row; 0 means 1
	For           time.Duration // in a row, in place of Block
	Pace          time.Duration // from one call to the next, or as soon as that one returned
	Calls         int           // that Do makes, of what is too short for the clock; 0 means 1
}

const (
	// enough samples that a 99th percentile is not the longest of all
	forP99 = 300
	// kept of a side; beyond that the newest replace the oldest
	maxSamples = 1 << 18
)

// Run has the sides work in turns and reports what a call took, the clock's own time taken
// off (1 ns at the least): the median of each side, and the 99th percentile where there
// are enough samples. -benchtime is that of all sides together; each has one turn at least.
func Run(b *testing.B, sides ...Side) {
	b.Helper()
	clock := clockTime()
	all := make([]samples, len(sides))
	for b.Loop() {
		for i, s := range sides {
			all[i].take(s, clock)
		}
	}
	for i, s := range sides {
		took := all[i].took
		slices.Sort(took)
		b.ReportMetric(took[len(took)/2], s.Name+"-p50-ns")
		if len(took) >= forP99 {
			b.ReportMetric(took[len(took)*99/100], s.Name+"-p99-ns")
		}
	}
	b.ReportMetric(0, "ns/op") // of all sides together: of no use
}

// samples are those of a side, in ns.
type samples struct {
	took  []float64
	calls int
}

// take has a side take its turn.
func (all *samples) take(s Side, clock float64) {
	if s.Before != nil {
		s.Before()
	}
	var tick <-chan time.Time
	if s.Pace > 0 {
		tick = time.Tick(s.Pace)
	}
	first := time.Now()
	for n := 0; n == 0 || n < s.Block || time.Since(first) < s.For; n++ {
		if tick != nil {
			<-tick
		}
		begun := time.Now()
		s.Do()
		ns := max(float64(time.Since(begun))-clock, 1) / float64(max(s.Calls, 1))
		if all.calls < maxSamples {
			all.took = append(all.took, ns)
		} else {
			all.took[all.calls%maxSamples] = ns
		}
		all.calls++
	}
	if s.After != nil {
		s.After()
	}
}

// clockTime is what reading the clock twice takes, in ns.
func clockTime() float64 {
	took := make([]float64, 0, 1001)
	for range cap(took) {
		begun := time.Now()
		took = append(took, float64(time.Since(begun)))
	}
	slices.Sort(took)
	return took[len(took)/2]
}
