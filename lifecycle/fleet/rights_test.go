package fleet_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
)

// as is a URL as another role, whose password is secret.
func as(t *testing.T, of, user string) string {
	t.Helper()
	u, err := url.Parse(of)
	require.NoError(t, err)
	u.User = url.UserPassword(user, "secret")
	return u.String()
}

// withRoles makes the tables and two roles, runner and reader, and returns the URL of the owner.
func withRoles(t *testing.T) string {
	t.Helper()
	owner := pgtest.Start(t, pgtest.Options{}).Create("fleet")
	_, err := open(t, "a", owner).Migrate(t.Context())
	require.NoError(t, err)
	execute(t, pgtest.Admin(owner), fleet.SQL(true))
	execute(t, pgtest.Admin(owner), "CREATE ROLE reader LOGIN PASSWORD 'secret' IN ROLE lopen_reader; CREATE ROLE runner LOGIN PASSWORD 'secret' IN ROLE lopen_runner")
	return owner
}

// A runner ships, and changes nothing that others shipped: not with statements of its own either.
func TestRunnerOnlyAddsContents(t *testing.T) {
	t.Parallel()
	owner := withRoles(t)
	a := &machine{dir: t.TempDir(), Fleet: open(t, "a", as(t, owner, "runner"))}
	var err error
	a.store, _, err = lifecycle.Init(a.dir, lifecycle.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.store.Close(context.Background())) })
	require.True(t, check(t, a.Fleet, "rights").OK)
	require.Contains(t, check(t, open(t, "b", as(t, owner, "reader")), "rights").Found, "without sessions INSERT")
	a.write(t, "main.go", "package main\n")
	sess := a.create(t, "auth")
	_, _, err = sess.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	arrives(t, sess)
	plans(t, a, "auth")
	_, err = a.PushPlan(t.Context(), a.store, "auth", false)
	require.NoError(t, err)

	runner := connect(t, as(t, owner, "runner"))
	for _, table := range []string{"sessions", "records", "objects", "chunks", "links", "session_objects", "checkpoints", "plans", "schema"} {
		for _, sql := range []string{"DELETE FROM lopen_data." + table, "TRUNCATE lopen_data." + table + " CASCADE", "DROP TABLE lopen_data." + table, "ALTER TABLE lopen_data." + table + " ADD x integer"} {
			requireDenied(t, runner, sql)
		}
	}
	for _, sql := range []string{
		"UPDATE lopen_data.records SET bytes = ''", "UPDATE lopen_data.chunks SET bytes = ''", "UPDATE lopen_data.objects SET created = '2000-01-01'",
		"UPDATE lopen_data.links SET child = parent", "UPDATE lopen_data.checkpoints SET root = NULL", "UPDATE lopen_data.sessions SET project = 'q'",
		"UPDATE lopen_data.sessions SET id = 'x'", "UPDATE lopen_data.plans SET module = 'x'", "UPDATE lopen_data.session_objects SET name = 'x'",
		"UPDATE lopen_data.session_objects SET hash = '\\x00'", "UPDATE lopen_data.sessions SET lease_until = '-infinity'", "UPDATE lopen_data.sessions SET holder = NULL",
		"UPDATE lopen_data.sessions SET term = term + 1", "UPDATE lopen_data.sessions SET head_seq = 0", "UPDATE lopen_data.plans SET lease_until = '-infinity'",
		"INSERT INTO lopen_data.sessions (project, id, incarnation, module, term, host, lease_until, head_seq) VALUES ('p', 'x', 'x', 'x', 0, '', now(), 9)",
		"UPDATE lopen_data.schema SET least_client = 9", "CREATE TABLE lopen_data.x ()", "CREATE FUNCTION lopen.x() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
		"CREATE OR REPLACE FUNCTION lopen_data.sweep(OUT objects bigint, OUT bytes bigint) LANGUAGE sql AS 'SELECT 1::bigint, 1::bigint'",
	} {
		requireDenied(t, runner, sql)
	}
	for _, sql := range []string{"SELECT lopen_data.sweep()", "SELECT lopen_data.delete_session(1, 1)"} {
		requireDenied(t, connect(t, as(t, owner, "reader")), sql)
	}
	require.NoError(t, sess.Close(t.Context()))
	requireSame(t, owner, a, sess.ID())
}

func requireDenied(t *testing.T, c *pgx.Conn, sql string) {
	t.Helper()
	_, err := c.Exec(t.Context(), sql)
	require.Error(t, err, sql)
	require.Regexp(t, `permission denied|must be owner`, err.Error(), sql)
}

// What only the owner may delete goes by functions that look first: nothing that somebody holds, nothing that
// something names, nothing that is young. Names of the caller's mislead them in nothing.
func TestOwnersFunctions(t *testing.T) {
	t.Parallel()
	owner := withRoles(t)
	a := &machine{dir: t.TempDir(), Fleet: open(t, "a", owner)}
	var err error
	a.store, _, err = lifecycle.Init(a.dir, lifecycle.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.store.Close(context.Background())) })
	a.write(t, "main.go", "package main\n")
	sess := a.create(t, "auth")
	_, _, err = sess.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	arrives(t, sess)
	plans(t, a, "web")
	_, err = a.PushPlan(t.Context(), a.store, "web", false)
	require.NoError(t, err)
	require.NotNil(t, firstClaim(t, a))
	admin := pgtest.Admin(owner)
	execute(t, admin, `CREATE SCHEMA evil; GRANT ALL ON SCHEMA evil TO public;
		INSERT INTO lopen_data.objects (hash, size, created) VALUES ('\x01', 1, now()), ('\x02', 2, now() - interval '2 hours')`)
	runner := connect(t, as(t, owner, "runner"))
	_, err = runner.Exec(t.Context(), `CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS 'SELECT ''2999-01-01''::timestamptz';
		CREATE FUNCTION evil.never(timestamptz, timestamptz) RETURNS boolean LANGUAGE sql AS 'SELECT true';
		CREATE OPERATOR evil.<= (leftarg = timestamptz, rightarg = timestamptz, procedure = evil.never);
		CREATE OPERATOR evil.< (leftarg = timestamptz, rightarg = timestamptz, procedure = evil.never);
		SET search_path = evil, pg_catalog`, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	call := func(sql string) (n int64) {
		require.NoError(t, runner.QueryRow(t.Context(), sql).Scan(&n))
		return n
	}
	// Who reads the row, as anyone may, is not its holder by that.
	for _, sql := range []string{
		"SELECT coalesce(lopen_data.take_session(session, holder, 'x', 60000, holder, term)::integer, 0) FROM lopen_data.sessions",
		"SELECT count(*) FROM lopen_data.sessions s, lopen_data.renew_sessions(ARRAY[s.session], ARRAY[s.term], s.holder, 0)",
		"SELECT coalesce(lopen_data.ship_session(session, incarnation, term, holder, 'x', 60000, head_seq, head_sum, 1, '', 1, 1)::integer, 0) FROM lopen_data.sessions",
		"SELECT count(lopen_data.leave_sessions(ARRAY[session], ARRAY[term], holder)) * 0 FROM lopen_data.sessions",
		"SELECT count(lopen_data.show_session(session, term, holder, '{}', 'x')) * 0 FROM lopen_data.sessions",
		"SELECT coalesce(lopen_data.renew_module(project, module, term, holder, 0)::integer, 0) FROM lopen_data.plans",
		"SELECT count(lopen_data.leave_module(project, module, term, holder, 60000)) * 0 FROM lopen_data.plans",
		"SELECT count(took) FROM lopen_data.plans p, lopen_data.take_module(p.project, '{}', '{}', p.holder, 'x', 60000)",
	} {
		require.Zero(t, call(sql), sql)
	}
	require.True(t, ask[bool](t, owner, "SELECT holder IS NOT NULL AND lease_until > now() AND term = 1 AND head_seq > 1 AND summary <> '{}' FROM lopen_data.sessions"))
	require.True(t, ask[bool](t, owner, "SELECT holder IS NOT NULL AND lease_until > now() AND term = 1 FROM lopen_data.plans"))
	const remove = "SELECT coalesce(lopen_data.delete_session(session, head_seq)::integer, 0) FROM lopen_data.sessions"
	require.Zero(t, call(remove), "it is held")
	require.Equal(t, int64(1), call("SELECT objects FROM lopen_data.sweep()"), "one is old and nothing names it")
	require.True(t, ask[bool](t, owner, `SELECT count(*) > 2 AND bool_or(hash = '\x01') AND NOT bool_or(hash = '\x02') FROM lopen_data.objects`))
	execute(t, owner, "UPDATE lopen_data.objects SET created = now() - interval '2 hours' WHERE hash <> '\\x01'")
	execute(t, owner, `INSERT INTO lopen_data.objects (hash, size, created) VALUES ('\x03', 3, now() - interval '2 hours')`)
	execute(t, owner, `INSERT INTO lopen_data.session_objects SELECT session, 'meta.json', 1, '\x03' FROM lopen_data.sessions`)
	require.Zero(t, call("SELECT objects FROM lopen_data.sweep()"), "something names them")
	_, err = runner.Exec(t.Context(), `INSERT INTO lopen_data.session_objects SELECT session, name, seq + 1, '\x01' FROM lopen_data.session_objects`)
	require.NoError(t, err)
	require.Zero(t, call("SELECT objects FROM lopen_data.sweep()"), "and another one of its name changes nothing about that")
	execute(t, owner, `DELETE FROM lopen_data.session_objects WHERE hash = '\x01'`)
	require.NoError(t, sess.Close(t.Context()))
	require.Zero(t, call("SELECT coalesce(lopen_data.delete_session(session, head_seq - 1)::integer, 0) FROM lopen_data.sessions"), "it went on")
	require.Equal(t, int64(1), call(remove))
	for call("SELECT objects FROM lopen_data.sweep()") > 0 { // a folder, then what is in it
	}
	require.Equal(t, 1, ask[int](t, owner, "SELECT count(*) FROM lopen_data.objects"), "one is young")
}

// Others names the other projects of the database: some, however many there are, as text.
func TestOthers(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a := newMachine(t, "a", url)
	arrives(t, a.create(t, "auth"))
	names, more, err := a.Others(t.Context())
	require.NoError(t, err)
	require.Empty(t, names)
	require.False(t, more)
	execute(t, url, `INSERT INTO lopen_data.plans (project, module, revision, bytes, open, total)
		SELECT E'sh\x1b[2Jop\n' || repeat('x', 1000) || i % 3, 'm' || i, 1, '', 0, 0 FROM generate_series(1, 30) i;
		INSERT INTO lopen_data.plans (project, module, revision, bytes, open, total) VALUES ('p', 'm', 1, '', 0, 0)`)
	names, more, err = a.Others(t.Context())
	require.NoError(t, err)
	require.Len(t, names, 3)
	require.False(t, more)
	for _, name := range names {
		require.Contains(t, name, `sh\x1b[2Jop\nx`)
		require.Less(t, len(name), 200)
	}
	execute(t, url, `INSERT INTO lopen_data.sessions (project, id, incarnation, module, term, host, lease_until)
		SELECT i::text, 'auth-20260101-1', '00', 'auth', 0, '', now() FROM generate_series(1, 2000) i`)
	names, more, err = a.Others(t.Context())
	require.NoError(t, err)
	require.Len(t, names, 5)
	require.True(t, more)
}

// check returns what Doctor says of one thing.
func check(t *testing.T, f *fleet.Fleet, name string) fleet.Check {
	t.Helper()
	for _, c := range f.Doctor(t.Context()) {
		if c.Name == name {
			return c
		}
	}
	require.FailNow(t, "doctor does not look at it: "+name)
	return fleet.Check{}
}
