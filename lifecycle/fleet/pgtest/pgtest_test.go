package pgtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// connect connects to a database until the test ends.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func execute(t *testing.T, c *pgx.Conn, sql string, args ...any) {
	t.Helper()
	_, err := c.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// ask is the one value that a query gives.
func ask[T any](t *testing.T, c *pgx.Conn, sql string) (v T) {
	t.Helper()
	require.NoError(t, c.QueryRow(t.Context(), sql).Scan(&v))
	return v
}

func TestDatabasesAreSeparate(t *testing.T) {
	t.Parallel()
	Need(t)
	url, other := Database(t), Database(t)
	require.NotEqual(t, url, other)
	a, b := connect(t, url), connect(t, other)
	execute(t, a, "create table rows (n int)")
	require.Zero(t, ask[int](t, b, "select count(*) from pg_tables where tablename = 'rows'"))
	require.False(t, ask[bool](t, a, "select rolsuper or rolcreatedb or rolcreaterole or rolreplication or rolbypassrls from pg_roles where rolname = current_user"))
	require.True(t, ask[bool](t, connect(t, Admin(url)), "select rolsuper from pg_roles where rolname = current_user"))
	require.Equal(t, ask[string](t, a, "select current_database()"), ask[string](t, connect(t, Admin(url)), "select current_database()"))
}

func TestADatabaseIsDroppedWhileItIsConnected(t *testing.T) {
	t.Parallel()
	Need(t)
	var url string
	t.Run("test", func(t *testing.T) {
		url = Database(t)
		_, err := pgx.Connect(t.Context(), url) // and left open
		require.NoError(t, err)
	})
	_, err := pgx.Connect(t.Context(), url)
	require.ErrorContains(t, err, "3D000")
}

func TestKilledServerKeepsCommittedRows(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	url := s.Create("rows")
	c := connect(t, url)
	execute(t, c, "create table rows (n int)")
	execute(t, c, "insert into rows select generate_series(1, 1000)")
	execute(t, c, "begin")
	execute(t, c, "insert into rows values (0)")
	s.Kill()
	require.Error(t, c.Ping(t.Context()))
	_, err := pgx.Connect(t.Context(), url)
	require.ErrorContains(t, err, "connection refused")
	s.Start()
	require.Equal(t, url, s.URL("rows"))
	require.Equal(t, 1000, ask[int](t, connect(t, url), "select count(*) from rows where n > 0"))
	require.Zero(t, ask[int](t, connect(t, url), "select count(*) from rows where n = 0"))
}
