package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lopen-dev/lopen/lifecycle/fleet/pgtest"
)

// withServer runs the tests with a PostgreSQL server that ends with them.
type withServer struct{ m interface{ Run() int } }

func (w withServer) Run() int { return pgtest.Main(w.m) }

// setUpFleet gives the scripts about a fleet a database of their own: $PG is its URL, and $BARE says the same without
// the password, which is in PGPASSWORD. They have two machines, a and b: folders with a home each.
func setUpFleet(t *testing.T, env *testscript.Env) {
	if !strings.HasPrefix(filepath.Base(env.WorkDir), "script-fleet") || !pgtest.Found() {
		return
	}
	url := pgtest.Database(t)
	env.Setenv("PG", url)
	env.Setenv("PGADMIN", pgtest.Admin(url))
	if c, err := pgx.ParseConfig(url); err == nil {
		env.Setenv("PGPASSWORD", c.Password)
		env.Setenv("BARE", fmt.Sprintf("host=%s port=%d dbname=%s user=%s sslmode=disable", c.Host, c.Port, c.Database, c.User))
	}
}

// psql STATEMENT runs a statement as the superuser, and prints what it returns, a line a row.
func psql(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: psql STATEMENT")
	}
	ctx := context.Background()
	c, err := pgx.Connect(ctx, ts.Getenv("PGADMIN"))
	ts.Check(err)
	defer c.Close(ctx)
	rows, err := c.Query(ctx, args[0], pgx.QueryExecModeSimpleProtocol)
	ts.Check(err)
	defer rows.Close()
	for rows.Next() {
		var line []string
		for _, v := range rows.RawValues() {
			line = append(line, string(v))
		}
		_, err := ts.Stdout().Write([]byte(strings.Join(line, "|") + "\n"))
		ts.Check(err)
	}
	ts.Check(rows.Err())
}

// expire ends all leases, as a minute without their holders does.
func expire(ts *testscript.TestScript, neg bool, args []string) {
	psql(ts, neg, append(args, `WITH s AS (UPDATE lopen_data.sessions SET lease_until = clock_timestamp()) UPDATE lopen_data.plans SET lease_until = clock_timestamp()`))
}
