package actors_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

func entry(body string) actors.Entry { return actors.Entry{Body: []byte(body)} }

// texts are the bodies of the entries that were committed, in order.
func texts(d *disk) []string {
	all := []string{}
	for _, b := range d.commits() {
		for _, e := range b.Entries {
			all = append(all, string(e.Body))
		}
	}
	return all
}

func TestAppendIsCommittedInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &disk{entered: make(chan struct{}, 64), release: make(chan struct{})}
		a := actors.Start(newState(t), d, actors.Options{})
		begun := time.Now()
		want := []string{}
		for i := range 100 {
			one, two := fmt.Sprint(i), fmt.Sprint(i, "b")
			require.NoError(t, a.Append(entry(one), entry(two)))
			want = append(want, one, two)
		}
		require.NoError(t, a.Append())
		require.Zero(t, time.Since(begun), "in the bubble's clock any wait would show")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, a.Sync(ctx), context.DeadlineExceeded, "an entry that is not durable is not acknowledged")
		close(d.release)
		require.NoError(t, a.Sync(t.Context()))
		require.Equal(t, want, texts(d))
		n := len(d.commits())
		require.NoError(t, a.Sync(t.Context()))
		require.NoError(t, a.Close(t.Context()))
		require.Len(t, d.commits(), n, "nothing is left to commit")
	})
}

// Neither a Save nor a barrier is needed.
func TestAppendIsCommittedByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		a := actors.Start(newState(t), d, actors.Options{})
		require.NoError(t, a.Append(entry("a")))
		synctest.Wait()
		require.Equal(t, []string{"a"}, texts(d))
		require.NoError(t, a.Close(t.Context()))
	})
}

// A State never names a message that is not in its commit or an earlier one.
func TestEntriesComeWithTheStateThatNamesThem(t *testing.T) {
	t.Parallel()
	d := &disk{}
	a := actors.Start(newState(t), d, actors.Options{})
	st := a.State()
	for i := 1; i <= 500; i++ {
		require.NoError(t, a.Append(entry(fmt.Sprint(i))))
		st = turn(t, st, i)
		require.NoError(t, a.Save(st, session.TriggerStepCompleted))
	}
	require.NoError(t, a.Close(t.Context()))
	n := 0
	for _, b := range d.commits() {
		n += len(b.Entries)
		require.GreaterOrEqual(t, n, turns(b.State))
	}
	require.Equal(t, 500, n)
}

func TestFullBacklogTakesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &disk{entered: make(chan struct{}, 64), release: make(chan struct{})}
		a := actors.Start(newState(t), d, actors.Options{Backlog: 1024})
		for _, body := range []string{"a", "b", "c"} {
			require.NoError(t, a.Append(entry(body)))
			synctest.Wait() // the first entry is in a commit by now, and still counts
		}
		require.ErrorIs(t, a.Append(entry("d")), actors.ErrBacklogFull)
		require.ErrorIs(t, a.Append(entry("d"), entry("e")), actors.ErrBacklogFull, "all or none")
		require.NoError(t, a.Save(nil, session.TriggerStepCompleted), "a Save is taken")
		close(d.release)
		require.NoError(t, a.Sync(t.Context()))
		require.NoError(t, a.Append(entry("f"), entry("g"), entry("h")), "there is room again")
		require.NoError(t, a.Close(t.Context()))
		require.Equal(t, []string{"a", "b", "c", "f", "g", "h"}, texts(d))
	})
}

func TestBacklogCountsWhatAnAttemptHolds(t *testing.T) {
	t.Parallel()
	d := &disk{}
	a := actors.Start(newState(t), d, actors.Options{Backlog: 4096})
	big := func(size int) actors.Entry { return actors.Entry{Attempt: &record.Attempt{}, Size: size} }
	require.ErrorIs(t, a.Append(big(4096)), actors.ErrBacklogFull)
	require.ErrorIs(t, a.Append(entry(string(make([]byte, 4096)))), actors.ErrBacklogFull)
	require.NoError(t, a.Append(big(100)))
	require.NoError(t, a.Close(t.Context()))
	require.Len(t, d.commits()[0].Entries, 1)
}

func TestPauseKeepsEntries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("no space left on device")
		d := &disk{fail: full}
		a := actors.Start(newState(t), d, actors.Options{Backlog: 1024})
		require.NoError(t, a.Append(entry("a")))
		synctest.Wait()
		var paused *actors.PausedError
		require.ErrorAs(t, a.Append(entry("b")), &paused)
		require.ErrorIs(t, paused, full)
		require.ErrorIs(t, a.Unpause(t.Context()), full)
		require.ErrorAs(t, a.Append(entry("c")), &paused)
		require.ErrorIs(t, a.Append(entry("d")), actors.ErrBacklogFull, "those of the failed commit are held too")
		d.setFail(nil)
		require.NoError(t, a.Unpause(t.Context()))
		require.Equal(t, []string{"a", "b", "c"}, texts(d))
		require.NoError(t, a.Append(entry("d")))
		require.NoError(t, a.Close(t.Context()))
		require.Equal(t, []string{"a", "b", "c", "d"}, texts(d), "once and in order")
	})
}

func TestCloseCountsEntriesThatAreLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("no space left on device")
		d := &disk{fail: full}
		a := actors.Start(newState(t), d, actors.Options{})
		require.NoError(t, a.Append(entry("a"), entry("b")))
		synctest.Wait()
		require.ErrorIs(t, a.Append(entry("c")), full)
		err := a.Close(t.Context())
		var lost *actors.NotDurableError
		require.ErrorAs(t, err, &lost)
		require.Equal(t, 3, lost.Entries, "the one that came during the pause as well")
		require.ErrorContains(t, err, "3 entries")
		require.ErrorIs(t, a.Append(entry("d")), actors.ErrClosed)
	})
}

// An accepted entry is committed once and a refused one never, whatever other
// goroutines do.
func TestAppendRaces(t *testing.T) {
	t.Parallel()
	for range 200 {
		d := &disk{}
		a := actors.Start(newState(t), d, actors.Options{Mailbox: 1, Backlog: 4096})
		var wg sync.WaitGroup
		var want [3][]string
		for g := range want {
			wg.Go(func() {
				for i := range 50 {
					body := fmt.Sprint(g, "-", i)
					switch err := a.Append(entry(body)); {
					case err == nil:
						want[g] = append(want[g], body)
					case errors.Is(err, actors.ErrClosed):
						return
					case !errors.Is(err, actors.ErrBacklogFull):
						t.Error(err)
					}
				}
			})
		}
		wg.Go(func() {
			for range 20 {
				_ = a.Save(nil, session.TriggerStepCompleted)
			}
		})
		wg.Go(func() { _ = a.Sync(t.Context()) })
		wg.Go(func() { require.NoError(t, a.Close(t.Context())) })
		wg.Wait()
		var got [3][]string
		for _, body := range texts(d) {
			got[body[0]-'0'] = append(got[body[0]-'0'], body)
		}
		require.Equal(t, want, got)
	}
}
