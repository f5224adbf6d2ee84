package fleet_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A session that was closed while the database was away is not held any longer than its lease.
func TestClosedWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	proxy := pgtest.NewProxy(t, addr(t, url))
	a, b := hasty(t, "a", proxy.URL(url)), hasty(t, "b", url)
	sess := a.create(t, "auth")
	arrives(t, sess)
	require.Equal(t, 1, a.Renewing())
	proxy.Drop()
	say(t, sess, "not shipped")
	until(t, "the shipper learns that the database is away", func() bool { return sess.Err() != nil })
	require.NoError(t, sess.Close(t.Context()))
	require.Zero(t, a.Renewing())
	proxy.Heal()
	var held *fleet.HeldError
	until(t, "the lease ends", func() bool {
		x, err := b.Find(t.Context(), "auth")
		require.NoError(t, err)
		_, err = b.Pull(t.Context(), b.store, &x)
		if err != nil {
			require.ErrorAs(t, err, &held)
			require.Equal(t, "a", held.Host)
		}
		return err == nil
	})
}

// What was pulled and not shipped others may take once the Fleet is closed.
func TestCloseGivesBack(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a, b, c := newMachine(t, "a", url), newMachine(t, "b", url), newMachine(t, "c", url)
	sess := a.create(t, "auth")
	arrives(t, sess)
	require.NoError(t, sess.Close(t.Context()))
	b.pull(t, "auth")
	x, err := c.Find(t.Context(), "auth")
	require.NoError(t, err)
	require.True(t, x.Held)
	require.Equal(t, "b", x.Host)
	_, err = c.Pull(t.Context(), c.store, &x)
	require.ErrorAs(t, err, new(*fleet.HeldError))
	b.Close()
	c.pull(t, "auth")
}

// A session that is opened again at once is renewed, though the one before it is being closed.
func TestReopenedAtOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a := newMachine(t, "a", url)
	a.Hasten(fleet.Lease, quick)
	for range 10 {
		s, err := a.store.Create(t.Context(), "auth")
		require.NoError(t, err)
		first, err := a.Ship(a.store, s)
		require.NoError(t, err)
		arrives(t, first)
		closed := make(chan error, 1)
		go func() { closed <- first.Close(context.Background()) }()
		<-first.Done()
		s, err = a.store.Open(first.ID())
		require.NoError(t, err)
		second := a.ship(t, s)
		task(t, second, "one", session.TaskComplete)
		arrives(t, second)
		require.NoError(t, <-closed)
		require.Equal(t, 1, a.Renewing())
		require.NoError(t, second.Close(t.Context()))
	}
}

// Each try after an error takes the lease again, and one goroutine renews it.
func TestOneGoroutineRenews(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	proxy := pgtest.NewProxy(t, addr(t, url))
	a := newMachineWith(t, "a", proxy.URL(url), lifecycle.Options{})
	sess := a.create(t, "auth")
	for range 5 {
		arrives(t, sess)
		proxy.Drop()
		say(t, sess, "more")
		until(t, "the shipper learns that the database is away", func() bool { return sess.Err() != nil })
		proxy.Heal()
	}
	arrives(t, sess)
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	mine := 0
	for _, one := range strings.Split(string(stacks), "\n\n") {
		if strings.Contains(one, "renewAll(") && strings.Contains(one, pointer(a.Fleet)) {
			mine++
		}
	}
	require.Equal(t, 1, mine)
}

// A lease is renewed: it lasts longer than once.
func TestLeaseIsRenewed(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a, b := hasty(t, "a", url), hasty(t, "b", url)
	sess := a.create(t, "auth")
	arrives(t, sess)
	for end := time.Now().Add(2 * quick); time.Now().Before(end); {
		x, err := b.Find(t.Context(), "auth")
		require.NoError(t, err)
		require.True(t, x.Held)
		_, err = b.Pull(t.Context(), b.store, &x)
		require.ErrorAs(t, err, new(*fleet.HeldError))
		time.Sleep(50 * time.Millisecond)
	}
	require.EqualValues(t, 1, ask[int64](t, url, "SELECT term FROM lopen_data.sessions"))
}
