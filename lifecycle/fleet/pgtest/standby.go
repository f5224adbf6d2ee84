package pgtest

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// standbyNames is the setting that says which standbys a commit waits for.
const standbyNames = "synchronous_standby_names"

// Standby starts a streaming replica of the server, with a replication slot and the server's
// settings. It is killed and removed when the test ends. It is asynchronous: see [Server.Synchronous].
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	s.mu.Lock()
	settings := maps.Clone(s.settings)
	s.mu.Unlock()
	delete(settings, standbyNames) // once promoted, it has no standbys
	b, err := newServer(Options{Settings: settings, TLS: s.tls})
	if err == nil {
		b.t, b.primary = t, s
		t.Cleanup(b.close)
		err = b.follow()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// follow copies the primary and starts.
func (s *Server) follow() error {
	slot := strings.ReplaceAll(s.name, "-", "_")
	if err := run("pg_basebackup", "--pgdata="+s.data, "--dbname="+Admin(s.primary.URL("postgres")), "--write-recovery-conf",
		"--wal-method=stream", "--checkpoint=fast", "--create-slot", "--slot="+slot, "--no-sync"); err != nil {
		return err
	}
	s.password.Store(s.primary.password.Load())
	return s.launchFirst()
}

// Synchronous makes every commit at the primary wait for this standby to have it, and returns when it
// is so. What waits while the standby is away returns when it is back.
func (s *Server) Synchronous() {
	s.t.Helper()
	p := s.primary
	p.do(func() error {
		if err := p.set(standbyNames, `"`+s.name+`"`); err != nil {
			return err
		}
		return poll("the standby to be synchronous", func() (sync bool, err error) {
			err = p.asSuperuser("postgres", func(ctx context.Context, c *pgx.Conn) error {
				return c.QueryRow(ctx, "select exists (select from pg_stat_replication where application_name = $1 and sync_state = 'sync')", s.name).Scan(&sync)
			})
			return sync, err
		})
	})
}

// Promote makes the standby a server that takes writes, and returns when it does. The primary,
// if it lives, knows nothing of that and takes writes as well.
func (s *Server) Promote() {
	s.t.Helper()
	s.do(func() error {
		return s.asSuperuser("postgres", func(ctx context.Context, c *pgx.Conn) error {
			var done bool
			if err := c.QueryRow(ctx, "select pg_promote(true, $1)", int(patience.Seconds())).Scan(&done); err != nil {
				return err
			}
			if !done {
				return errors.New("promote the standby: it did not happen in time")
			}
			return poll("the standby to take writes", func() (writes bool, err error) {
				err = c.QueryRow(ctx, "select not pg_is_in_recovery()").Scan(&writes)
				return writes, err
			})
		})
	})
}
