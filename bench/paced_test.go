package bench

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// pace is that of a busy loop: 200 steps a second, between which the writer sleeps.
const pace = 5 * time.Millisecond

// paced calls fn at that pace and reports the median of what it took, and the 99th
// percentile.
func paced(b *testing.B, fn func()) {
	var took []time.Duration
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for b.Loop() {
		<-tick.C
		begun := time.Now()
		fn()
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2]), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100]), "p99-ns")
}

// BenchmarkPaced is what the caller of Save waits when it has to wake the writer;
// /send is a bare send to a goroutine that sleeps on its channel.
func BenchmarkPaced(b *testing.B) {
	b.Run("lopen", func(b *testing.B) {
		st := newSession(b, 1000).State()
		a := actors.Start(st, &null{}, actors.Options{})
		b.Cleanup(func() { require.NoError(b, a.Close(context.Background())) })
		paced(b, func() { _ = a.Save(st, session.TriggerStepCompleted) })
	})
	b.Run("send", func(b *testing.B) {
		to, done := make(chan int, 256), make(chan struct{})
		go func() {
			defer close(done)
			for range to {
			}
		}()
		b.Cleanup(func() { close(to); <-done })
		paced(b, func() { to <- 1 })
	})
}
