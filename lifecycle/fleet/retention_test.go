package fleet_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// Of the same sessions the fleet chooses those that Prune chooses.
func TestBeyondAgreesWithPrune(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a := newMachine(t, "a", url)
	var ids []session.ID
	for i := range 8 {
		sess := a.create(t, fmt.Sprint("module", i))
		say(t, sess, "hello")
		switch i {
		case 6: // stays paused
		default:
			require.NoError(t, sess.Complete(t.Context()))
		}
		if i == 2 {
			require.NoError(t, a.store.SetMeta(t.Context(), sess.ID(), func(m *lifecycle.Meta) error { m.Pinned = true; return nil }))
			task(t, sess, "one", session.TaskComplete) // so that the pin is there as well
			require.NoError(t, sess.Complete(t.Context()))
		}
		arrives(t, sess)
		ids = append(ids, sess.ID())
		if i != 7 { // is held
			require.NoError(t, sess.Close(t.Context()))
		}
	}
	for name, r := range map[string]lifecycle.Retention{
		"none":      {},
		"by number": {Sessions: 3},
		"by age":    {Age: time.Nanosecond},
		"both":      {Sessions: 1, Age: time.Hour},
	} {
		goes, why, err := a.Beyond(t.Context(), r)
		require.NoError(t, err)
		pruned, err := a.store.Prune(t.Context(), r, true)
		require.NoError(t, err)
		var want, got []session.ID
		for _, x := range pruned {
			want = append(want, x.ID)
			require.Equal(t, x.Why, why[x.ID], name)
		}
		for _, x := range goes {
			got = append(got, x.ID)
		}
		require.Equal(t, want, got, name)
		require.NotContains(t, got, ids[2], "pinned")
		require.NotContains(t, got, ids[6], "paused")
		require.NotContains(t, got, ids[7], "held")
	}
}

// A machine whose clock is at 1970 completes a session, and another one's clock is right: by age the
// session goes when the database, too, has had it for that long. By number it goes at once.
func TestBeyondOfAWrongClock(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a := newMachineWith(t, "a", url, lifecycle.Options{Now: func() time.Time { return time.Unix(1000, 0) }})
	for _, module := range []string{"auth", "bill"} {
		sess := a.create(t, module)
		say(t, sess, "hello")
		require.NoError(t, sess.Complete(t.Context()))
		arrives(t, sess)
		require.NoError(t, sess.Close(t.Context()))
	}
	day := lifecycle.Retention{Age: 24 * time.Hour}
	beyond := func(r lifecycle.Retention) (modules []string) {
		goes, _, err := a.Beyond(t.Context(), r)
		require.NoError(t, err)
		for _, x := range goes {
			modules = append(modules, x.Module)
		}
		return modules
	}
	require.Empty(t, beyond(day))
	require.Len(t, beyond(lifecycle.Retention{Sessions: 1, Age: day.Age}), 1)
	execute(t, url, "UPDATE lopen_data.sessions SET updated = now() - interval '2 days' WHERE module = 'auth'")
	require.Equal(t, []string{"auth"}, beyond(day))
}

func TestDeleteOfAHeldSession(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a, b := newMachine(t, "a", url), newMachine(t, "b", url)
	sess := a.create(t, "auth")
	say(t, sess, "hello")
	arrives(t, sess)
	x := find(t, b, "auth")
	held := (*fleet.HeldError)(nil)
	require.ErrorAs(t, b.Delete(t.Context(), &x), &held)
	require.Equal(t, "a", held.Host)
	requireSame(t, url, a, sess.ID())
	say(t, sess, "more")
	require.NoError(t, sess.Close(t.Context()))
	require.ErrorContains(t, b.Delete(t.Context(), &x), "has changed since it was listed")
	x = find(t, b, "auth")
	require.NoError(t, b.Delete(t.Context(), &x))
	require.ErrorIs(t, b.Delete(t.Context(), &x), fleet.ErrNotFound)
	for _, table := range []string{"sessions", "records", "session_objects", "checkpoints", "tasks", "iterations"} {
		require.Zero(t, ask[int](t, url, "SELECT count(*) FROM lopen_data."+table), table)
	}
	sess = a.resume(t, sess.ID())
	require.ErrorIs(t, sess.Replicated(t.Context()), fleet.ErrGone)
}

// Sweeps of other processes beside shippers that name the same objects lose nothing of what is named,
// and remove what nobody names any more.
func TestSweepBesideShippers(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	sweeper := newMachine(t, "sweeps", url)
	// Without the hour for which they stay.
	execute(t, url, `DO $$ BEGIN EXECUTE replace(pg_get_functiondef('lopen_data.sweep()'::regprocedure), '1 hour', '0 hours'); END $$`)
	const machines, times = 3, 5
	ctx, stop := context.WithCancel(t.Context())
	swept, ended := 0, make(chan error, 1)
	kick := make(chan struct{}, 1) // a sweep begins when somebody ships, or has deleted: not all the time
	sweep := func() {
		select {
		case kick <- struct{}{}:
		default:
		}
	}
	go func() {
		for {
			select {
			case <-kick:
			case <-ctx.Done():
			}
			n, _, err := sweeper.Sweep(ctx)
			if swept += n; err != nil {
				ended <- err
				return
			}
		}
	}()
	t.Run("ship", func(t *testing.T) {
		for i := range machines {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				m := newMachine(t, fmt.Sprint("m", i), url)
				for n := range times { // the same objects at all machines; each is deleted and shipped again
					for k := range 10 {
						m.write(t, fmt.Sprintf("dir%d/file%d", n%2, k), fmt.Sprintf("content %d %d", n%2, k))
					}
					sess := m.create(t, fmt.Sprintf("m%d-%d", i, n))
					_, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
					require.NoError(t, err)
					sweep()
					arrives(t, sess)
					require.NoError(t, sess.Close(t.Context()))
					if n < times-1 {
						require.NoError(t, m.Delete(t.Context(), ptr(find(t, m, sess.ID().String()))))
						sweep()
					}
				}
			})
		}
	})
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
	t.Logf("%d objects swept", swept)
	require.Positive(t, swept)
	for i := range machines {
		b := newMachine(t, "b", url)
		p := b.pull(t, fmt.Sprintf("m%d-%d", i, times-1))
		requireCheckpoints(t, b, p.ID, "dir1/file3", "content 1 3")
		_, damaged, err := b.store.VerifyBlobs(t.Context())
		require.NoError(t, err)
		require.Empty(t, damaged)
		b.Close()
	}
	left, err := sweeper.List(t.Context(), "")
	require.NoError(t, err)
	for _, x := range left {
		require.NoError(t, sweeper.Delete(t.Context(), &x))
	}
	_, _, err = sweeper.Sweep(t.Context())
	require.NoError(t, err)
	require.Zero(t, ask[int](t, url, "SELECT count(*) FROM lopen_data.objects"))
	require.Zero(t, ask[int](t, url, "SELECT count(*) FROM lopen_data.chunks"))
}

// What is younger than an hour stays: a batch that names it may be on its way.
func TestSweepLeavesWhatIsYoung(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a := newMachine(t, "a", url)
	a.write(t, "main.go", "package main\n")
	sess := a.create(t, "auth")
	_, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	arrives(t, sess)
	require.NoError(t, sess.Close(t.Context()))
	require.NoError(t, a.Delete(t.Context(), ptr(find(t, a, "auth"))))
	n, _, err := a.Sweep(t.Context())
	require.NoError(t, err)
	require.Zero(t, n)
	execute(t, url, "UPDATE lopen_data.objects SET created = now() - interval '2 hours'")
	n, bytes, err := a.Sweep(t.Context())
	require.NoError(t, err)
	require.Positive(t, n)
	require.Positive(t, bytes)
	require.Zero(t, ask[int](t, url, "SELECT count(*) FROM lopen_data.objects"))
}

// The clocks of two machines are two hours apart, and nothing depends on it.
func TestClocksApart(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	at := func(by time.Duration) lifecycle.Options {
		return lifecycle.Options{Now: func() time.Time { return time.Now().Add(by) }}
	}
	a, b := newMachineWith(t, "a", url, at(time.Hour)), newMachineWith(t, "b", url, at(-time.Hour))
	sess := a.create(t, "auth")
	id := sess.ID()
	held := (*fleet.HeldError)(nil)
	for i := range 4 {
		from, to := a, b
		if i%2 == 1 {
			from, to = b, a
		}
		say(t, sess, fmt.Sprint(i))
		task(t, sess, fmt.Sprint("t", i), session.TaskComplete)
		arrives(t, sess)
		x := find(t, to, "auth")
		require.Less(t, x.Ago.Abs(), time.Minute)
		_, err := to.Pull(t.Context(), to.store, &x)
		require.ErrorAs(t, err, &held)
		require.InDelta(t, fleet.Lease.Seconds(), held.Left.Seconds(), 20)
		require.NoError(t, sess.Close(t.Context()))
		requireSame(t, url, from, id)
		p := to.pull(t, "auth")
		require.Equal(t, id, p.ID)
		require.Zero(t, p.Fork)
		sess = to.resume(t, id)
		require.Equal(t, i+1, sess.State().Progress().Done)
		require.NoError(t, sess.Err())
	}
	require.Equal(t, []string{"0", "1", "2", "3"}, said(t, a, id))
}

// A function of the database that says that there is always more is called so often, and no more.
func TestSweepEnds(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a := newMachine(t, "a", url)
	execute(t, url, `CREATE OR REPLACE FUNCTION lopen_data.sweep(OUT objects bigint, OUT bytes bigint) LANGUAGE sql AS 'SELECT 1::bigint, 1::bigint'`)
	n, _, err := a.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, 500, n)
}
