package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A row is a session as the database has it.
type row struct {
	key    int64 // of the table
	term   int64
	holder string // "" if nobody has the lease
	host   string
	left   time.Duration // of the lease; not above 0 if it is over
	until  time.Time
	base   uint64
	head   uint64
	sum    []byte
	bytes  int64 // of all records
}

// rowColumns are those that scan reads.
var rowColumns = fmt.Sprintf(`session, term, pg_catalog.left(coalesce(holder, ''), 64), pg_catalog.left(host, %d), %s, %s, greatest(base_seq, 0), greatest(head_seq, 0), substring(head_sum FROM 1 FOR %d), bytes`,
	maxHost, msUntil("lease_until"), at("lease_until"), maxHash)

func (r *row) scan(from pgx.Row) error { return r.scanWith(from) }

func (r *row) held(name string) *HeldError {
	return &HeldError{Name: name, Host: r.host, Until: r.until, Left: r.left}
}

// A lease is one that this process has taken.
type lease struct {
	key  int64
	term int64
	lost func() // called when the lease is not this one's any more; it does not wait
}

// find reads the row of a session. The error wraps ErrNotFound.
func (f *Fleet) find(ctx context.Context, id, incarnation string) (r *row, err error) {
	err = f.call(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		r = &row{}
		return r.scan(c.QueryRow(ctx, `SELECT `+rowColumns+` FROM lopen_data.sessions WHERE project = $1 AND id = $2 AND incarnation = $3`,
			f.opts.Project, id, incarnation))
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrNotFound
	}
	return r, err
}

// holderOf is what the tables have of a process that has a secret: nobody else can say that it is the holder.
func holderOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// take takes the lease of a session whose row is known, and returns the row as it is then. was is the secret of a
// holder whose lease may be taken as well: an earlier process of this session's folder. The error
// is a [*HeldError] if another process has it.
func (f *Fleet) take(ctx context.Context, name string, key int64, was string, wasTerm int64) (r *row, err error) {
	err = f.durably(ctx, func(ctx context.Context, tx pgx.Tx) error {
		r = &row{}
		var took bool
		err := tx.QueryRow(ctx, `SELECT coalesce(lopen_data.take_session($1::bigint, $2::text, $3::text, $4::bigint, $5::text, $6::bigint), false)`,
			key, f.secret, f.opts.Host, f.times.lease.Milliseconds(), was, wasTerm).Scan(&took)
		if err == nil {
			err = r.scan(tx.QueryRow(ctx, `SELECT `+rowColumns+` FROM lopen_data.sessions WHERE session = $1`, key))
		}
		if err != nil || took {
			return err
		}
		return r.held(name)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNotFound
	}
	return r, err
}

// keep remembers a lease, so that it is renewed. The first one begins that.
func (f *Fleet) keep(l *lease) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held[l.key] = l; !f.renewing {
		f.renewing = true
		f.wg.Go(f.renewAll)
	}
}

// forget ends the renewal of a lease. A later one of the session is renewed on.
func (f *Fleet) forget(key, term int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.held[key]; l != nil && l.term == term {
		delete(f.held, key)
	}
}

// renewAll renews all leases until there is none.
func (f *Fleet) renewAll() {
	tick := time.NewTicker(f.times.renew)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-f.ctx.Done():
			return
		}
		f.mu.Lock()
		f.renewing = len(f.held) > 0
		going := f.renewing
		f.mu.Unlock()
		if !going {
			return
		}
		if err := f.renew(f.ctx); err != nil && f.ctx.Err() == nil {
			f.opts.Logger.Warn().Err(err).Msg("the leases of the fleet could not be renewed")
		}
	}
}

// renew renews all leases of sessions in one statement, and tells those that are lost.
func (f *Fleet) renew(ctx context.Context) error {
	f.mu.Lock()
	all := make(map[int64]*lease, len(f.held))
	keys, terms := make([]int64, 0, len(f.held)), make([]int64, 0, len(f.held))
	for key, l := range f.held {
		all[key] = l
		keys, terms = append(keys, key), append(terms, l.term)
	}
	f.mu.Unlock()
	if err := f.call(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		rows, err := c.Query(ctx, `SELECT lopen_data.renew_sessions($1::bigint[], $2::bigint[], $3::text, $4::bigint)`, keys, terms, f.secret, f.times.lease.Milliseconds())
		if err != nil {
			return err
		}
		_, err = each(rows, len(keys), func(row pgx.Rows) error {
			var key int64
			err := row.Scan(&key)
			delete(all, key)
			return err
		})
		return err
	}); err != nil {
		return err
	}
	for key, l := range all {
		f.mu.Lock()
		current := f.held[key] == l
		f.mu.Unlock()
		if current { // it was not given back meanwhile
			l.lost()
		}
	}
	return nil
}

// giveBack ends a lease, so that another process may take the session at once.
func (f *Fleet) giveBack(ctx context.Context, key, term int64) error {
	f.forget(key, term)
	return f.leave(ctx, []int64{key}, []int64{term})
}

// giveBackAll ends all leases.
func (f *Fleet) giveBackAll() {
	f.mu.Lock()
	var keys, terms []int64
	for key, l := range f.held {
		keys, terms = append(keys, key), append(terms, l.term)
	}
	clear(f.held)
	f.mu.Unlock()
	if len(keys) == 0 || !f.joined() {
		return
	}
	ctx, cancel := context.WithTimeout(f.ctx, endTimeout)
	defer cancel()
	if err := f.leave(ctx, keys, terms); err != nil {
		f.opts.Logger.Debug().Err(err).Msg("leases were not given back; they end by themselves")
	}
}

func (f *Fleet) leave(ctx context.Context, keys, terms []int64) error {
	return f.callAnyway(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		_, err := c.Exec(ctx, `SELECT lopen_data.leave_sessions($1::bigint[], $2::bigint[], $3::text)`, keys, terms, f.secret)
		return err
	})
}
