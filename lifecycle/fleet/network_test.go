package fleet_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// withoutWaiting is how long Save and Sync may take while the database is away. They do not depend
// on it, so that a busy machine is all that they wait for.
const withoutWaiting = quick / 2

// behindProxy is a machine that has a proxy to the database, and a session that has arrived.
func behindProxy(t *testing.T, call time.Duration) (m *machine, proxy *pgtest.Proxy, sess *fleet.Session, url string) {
	t.Helper()
	url = pgtest.Database(t)
	proxy = pgtest.NewProxy(t, addr(t, url))
	m = newMachineWith(t, "a", proxy.URL(url), logsNothing)
	m.Hasten(fleet.Lease, call)
	sess = m.create(t, "auth")
	say(t, sess, "begin")
	arrives(t, sess)
	return m, proxy, sess, url
}

// Whatever the network does the session goes on, and afterwards all is there, once.
func TestNetwork(t *testing.T) {
	t.Parallel()
	const delay = 50 * time.Millisecond
	faults := map[string]func(*pgtest.Proxy){
		"dropped":                      (*pgtest.Proxy).Drop,
		"delayed":                      func(p *pgtest.Proxy) { p.Delay(delay) },
		"half-open":                    (*pgtest.Proxy).Hang,
		"reply of a commit is cut":     func(p *pgtest.Proxy) { p.CutReply("commit\x00") },
		"reply of the lease is cut":    func(p *pgtest.Proxy) { p.CutReply("SET term = term + 1") },
		"reply of a batch is cut":      func(p *pgtest.Proxy) { p.CutReply("INSERT INTO lopen_data.records") },
		"reply of an object is cut":    func(p *pgtest.Proxy) { p.CutReply("INSERT INTO lopen_data.objects") },
		"reply of a checkpoint is cut": func(p *pgtest.Proxy) { p.CutReply("INSERT INTO lopen_data.checkpoints") },
	}
	for _, n := range []int64{1, 300, 2_000, 20_000, 100_000} {
		faults[fmt.Sprintf("cut after %d bytes", n)] = func(p *pgtest.Proxy) { p.CutAfter(n) }
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := quick
			if name == "delayed" {
				call = 20 * (2 * delay) // a transaction has a bounded number of statements
			}
			m, proxy, sess, url := behindProxy(t, call)
			fault(proxy)
			var longest time.Duration
			for i := range 20 {
				m.write(t, fmt.Sprintf("file%d.txt", i), strings.Repeat(fmt.Sprint(i), 5_000))
				begun := time.Now()
				require.NoError(t, sess.Append(message(strings.Repeat(fmt.Sprintf("%5d", i), 2_000))))
				task(t, sess, fmt.Sprint("t", i), session.TaskComplete)
				require.NoError(t, sess.Sync(t.Context()))
				longest = max(longest, time.Since(begun))
				if i%5 == 0 {
					_, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
					require.NoError(t, err)
				}
			}
			require.Less(t, longest, withoutWaiting)
			if name == "dropped" || name == "half-open" {
				acked, here := sess.Lag()
				require.Less(t, acked, here)
				proxy.Heal()
			}
			arrives(t, sess)
			require.NoError(t, sess.Err())
			requireSame(t, url, m, sess.ID())
			require.NoError(t, sess.Close(t.Context()))
			ld := reads(t, open(t, "b", url), "auth")
			require.Equal(t, 20, ld.State.Progress().Done)
			require.EqualValues(t, 4, ask[int](t, url, "SELECT count(*) FROM lopen_data.checkpoints WHERE root IS NOT NULL"))
		})
	}
}

// After a commit whose reply was cut the last record there is read again: nothing is sent twice, and
// nobody is taken for another one.
func TestUnknownOutcome(t *testing.T) {
	t.Parallel()
	m, proxy, sess, url := behindProxy(t, quick)
	for i := range 10 {
		head := ask[int64](t, url, "SELECT head_seq FROM lopen_data.sessions")
		proxy.CutReply("commit\x00")
		say(t, sess, fmt.Sprint(i))
		until(t, "the batch is committed", func() bool { return ask[int64](t, url, "SELECT head_seq FROM lopen_data.sessions") > head })
		arrives(t, sess)
	}
	requireSame(t, url, m, sess.ID())
	require.Empty(t, sess.Restored())
	total := 0
	for _, line := range here(t, m, sess.ID()) {
		total += len(line)
	}
	require.EqualValues(t, total, ask[int64](t, url, "SELECT bytes FROM lopen_data.sessions"), "each record is counted once")
}

// Sessions of one process share a few connections, also while these do not answer.
func TestFewConnections(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	m := newMachineWith(t, "a", url, logsNothing)
	var all []*fleet.Session
	for i := range 20 {
		all = append(all, m.create(t, fmt.Sprint("module", i)))
		say(t, all[i], "hello")
	}
	most := 0
	until(t, "all arrive", func() bool {
		most = max(most, ask[int](t, pgtest.Admin(url), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'lopen'"))
		for _, sess := range all {
			if acked, here := sess.Lag(); acked < here {
				return false
			}
		}
		return true
	})
	require.LessOrEqual(t, most, 4)
	require.Positive(t, most)
}

// With a database that does not answer Close waits a bounded time.
func TestCloseWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	m, proxy, sess, url := behindProxy(t, quick)
	proxy.Hang()
	say(t, sess, "late")
	begun := time.Now()
	require.NoError(t, sess.Close(t.Context()))
	require.Less(t, time.Since(begun), 15*time.Second)
	proxy.Heal()
	sess = m.resume(t, sess.ID())
	arrives(t, sess)
	requireSame(t, url, m, sess.ID())
}

// What an earlier process noted is no acknowledgement: the session may have been deleted since, or an older
// backup restored.
func TestReplicatedAsksTheDatabase(t *testing.T) {
	t.Parallel()
	m, proxy, sess, _ := behindProxy(t, quick)
	require.NoError(t, sess.Close(t.Context()))
	proxy.Drop()
	sess = m.resume(t, sess.ID())
	ctx, cancel := context.WithTimeout(t.Context(), quick/4)
	defer cancel()
	require.ErrorIs(t, sess.Replicated(ctx), context.DeadlineExceeded)
	proxy.Heal()
	arrives(t, sess)
}

// A pooler gives each transaction another connection, of which few are there: nothing that lopen does rests
// on one that stays.
func TestThroughAPooler(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	through := pgtest.Pooler(t, url, 2)
	a, b := newMachine(t, "a", through), newMachine(t, "b", through)
	_, err := a.Migrate(t.Context())
	require.NoError(t, err)
	var all []*fleet.Session
	for i := range 6 {
		module := fmt.Sprintf("module%d", i)
		plans(t, a, module)
		a.write(t, "main.go", fmt.Sprint(i))
		sess := a.create(t, module)
		task(t, sess, "one", session.TaskComplete)
		_, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
		require.NoError(t, err)
		all = append(all, sess)
	}
	for round := range 5 {
		for _, sess := range all {
			say(t, sess, fmt.Sprint(round))
		}
		for _, sess := range all {
			arrives(t, sess)
		}
	}
	for _, sess := range all {
		requireSame(t, url, a, sess.ID())
		require.NoError(t, sess.Close(t.Context()))
	}
	for _, sess := range all {
		p := b.pull(t, sess.ID().String())
		require.Equal(t, []string{"0", "1", "2", "3", "4"}, said(t, b, p.ID))
		mine := b.resume(t, p.ID)
		say(t, mine, "b")
		arrives(t, mine)
		requireSame(t, url, b, p.ID)
	}
	_, err = b.PushPlan(t.Context(), b.store, "module0", false)
	require.NoError(t, err)
}
