package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

// The roles of every server.
const (
	Superuser = "postgres"
	Owner     = "lopen"
)

// superuserPassword is the superuser's password at all servers of this process. It never changes,
// so that Admin needs no server.
var superuserPassword = rand.Text()

var (
	sharedRunning atomic.Pointer[Server]
	databases     atomic.Int64
)

// shared is the server of this process's databases.
var shared = sync.OnceValues(func() (*Server, error) {
	s, err := newServer(Options{})
	if err != nil {
		return nil, err
	}
	if err := s.initialize(false); err != nil {
		return nil, err
	}
	sharedRunning.Store(s)
	return s, nil
})

// Database is the URL of a fresh, empty database on the server that the tests of this process
// share, as its owner. It is dropped when the test ends, also while something is connected.
func Database(t testing.TB) string {
	t.Helper()
	Need(t)
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	db := fmt.Sprintf("test%d", databases.Add(1))
	if err := s.create(db); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.statement("postgres", "drop database "+db+" with (force)"); err != nil {
			t.Error(err)
		}
	})
	return s.URL(db)
}

// Admin is a URL of a database of this process's servers as the superuser. It takes that of any role.
func Admin(of string) string {
	u, err := url.Parse(of)
	if err != nil {
		panic(err) // no URL of this package
	}
	u.User = url.UserPassword(Superuser, superuserPassword)
	return u.String()
}

// URL is the URL of a database as its owner, with the password of the moment.
func (s *Server) URL(db string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(Owner, *s.password.Load()), Host: s.Addr(), Path: "/" + db}
	q := url.Values{"sslmode": {"disable"}}
	if s.tls {
		q = url.Values{"sslmode": {"verify-ca"}, "sslrootcert": {s.certificate()}}
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// Socket is the URL of a database as its owner, by the Unix socket.
func (s *Server) Socket(db string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(Owner, *s.password.Load()), Path: "/" + db}
	u.RawQuery = url.Values{"host": {s.dir}, "port": {fmt.Sprint(s.port.Load())}}.Encode()
	return u.String()
}

// Addr is the address at which the server listens, 127.0.0.1 and a port.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port.Load()) }

// Create makes an empty database and returns its URL as its owner.
func (s *Server) Create(db string) string {
	s.t.Helper()
	s.do(func() error { return s.create(db) })
	return s.URL(db)
}

func (s *Server) create(db string) error {
	return s.statement("postgres", "create database "+pgx.Identifier{db}.Sanitize()+" owner "+Owner)
}

// makeOwner makes the role that owns databases, with a password that nothing else has.
func (s *Server) makeOwner() error {
	password := rand.Text()
	s.password.Store(&password)
	return s.statement("postgres", "create role "+Owner+" login password '"+password+"'")
}

// SetPassword changes the owner's password. Open connections stay; URLs made before have the old one.
func (s *Server) SetPassword(password string) {
	s.t.Helper()
	s.do(func() error {
		if err := s.statement("postgres", "alter role "+Owner+" password '"+strings.ReplaceAll(password, "'", "''")+"'"); err != nil {
			return err
		}
		s.password.Store(&password)
		return nil
	})
}

// statement runs one statement as the superuser.
func (s *Server) statement(db, sql string) error {
	return s.asSuperuser(db, func(ctx context.Context, c *pgx.Conn) error {
		if _, err := c.Exec(ctx, sql); err != nil {
			return fmt.Errorf("run %q: %w", sql, err)
		}
		return nil
	})
}

// asSuperuser gives use a connection of the superuser's.
func (s *Server) asSuperuser(db string, use func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := pgx.Connect(ctx, Admin(s.URL(db)))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	return use(ctx, c)
}
