package bench

import (
	"context"
	"errors"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// idle opens sessions and returns what they hold while nothing happens: bytes of heap
// and descriptors. The number of descriptors is negative where the system does not say.
func idle(t testing.TB, sessions int) (heap, descriptors int64) {
	t.Helper()
	store, _, err := lifecycle.Init(t.TempDir(), lifecycle.Options{})
	require.NoError(t, err)
	before, open := heapBytes(), openFiles()
	all := create(t, store, sessions, 0)
	heap, descriptors = heapBytes()-before, openFiles()-open
	runtime.KeepAlive(all)
	require.NoError(t, store.Close(context.Background()))
	return heap, descriptors
}

// create makes sessions with a plan of so many tasks.
func create(t testing.TB, store *lifecycle.Store, sessions, tasks int) []*lifecycle.Session {
	all := make([]*lifecycle.Session, sessions)
	var g errgroup.Group
	g.SetLimit(32) // they share the disk's commits
	for i := range all {
		g.Go(func() (err error) {
			if all[i], err = store.Create(context.Background(), "bench"); err != nil || tasks == 0 {
				return err
			}
			err = all[i].Change(session.TriggerPhaseChanged, func(e *session.Edit) error { workload.Fill(e, tasks); return nil })
			return errors.Join(err, all[i].Flush(context.Background()))
		})
	}
	require.NoError(t, g.Wait())
	return all
}

func heapBytes() int64 {
	runtime.GC()
	runtime.GC() // what the first one only found
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func openFiles() int64 {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return int64(len(entries))
}

// BenchmarkIdle is what 1,000 live sessions hold.
func BenchmarkIdle(b *testing.B) {
	sessions := many(1000)
	for b.Loop() {
		heap, descriptors := idle(b, sessions)
		b.ReportMetric(float64(heap)/float64(sessions)*1000/(1<<20), "heap-MiB")
		b.ReportMetric(float64(descriptors)/float64(sessions), "descriptors/session")
	}
}
