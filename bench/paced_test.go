package bench

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/bench/turns"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// pace is that of a busy loop: 200 steps a second, between which the writer sleeps. The
// sides have every other one.
const pace = 5 * time.Millisecond

// BenchmarkPaced is what the caller of Save waits when it has to wake the writer; send
// is a bare send to a goroutine that sleeps on its channel.
func BenchmarkPaced(b *testing.B) {
	st, _ := planState(b, 1000)
	a := actors.Start(st, &null{}, actors.Options{})
	b.Cleanup(func() { require.NoError(b, a.Close(context.Background())) })
	to, done := make(chan int, 256), make(chan struct{})
	go func() {
		defer close(done)
		for range to {
		}
	}()
	b.Cleanup(func() { close(to); <-done })
	tick := time.NewTicker(pace)
	defer tick.Stop()
	wait := func() { <-tick.C }
	turns.Run(b, turns.Side{Name: "lopen", Before: wait, Do: func() { _ = a.Save(st, session.TriggerStepCompleted) }},
		turns.Side{Name: "send", Before: wait, Do: func() { to <- 1 }})
}
