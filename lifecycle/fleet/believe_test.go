package fleet_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A row that cannot be true fences nobody: the session here goes on, nothing is shipped to the row, and all is shipped
// once the row is as it was.
func TestRowsThatCannotBeTrue(t *testing.T) {
	t.Parallel()
	const update = "UPDATE lopen_data.sessions SET "
	for name, c := range map[string]struct{ sql, says string }{
		"a head without records":       {update + "head_seq = head_seq + 5", "its last record is"},
		"the last head":                {update + "head_seq = 9223372036854775807", "its last record is"},
		"no record":                    {"WITH r AS (DELETE FROM lopen_data.records) " + update + "head_sum = 'x'", "it has no record"},
		"the last term":                {update + "term = 9223372036854775807", "the term 9223372036854775807"},
		"a lease without end":          {update + "holder = 'b', term = term + 1, lease_until = 'infinity'", "its lease is over in"},
		"a sum":                        {update + "head_sum = 'x'", "has another sum"},
		"another record":               {"WITH r AS (UPDATE lopen_data.records SET bytes = bytes || ' ' WHERE seq > 1) " + update + "head_sum = 'x'", "has another sum"},
		"a record that is none":        {"WITH r AS (INSERT INTO lopen_data.records SELECT session, head_seq + 1, 'x', sha256(head_sum || 'x') FROM lopen_data.sessions) " + update + "head_seq = head_seq + 1, bytes = bytes + 1, head_sum = sha256(head_sum || 'x')", "is no record"},
		"more than there is room for":  {"WITH r AS (INSERT INTO lopen_data.records SELECT session, head_seq + 1, 'x', 'x' FROM lopen_data.sessions) " + update + "head_seq = head_seq + 1, head_sum = 'x', bytes = 1000000000000000", "are free"},
		"records of another beginning": {update + "base_seq = head_seq, head_sum = 'x'", "has another sum"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t)
			a := newMachineWith(t, "a", url, logsNothing)
			sess := a.create(t, "auth")
			say(t, sess, "1")
			arrives(t, sess)
			execute(t, url, "CREATE TABLE records_were AS SELECT * FROM lopen_data.records")
			execute(t, url, "CREATE TABLE sessions_were AS SELECT * FROM lopen_data.sessions")
			execute(t, url, c.sql)
			say(t, sess, "2")
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			doubt := (*fleet.SessionError)(nil)
			require.ErrorAs(t, sess.Replicated(ctx), &doubt)
			require.ErrorContains(t, doubt, c.says)
			require.NotErrorAs(t, sess.Err(), new(*fleet.FencedError))
			require.NoError(t, sess.Save(nil, session.TriggerStepCompleted))
			require.NoError(t, sess.Sync(t.Context()))
			x := find(t, a, "auth")
			if name != "a record that is none" && name != "more than there is room for" { // that takes a Fetch
				require.ErrorAs(t, a.Believe(t.Context(), &x), &doubt)
			}
			b := newMachineWith(t, "b", url, lifecycle.Options{})
			_, err := b.Pull(t.Context(), b.store, &x)
			require.Error(t, err)

			execute(t, url, "DELETE FROM lopen_data.records")
			execute(t, url, "INSERT INTO lopen_data.records SELECT * FROM records_were")
			execute(t, url, "UPDATE lopen_data.sessions s SET (term, holder, host, lease_until, base_seq, head_seq, head_sum, bytes) = (SELECT term, holder, host, lease_until, base_seq, head_seq, head_sum, bytes FROM sessions_were)")
			arrives(t, sess)
			require.NoError(t, sess.Close(t.Context()))
			requireSame(t, url, a, sess.ID())
			require.Contains(t, said(t, a, sess.ID()), "2")
		})
	}
}

// A module that is held, or put off, for longer than lopen ever does is free, and one that cannot be taken keeps no other.
func TestClaimsBesideRowsThatCannotBeTrue(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a := newMachine(t, "a", url)
	for _, module := range []string{"auth", "web"} {
		plans(t, a, module)
		_, err := a.PushPlan(t.Context(), a.store, module, false)
		require.NoError(t, err)
	}
	execute(t, url, `UPDATE lopen_data.plans SET term = 9223372036854775807 WHERE module = 'auth'`)
	for _, sql := range []string{
		`UPDATE lopen_data.plans SET holder = 'b', lease_until = 'infinity'`,
		`UPDATE lopen_data.plans SET retry_at = 'infinity'`,
		`INSERT INTO lopen_data.sessions (project, id, incarnation, module, term, holder, host, lease_until)
			SELECT project, 'web-20261128-1', '00', 'web', 1, 'b', 'b', now() + interval '1 year' FROM lopen_data.plans WHERE module = 'web'`,
	} {
		execute(t, url, sql)
		c := firstClaim(t, a)
		require.NotNil(t, c, sql)
		require.Equal(t, "web", c.Module)
		require.NoError(t, c.GiveBack(t.Context(), false))
	}
}
