package pgtest

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// proxied is a proxy to the shared server, a connection through it, and one that is direct.
func proxied(t *testing.T) (p *Proxy, url string, through, direct *pgx.Conn) {
	t.Helper()
	Need(t)
	direct = connect(t, Database(t))
	execute(t, direct, "create table rows (n int)")
	s, err := shared()
	require.NoError(t, err)
	p = NewProxy(t, s.Addr())
	url = p.URL(direct.Config().ConnString())
	return p, url, connect(t, url), direct
}

// impatient is a context that ends soon, for what must hang.
func impatient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// backends waits until the server has n connections to a database that go through a proxy.
func backends(t *testing.T, direct *pgx.Conn, n int) {
	t.Helper()
	require.NoError(t, poll("backends", func() (bool, error) {
		var now int
		err := direct.QueryRow(t.Context(), "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()").Scan(&now)
		return now == n, err
	}))
}

// broken requires that a call failed since its connection broke, with an unknown outcome. pgx
// finds a reset when it looks for the reply, and then says no more than that the connection is closed.
func broken(t *testing.T, c *pgx.Conn, err error) {
	t.Helper()
	require.True(t, errors.Is(err, syscall.ECONNRESET) || errors.Is(err, pgconn.ErrConnClosed), "%v", err)
	require.False(t, pgconn.SafeToRetry(err))
	require.True(t, c.IsClosed())
}

func TestProxyForwards(t *testing.T) {
	t.Parallel()
	p, _, c, direct := proxied(t)
	up, down := p.Bytes()
	require.Positive(t, up)
	require.Positive(t, down)
	large := strings.Repeat("x", 1<<20)
	var got string
	require.NoError(t, c.QueryRow(t.Context(), "select $1::text", large).Scan(&got))
	require.Equal(t, large, got)
	up2, down2 := p.Bytes()
	require.Greater(t, up2, up+1<<20)
	require.Greater(t, down2, down+1<<20)
	require.NoError(t, c.Close(t.Context()))
	backends(t, direct, 0)
}

func TestProxyDelays(t *testing.T) {
	t.Parallel()
	p, _, c, _ := proxied(t)
	const d = 30 * time.Millisecond
	p.Delay(d)
	begun := time.Now()
	require.NoError(t, c.Ping(t.Context()))
	require.GreaterOrEqual(t, time.Since(begun), 2*d)
	// A delay is no limit of what goes through: 4 MB are more than a hundred reads.
	begun = time.Now()
	require.Equal(t, 4<<20, len(ask[string](t, c, "select repeat('x', 4 << 20)")))
	require.Less(t, time.Since(begun), 100*d)
	p.Heal()
	require.NoError(t, c.Ping(t.Context()))
}

func TestProxyDropsAndResets(t *testing.T) {
	t.Parallel()
	p, url, c, direct := proxied(t)
	p.Drop()
	require.Error(t, c.Ping(t.Context()))
	require.True(t, c.IsClosed())
	_, err := pgx.Connect(t.Context(), url)
	require.Error(t, err)
	backends(t, direct, 0)
	p.Heal()
	require.NoError(t, connect(t, url).Ping(t.Context()))
}

func TestProxyHangs(t *testing.T) {
	t.Parallel()
	p, url, c, direct := proxied(t)
	idle := connect(t, url)
	p.Hang()
	_, err := c.Exec(impatient(t), "insert into rows values (1)")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = pgx.Connect(impatient(t), url)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, poll("the client's close", func() (bool, error) { return c.IsClosed(), nil }))
	backends(t, direct, 2) // for the server the client is still there
	p.Heal()
	backends(t, direct, 1)
	require.NoError(t, idle.Ping(t.Context()), "nothing of this connection was swallowed")
	require.NoError(t, connect(t, url).Ping(t.Context()))
	require.Zero(t, ask[int](t, direct, "select count(*) from rows"))
}

func TestProxyCutsAMessage(t *testing.T) {
	t.Parallel()
	p, url, c, direct := proxied(t)
	other := connect(t, url)
	p.CutAfter(100)
	before, _ := p.Bytes()
	_, err := c.Exec(t.Context(), "insert into rows select "+strings.Repeat(" ", 1000)+"1")
	broken(t, c, err)
	after, _ := p.Bytes()
	const cancel = 16 // what a client whose connection broke may have asked on another one by now
	require.Contains(t, []int64{before + 100, before + 100 + cancel}, after)
	backends(t, direct, 1)
	require.NoError(t, other.Ping(t.Context()), "one cut is one")
	require.Zero(t, ask[int](t, direct, "select count(*) from rows"))
}

func TestProxyCutsAReply(t *testing.T) {
	t.Parallel()
	p, url, c, direct := proxied(t)
	for n, text := range []string{"", "commit"} {
		p.CutReply(text)
		tx, err := c.Begin(t.Context())
		if text == "" {
			broken(t, c, err)
			c = connect(t, url)
			continue
		}
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), "insert into rows values (1)")
		require.NoError(t, err)
		err = tx.Commit(t.Context())
		broken(t, c, err)
		require.Equal(t, n, ask[int](t, direct, "select count(*) from rows"), "the outcome that the client does not know")
	}
	c = connect(t, url)
	execute(t, c, "commit") // an earlier text does not count
	p.CutReply("commit")
	execute(t, c, "begin")
	p.Heal()
	execute(t, c, "commit")
}

func TestProxyRetargets(t *testing.T) {
	t.Parallel()
	p, url, c, _ := proxied(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p.Retarget(l.Addr().String())
	done := make(chan error, 1)
	go func() {
		_, err := pgx.Connect(context.Background(), url)
		done <- err
	}()
	other, err := l.Accept()
	require.NoError(t, err)
	require.NoError(t, c.Ping(t.Context()), "open connections stay")
	require.NoError(t, other.Close())
	require.Error(t, <-done)
	require.NoError(t, l.Close())
	_, err = pgx.Connect(t.Context(), url)
	require.True(t, errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF), "%v", err)
}
