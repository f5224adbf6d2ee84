//go:build unix

package child

import (
	"context"
	"io"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/process"
)

// The limits of a command do not count the time for which it is stopped.
func TestLimitsDoNotCountAStop(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		Command
		want Cause
	}{
		"timeout": {Command{Timeout: time.Minute}, CauseTimeout},
		"idle":    {Command{IdleTimeout: time.Minute}, CauseIdle},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &program{ended: make(chan struct{}), unwatched: make(chan struct{}), freeze: make(chan chan struct{})}
				cause := make(chan Cause, 1)
				go func() { cause <- p.watch(t.Context(), c.Command, nil) }()
				time.Sleep(50 * time.Second)
				thaw := make(chan struct{})
				p.freeze <- thaw
				<-thaw
				time.Sleep(time.Hour)
				thaw <- struct{}{}
				continued := time.Now()
				<-p.unwatched
				require.Equal(t, 10*time.Second, time.Since(continued))
				close(p.ended)
				require.Equal(t, c.want, <-cause)
			})
		})
	}
}

// A command that has just begun is stopped as soon as it is watched.
func TestStopWhileItBegins(t *testing.T) { //nolint:paralleltest // it stops all commands of this process
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan Result, 1)
	go func() {
		res, err := Run(ctx, Command{Argv: []string{"sleep", "60"}, Env: os.Environ(), Stdout: io.Discard, Stderr: io.Discard, Started: func(int) {
			go WhileStopped(cancel)
			for running.mu.TryLock() { // until WhileStopped has it
				running.mu.Unlock()
				runtime.Gosched()
			}
		}})
		if err != nil {
			t.Error(err)
		}
		ended <- res
	}()
	select {
	case res := <-ended:
		require.Equal(t, CauseCanceled, res.Cause)
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for itself")
	}
}

// A panic ends the command of its goroutine. Who recovers from it finds the others at work.
func TestAPanicThatIsRecovered(t *testing.T) { //nolint:paralleltest // other tests stop all commands of this process
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begin := func(started func(int)) (Result, error) {
		return Run(ctx, Command{Argv: []string{"sleep", "60"}, Env: os.Environ(), Stdout: io.Discard, Stderr: io.Discard, Started: started})
	}
	begun, ended := make(chan int), make(chan Result, 1)
	go func() {
		res, err := begin(func(pid int) { begun <- pid })
		if err != nil {
			t.Error(err)
		}
		ended <- res
	}()
	other := <-begun
	var own int
	require.PanicsWithValue(t, "of a test", func() {
		_, _ = begin(func(pid int) {
			own = pid
			panic("of a test")
		})
	})
	require.False(t, process.GroupLives(own))
	require.True(t, process.GroupLives(other))
	_, err := Run(ctx, Command{Argv: []string{"true"}, Env: os.Environ(), Stdout: io.Discard, Stderr: io.Discard})
	require.NoError(t, err)
	require.False(t, running.over.Load(), "what begins now is not killed")
	cancel()
	require.Equal(t, CauseCanceled, (<-ended).Cause)
}
