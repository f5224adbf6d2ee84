package fleet_test

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

var (
	rounds = flag.Int("rounds", 1, "how often TestFailover and TestKill9 kill")
	many   = flag.Int("sessions", 8, "how many sessions TestFailover ships at once")
)

// TestFailover kills the primary under load and promotes its synchronous standby, as often as
// -rounds says. Of -sessions sessions whatever Replicated acknowledged is at the new primary before
// any client has found it; afterwards all is there, once.
func TestFailover(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts two servers")
	}
	for round := range *rounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) { failover(t, time.Duration(round%10+1)*50*time.Millisecond) })
	}
}

// hosts is a URL of two servers, of which clients take the one that can be written.
func hosts(t *testing.T, of, other string) string {
	t.Helper()
	u, err := url.Parse(of)
	require.NoError(t, err)
	u.Host += "," + other
	q := u.Query()
	q.Set("target_session_attrs", "read-write")
	u.RawQuery = q.Encode()
	return u.String()
}

// A load is a session that is changed without a pause, and what was acknowledged of it.
type load struct {
	*fleet.Session
	said int // messages that were accepted

	mu    sync.Mutex
	acked int // Guarded by mu. Messages that Replicated acknowledged.
}

func failover(t *testing.T, after time.Duration) {
	primary := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"synchronous_commit": "local"}}) // durable commits ask for more
	u := primary.Create("fleet")
	standby := primary.Standby(t)
	standby.Synchronous()
	gate := pgtest.NewProxy(t, standby.Addr()) // so that the standby is looked at before a client finds it
	gate.Drop()
	machines := [2]*machine{}
	for i := range machines {
		machines[i] = newMachine(t, fmt.Sprint("m", i), hosts(t, u, gate.Addr()))
		machines[i].Hasten(fleet.Lease, quick)
	}
	all := make([]*load, *many)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	for i := range all {
		all[i] = &load{Session: machines[i%2].create(t, fmt.Sprint("module", i))}
		wg.Go(func() { all[i].run(ctx) })
	}
	until(t, "each session has acknowledged records", func() bool {
		return !slices.ContainsFunc(all, func(l *load) bool { return l.acknowledged() < 3 })
	})
	time.Sleep(after) // the moment of the blow is the round's own
	primary.Kill()
	acked := make([]int, len(all))
	for i, l := range all {
		acked[i] = l.acknowledged()
	}
	standby.Promote()
	for i, l := range all {
		requireAcked(t, standby.URL("fleet"), l, acked[i])
	}
	stop()
	wg.Wait()
	gate.Heal()
	check := open(t, "check", standby.URL("fleet"))
	for i, l := range all {
		arrives(t, l.Session)
		require.Empty(t, l.Restored())
		requireSame(t, standby.URL("fleet"), machines[i%2], l.ID())
		require.NoError(t, l.Close(t.Context()))
		ld := reads(t, check, l.ID().String())
		require.EqualValues(t, l.said, ld.At.Messages)
	}
}

// requireAcked requires that what is at a server begins with the messages that were acknowledged.
func requireAcked(t *testing.T, url string, l *load, acked int) {
	t.Helper()
	texts := textsOf(t, there(t, url, l.ID(), l.Incarnation()))
	require.GreaterOrEqual(t, len(texts), acked, "an acknowledged record is lost")
	for i, text := range texts {
		require.Equal(t, fmt.Sprint(i), text)
	}
}

func (l *load) acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acked
}

// run says numbers and completes tasks until ctx ends.
func (l *load) run(ctx context.Context) {
	for ctx.Err() == nil {
		for range 5 {
			if l.Append(message(fmt.Sprint(l.said))) == nil {
				l.said++
			}
		}
		_ = l.Change(session.TriggerTaskCompleted, func(e *session.Edit) error {
			e.Header().TurnCount++
			return nil
		})
		if l.Replicated(ctx) == nil {
			l.mu.Lock()
			l.acked = l.said
			l.mu.Unlock()
		}
	}
}

// A wait for the standby that is cancelled is no acknowledgement.
func TestCancelledWaitForTheStandby(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts two servers")
	}
	primary := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"synchronous_commit": "local"}}) // durable commits ask for more
	u := primary.Create("fleet")
	standby := primary.Standby(t)
	standby.Synchronous()
	a := newMachine(t, "a", u)
	a.Hasten(fleet.Lease, patience)
	sess := a.create(t, "auth")
	say(t, sess, "1")
	arrives(t, sess)
	before, _ := sess.Lag()

	standby.Pause()
	say(t, sess, "2")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	replicated := make(chan error, 1)
	go func() { replicated <- sess.Replicated(ctx) }()
	head := func() int64 { return ask[int64](t, u, "SELECT head_seq FROM lopen_data.sessions") }
	cancelled := 0
	for range 3 { // each time the batch is committed, and the shipper wants to know whether it is replicated
		until(t, "a wait is cancelled", func() bool {
			n := ask[int](t, pgtest.Admin(u), "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND usename = 'lopen'")
			cancelled += n
			return n > 0
		})
		require.Eventually(t, func() bool { return head() > int64(before) }, patience, 5*time.Millisecond, "it is committed")
		acked, here := sess.Lag()
		require.Equal(t, before, acked)
		require.Greater(t, here, acked)
		select {
		case err := <-replicated:
			require.Fail(t, "it is not replicated", "%v", err)
		default:
		}
	}
	standby.Resume()
	require.NoError(t, <-replicated)
	primary.Kill()
	standby.Promote()
	require.Equal(t, []string{"1", "2"}, textsOf(t, there(t, standby.URL("fleet"), sess.ID(), sess.Incarnation())))
}
