package bench

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A side is one way to do the work of a benchmark.
type side struct {
	name   string
	before func() // before each block; not timed
	fn     func()
	block  int // how often in a row; 0 means 1
	calls  int // that fn makes, of what is too short for the clock; 0 means 1
}

const (
	// enough samples that a 99th percentile is not the longest of all
	forP99 = 300
	// kept of a side; beyond that the newest replace the oldest
	maxSamples = 1 << 18
)

// turns has the sides work in turns, so that what else the machine does falls on
// all alike, and reports what a call took, the clock's own time taken off (1 ns at the least): the
// median of each side, and the 99th percentile where there are enough samples.
// -benchtime is that of all sides together.
func turns(b *testing.B, sides ...side) {
	b.Helper()
	clock := clockTime()
	took := make([][]float64, len(sides))
	calls := make([]int, len(sides))
	for b.Loop() {
		for i, s := range sides {
			if s.before != nil {
				s.before()
			}
			for range max(s.block, 1) {
				begun := time.Now()
				s.fn()
				ns := max(float64(time.Since(begun))-clock, 1) / float64(max(s.calls, 1))
				if calls[i] < maxSamples {
					took[i] = append(took[i], ns)
				} else {
					took[i][calls[i]%maxSamples] = ns
				}
				calls[i]++
			}
		}
	}
	for i, s := range sides {
		slices.Sort(took[i])
		b.ReportMetric(took[i][len(took[i])/2], s.name+"-p50-ns")
		if len(took[i]) >= forP99 {
			b.ReportMetric(took[i][len(took[i])*99/100], s.name+"-p99-ns")
		}
	}
	b.ReportMetric(0, "ns/op") // of all sides together: of no use
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

// appendFloor is one append and one fdatasync of so many bytes: what no durable save
// of them on this disk is faster than.
func appendFloor(b *testing.B, bytes int) side {
	b.Helper()
	f, err := os.Create(b.TempDir() + "/floor")
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, f.Close()) })
	record, off := make([]byte, bytes), int64(0)
	return side{name: "append", fn: func() {
		_, err := f.WriteAt(record, off)
		require.NoError(b, err)
		require.NoError(b, datasync(f))
		off += int64(bytes)
	}}
}

// statFloor asks the system about each file.
func statFloor(b *testing.B, names ...string) side {
	return side{name: "stat", fn: func() {
		for _, name := range names {
			if _, err := os.Lstat(name); err != nil {
				require.NoError(b, err)
			}
		}
	}}
}
