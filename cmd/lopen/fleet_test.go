package main

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// TestPasswordInURL takes the password out of what a person gives as a URL: what is kept leads to the
// same database and has none.
func TestPasswordInURL(t *testing.T) {
	t.Parallel()
	for _, conn := range []string{
		"postgres://ci:Secret9@db/lopen?sslmode=disable",
		"postgresql://ci:Secret9@db:5433/lopen?sslmode=disable",
		"postgres://ci:Secret9@db1:5432,db2:5433/lopen?sslmode=disable",
		"postgres://ci:Secret9@[::1]:5432/lopen?sslmode=disable",
		"postgres://ci@db/lopen?password=Secret9&sslmode=disable",
		"postgres://ci@db1,db2/lopen?sslmode=disable&password=Secret9",
		"postgres://db/lopen?user=ci&password=Secret9&sslmode=disable",
		"postgres://ci:Sec%40ret9@db/lopen?sslmode=disable",
		"postgres://ci:Secret9%2F@db1,db2/lopen?sslmode=disable",
		"host=db user=ci password=Secret9 dbname=lopen sslmode=disable",
		"host=db user=ci password='Secret9 and more' dbname=lopen sslmode=disable",
		`password='Se\'cret9' host=db user=ci dbname=lopen sslmode=disable`,
		"host=db user=ci password = Secret9 dbname=lopen sslmode=disable",
	} {
		before, err := pgx.ParseConfig(conn)
		require.NoError(t, err, conn)
		require.NotEmpty(t, before.Password, conn)
		clean, had := withoutPassword(conn)
		require.True(t, had, conn)
		require.NotContains(t, strings.ToLower(clean), "ret9", conn)
		after, err := pgx.ParseConfig(clean)
		require.NoError(t, err, "%s became %s", conn, clean)
		require.Empty(t, after.Password, clean)
		require.Equal(t, []any{before.Host, before.Port, before.Database, before.User}, []any{after.Host, after.Port, after.Database, after.User}, "%s became %s", conn, clean)
		require.Len(t, after.Fallbacks, len(before.Fallbacks), "%s became %s", conn, clean)
	}
	for _, conn := range []string{"", "postgres://ci@db/lopen", "host=db user=ci", "service=lopen", "postgres://db1,db2/lopen?sslmode=verify-full"} {
		clean, had := withoutPassword(conn)
		require.False(t, had, conn)
		require.Equal(t, conn, clean)
	}
}
