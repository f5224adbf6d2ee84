package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
)

// The times of a fleet. The database measures the lease; the others are of this process.
const (
	// Lease is how long a holder has a session after it was last heard of, and Renew how often it
	// is heard of.
	Lease = 60 * time.Second
	Renew = 10 * time.Second
	// connectTimeout bounds a new connection, and callTimeout a transaction.
	connectTimeout = 10 * time.Second
	callTimeout    = 30 * time.Second
)

// times are those of a Fleet that tests make shorter.
type times struct {
	lease, renew, call time.Duration
	retry, longest     time.Duration // between two tries after an error
}

// connections is how many connections a Fleet has at most.
const connections = 4

// inBinary is the mode of a statement that carries contents. The others send and receive text, in which
// a bytea has two digits for each byte. pgx asks once for the types of such a statement, for each connection,
// and remembers them here: the server keeps nothing, so that a pooler may be in between. No migration
// changes the type of a column.
const inBinary = pgx.QueryExecModeCacheDescribe

// maxMessage bounds what the database says at once, a row for example, whatever it was asked. The longest that it
// may say is a record.
const maxMessage = 16 << 20

// descriptions is for how many statements types are remembered: more than there are.
const descriptions = 32

// Options of a Fleet.
type Options struct {
	// URL says which database, as libpq reads it: a URL or key=value. What it leaves out comes from
	// PGHOST, PGSERVICE, PGPASSFILE and the like. Without sslmode anywhere a host that is not local has
	// to prove who it is.
	URL string
	// Password and KeyPassword, that of the key of a client certificate, stand in for PGPASSWORD and
	// PGSSLPASSWORD; "" leaves it to these.
	Password, KeyPassword string

	Project string         // identifies the project on all machines
	Host    string         // the name of this machine, for people; "" means the system's
	Site    string         // identifies the project's folder on this machine; "" means Host
	Logger  zerolog.Logger // the zero value logs nothing
	// Linger is how long what is acknowledged waits for more before it is shipped, unless somebody
	// waits for it. 0 means a quarter of a second.
	Linger time.Duration
	// Joined reports whether the project still sends anything to this database. It is asked every second
	// while a session is shipped, and before each call; nil means always.
	Joined func() bool
}

// A Fleet is a project's sessions in a database. Close it after use.
type Fleet struct {
	opts   Options
	times  times // Immutable after the first use.
	tasks  int   // that a session has at most that is sent. Immutable after the first use.
	conn   conn  // Immutable.
	pool   *pgxpool.Pool
	secret string // of this process, the holder of its leases
	slots  chan struct{}
	known  *known

	ctx    context.Context //nolint:containedctx // that of its goroutines; ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	held     map[int64]*lease // Guarded by mu. By session of the table.
	renewing bool             // Guarded by mu. The goroutine of renewAll runs.
	watched  bool             // Guarded by mu. The goroutine of watch runs.
	leaving  chan struct{}    // Closed when the project has left.
	warn     map[*pgconn.PgConn]bool
}

// Open prepares a Fleet. It does not connect: the first call does.
func Open(o Options) (*Fleet, error) {
	own, c, err := o.config()
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	cfg, err := pgxpool.ParseConfig("host=/") // the pool takes no other way to a configuration
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	cfg.ConnConfig = own
	cfg.ConnConfig.MaxProtocolMessageBodyLen = maxMessage
	if o.Host == "" {
		o.Host, _ = os.Hostname() // it is for people only
	}
	if o.Site == "" {
		o.Site = o.Host
	}
	if o.Linger == 0 {
		o.Linger = 250 * time.Millisecond
	}
	f := &Fleet{opts: o, tasks: maxTasks, times: times{Lease, Renew, callTimeout, firstRetry, longestRetry}, conn: c, secret: rand.Text(), slots: make(chan struct{}, connections), known: newKnown(), held: map[int64]*lease{}, leaving: make(chan struct{}), warn: map[*pgconn.PgConn]bool{}}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	cfg.MaxConns, cfg.MinConns, cfg.MinIdleConns = connections, 0, 0
	cfg.MaxConnIdleTime = 5 * time.Minute
	// Neither prepared statements nor anything else that a pooler would have to keep.
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	cfg.ConnConfig.StatementCacheCapacity, cfg.ConnConfig.DescriptionCacheCapacity = 0, descriptions
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = connectTimeout
	}
	if cfg.ConnConfig.ValidateConnect == nil { // after a failover another host may be the primary
		cfg.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if cfg.ConnConfig.RuntimeParams["application_name"] == "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = "lopen"
	}
	dialer := &net.Dialer{KeepAlive: Renew}
	cfg.ConnConfig.DialFunc = dialer.DialContext
	cfg.ConnConfig.OnNotice = f.notice
	cfg.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		if now, _, err := o.config(); err == nil { // the password may have changed
			c.Password = now.Password
		}
		return nil
	}
	cfg.BeforeClose = func(c *pgx.Conn) { f.unwarned(c.PgConn()) }
	if f.pool, err = pgxpool.NewWithConfig(f.ctx, cfg); err != nil {
		f.cancel()
		return nil, fmt.Errorf("fleet: %w", err)
	}
	return f, nil
}

// Close ends the connections, and gives back the leases of sessions that were pulled and not shipped,
// for which it waits two seconds. The Sessions are closed before.
func (f *Fleet) Close() {
	f.giveBackAll()
	f.cancel()
	f.wg.Wait()
	f.pool.Close()
}

// joined reports whether the project still sends anything.
func (f *Fleet) joined() bool { return f.opts.Joined == nil || f.opts.Joined() }

// pollJoined is how often it is asked whether the project has left.
const pollJoined = time.Second

// watch has all sessions end when the project leaves.
func (f *Fleet) watch() {
	tick := time.NewTicker(pollJoined)
	defer tick.Stop()
	for f.joined() {
		select {
		case <-tick.C:
		case <-f.ctx.Done():
			return
		}
	}
	close(f.leaving)
}

// Where returns the database in words, without a password.
func (f *Fleet) Where() string {
	c := f.pool.Config().ConnConfig
	return shown(fmt.Sprintf("%s on %s", c.Database, net.JoinHostPort(c.Host, fmt.Sprint(c.Port))), maxName)
}

// Project returns the project that the Fleet is of.
func (f *Fleet) Project() string { return f.opts.Project }

// notice remembers that the database warned about the transaction that it commits: a wait for a
// synchronous standby was cancelled, and the commit is no acknowledgement.
func (f *Fleet) notice(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" {
		f.mu.Lock()
		f.warn[c] = true
		f.mu.Unlock()
	}
	f.opts.Logger.Debug().Str("severity", n.SeverityUnlocalized).Str("code", n.Code).Str("message", shown(n.Message, maxExplained)).Msg("notice of the database")
}

func (f *Fleet) unwarned(c *pgconn.PgConn) (was bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was = f.warn[c]
	delete(f.warn, c)
	return was
}

// errUnconfirmed means that a transaction is committed and that no standby has confirmed it.
var errUnconfirmed = errors.New("the wait for the synchronous standby was cancelled")

// confirmed is an expression that makes the commit of its transaction wait for the disk, and for the
// synchronous standbys.
const confirmed = `set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')
	THEN 'on' ELSE current_setting('synchronous_commit') END, true)`

// durably sends a transaction into tables that this lopen may write into. When it returns nil the database has committed it and, with a
// synchronous standby, that has it too. After errUnconfirmed it is committed; after another error
// it may be.
func (f *Fleet) durably(ctx context.Context, fn func(ctx context.Context, tx pgx.Tx) error) error {
	return f.commit(ctx, func(ctx context.Context, tx pgx.Tx) error {
		s, err := readSchema(ctx, tx, confirmed)
		if err == nil {
			err = s.usable()
		}
		if err == nil {
			err = fn(ctx, tx)
		}
		return err
	})
}

// commit runs a transaction, unless the project has left.
func (f *Fleet) commit(ctx context.Context, fn func(ctx context.Context, tx pgx.Tx) error) error {
	if !f.joined() {
		return ErrLeft
	}
	ctx, cancel := context.WithTimeout(ctx, f.times.call)
	defer cancel()
	return f.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		f.unwarned(c.Conn().PgConn())
		tx, err := c.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(ctx) }() // after the commit it does nothing
		if err := fn(ctx, tx); err != nil {
			return err
		}
		if err := tx.Commit(ctx); err != nil {
			return err
		}
		if f.unwarned(c.Conn().PgConn()) {
			return errUnconfirmed
		}
		return nil
	})
}

// call runs queries that nobody waits for to be durable, unless the project has left.
func (f *Fleet) call(ctx context.Context, fn func(ctx context.Context, c *pgxpool.Conn) error) error {
	if !f.joined() {
		return ErrLeft
	}
	return f.callAnyway(ctx, fn)
}

// callAnyway is call for what ends the sending: who leaves waits for that.
func (f *Fleet) callAnyway(ctx context.Context, fn func(ctx context.Context, c *pgxpool.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, f.times.call)
	defer cancel()
	return f.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error { return fn(ctx, c) })
}
