package fleet_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// Another machine has the session and ships to it between the moment in which this one looks at the database and the
// one in which it has the lease. Nothing is shipped on top of that then, and the lease is given back.
func TestSomebodyHadItBeforeTheLease(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a, b := newMachineWith(t, "a", url, logsNothing), newMachine(t, "b", url)
	first := a.create(t, "auth")
	say(t, first, "of both")
	arrives(t, first)
	require.NoError(t, first.Close(t.Context()))
	id, of := first.ID(), a.store.Incarnation(first.ID())
	common := len(there(t, url, id, of))

	// What b ships is taken out of the database again, and comes back while a waits for the lease.
	p := b.pull(t, id.String())
	second := b.resume(t, p.ID)
	say(t, second, "of b")
	arrives(t, second)
	require.NoError(t, second.Close(t.Context()))
	theirs := there(t, url, id, of)
	require.Greater(t, len(theirs), common)
	db, ctx := connect(t, url), t.Context()
	do := func(sql string, args ...any) {
		t.Helper()
		_, err := db.Exec(ctx, sql, args...)
		require.NoError(t, err)
	}
	do(`CREATE TEMP TABLE newer AS SELECT r.* FROM lopen_data.records r JOIN lopen_data.sessions s USING (session) WHERE s.id = '` + id.String() + `' AND r.seq > (SELECT max(seq) FROM (SELECT seq FROM lopen_data.records r JOIN lopen_data.sessions s USING (session) WHERE s.id = '` + id.String() + `' ORDER BY seq LIMIT ` + strconv.Itoa(common) + `) old)`)
	do(`CREATE TEMP TABLE head AS SELECT session, head_seq, head_sum FROM lopen_data.sessions WHERE id = '` + id.String() + `'`)
	do(`DELETE FROM lopen_data.records r USING newer n WHERE r.session = n.session AND r.seq = n.seq`)
	do(`UPDATE lopen_data.sessions s SET head_seq = r.seq, head_sum = r.sum FROM (SELECT session, seq, sum FROM lopen_data.records ORDER BY seq DESC LIMIT 1) r WHERE r.session = s.session`)
	do(`BEGIN`)
	do(`SELECT FROM lopen_data.sessions FOR UPDATE`)

	third := a.resume(t, id)
	say(t, third, "of a", "and more", "than b said")
	until(t, "a waits for the lease", func() bool {
		return ask[int](t, url, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%take_session%'`) > 0
	})
	do(`INSERT INTO lopen_data.records SELECT * FROM newer`)
	do(`UPDATE lopen_data.sessions s SET head_seq = h.head_seq, head_sum = h.head_sum FROM head h WHERE h.session = s.session`)
	do(`COMMIT`)
	var fenced *fleet.FencedError
	require.ErrorAs(t, third.Replicated(t.Context()), &fenced)
	require.Equal(t, "another machine", fenced.Host)
	require.Equal(t, theirs, there(t, url, id, of), "nothing was shipped over it")
	require.False(t, ask[bool](t, url, `SELECT holder IS NOT NULL AND lease_until > clock_timestamp() FROM lopen_data.sessions`), "nobody has to wait for a lease")
}

// Who leaves waits for a process that is in the middle of sending, and names the session where it waits no longer.
func TestLeaveWaits(t *testing.T) {
	t.Parallel()
	m, proxy, sess, _ := behindProxy(t, patience)
	proxy.Hang()
	say(t, sess, "on its way")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	sending, err := fleet.Leave(ctx, m.store)
	require.NoError(t, err)
	require.Equal(t, []session.ID{sess.ID()}, sending)
	require.Error(t, ctx.Err())
	proxy.Drop()
	require.NoError(t, sess.Close(t.Context()))
	sending, err = fleet.Leave(t.Context(), m.store)
	require.NoError(t, err)
	require.Empty(t, sending)
}
