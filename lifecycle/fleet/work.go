package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// retryModule is how long a module that a machine could not finish waits for another one.
const retryModule = 10 * time.Minute

// A Claim is a module that this process works on. It is renewed until it is given back.
type Claim struct {
	Module string
	Open   int // tasks that are not ticked

	fleet *Fleet
	term  int64
	lost  chan struct{}
	stop  context.CancelFunc
	done  chan struct{}
}

// soon is a condition that the time of a column is to come, and not later than lopen ever sets it.
func soon(column string, most time.Duration) string {
	return fmt.Sprintf(`(%[1]s > clock_timestamp() AND %[1]s <= clock_timestamp() + interval '%[2]d s')`, column, int(most.Seconds()))
}

// Claim takes the next module that is not finished and that nobody works on: the one with the lowest
// priority, then by name, whose predecessors are finished. Only those of named are taken, if there are
// some, and none of but. Several
// machines that ask at once get several modules. The Claim is nil if there is none now; held says
// whether others work on some, so that it is worth asking again.
func (f *Fleet) Claim(ctx context.Context, named, but []string) (c *Claim, held bool, err error) {
	c = &Claim{fleet: f, lost: make(chan struct{}), done: make(chan struct{})}
	named, but = append([]string{}, named...), append([]string{}, but...)
	err = f.durably(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, `WITH next AS (
				SELECT module FROM lopen_data.plans p
				WHERE project = $1 AND module`+isModule+` AND open > 0 AND term BETWEEN 0 AND `+fmt.Sprint(maxTerm)+` AND NOT module = ANY($2::text[]) AND (cardinality($6::text[]) = 0 OR module = ANY($6)) AND NOT `+soon("retry_at", 2*retryModule)+`
					AND (holder IS NULL OR NOT `+soon("lease_until", longestLease)+`)
					AND NOT EXISTS (SELECT FROM lopen_data.plans b WHERE b.project = p.project AND b.module = ANY(p.after) AND b.open > 0)
					AND NOT EXISTS (SELECT FROM lopen_data.sessions s WHERE s.project = p.project AND s.module = p.module
						AND s.holder IS NOT NULL AND s.holder <> $3 AND `+soon("s.lease_until", longestLease)+`)
				ORDER BY priority NULLS LAST, module LIMIT 1 FOR UPDATE SKIP LOCKED)
			UPDATE lopen_data.plans p SET term = term + 1, holder = $3, host = $4, lease_until = clock_timestamp() + $5::bigint * interval '1 ms'
			FROM next WHERE p.project = $1 AND p.module = next.module RETURNING p.module, p.term, p.open`,
			f.opts.Project, but, f.holder, f.opts.Host, f.times.lease.Milliseconds(), named).Scan(&c.Module, &c.term, &c.Open)
	})
	switch {
	case (err == nil || errors.Is(err, errUnconfirmed)) && session.ValidateModule(c.Module) != nil:
		return nil, false, refused(shown(c.Module, maxHost), "the fleet has a plan of this name, which is that of no module")
	case err == nil, errors.Is(err, errUnconfirmed):
		ctx, stop := context.WithCancel(f.ctx)
		c.stop = stop
		f.wg.Go(func() { c.renewing(ctx) })
		return c, false, nil
	case !errors.Is(err, pgx.ErrNoRows):
		return nil, false, err
	}
	err = f.call(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		return c.QueryRow(ctx, `SELECT EXISTS (SELECT FROM lopen_data.plans WHERE project = $1 AND module`+isModule+` AND open > 0 AND NOT module = ANY($2::text[])
			AND (cardinality($3::text[]) = 0 OR module = ANY($3)))`, f.opts.Project, but, named).Scan(&held)
	})
	return nil, held, err
}

// Lost is closed when another process has taken the module, because this one was not heard of for
// too long. Its session is fenced then as well.
func (c *Claim) Lost() <-chan struct{} { return c.lost }

func (c *Claim) renewing(ctx context.Context) {
	defer close(c.done)
	tick := time.NewTicker(c.fleet.times.renew)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		var mine bool
		err := c.fleet.call(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
			tag, err := conn.Exec(ctx, `UPDATE lopen_data.plans SET lease_until = clock_timestamp() + $5::bigint * interval '1 ms'
				WHERE project = $1 AND module = $2 AND term = $3 AND holder = $4`, c.fleet.opts.Project, c.Module, c.term, c.fleet.holder, c.fleet.times.lease.Milliseconds())
			mine = tag.RowsAffected() == 1
			return err
		})
		if err == nil && !mine {
			close(c.lost)
			return
		}
	}
}

// GiveBack ends the claim. With later nobody takes the module for ten minutes: this machine could not
// finish it, and the next one would meet the same.
func (c *Claim) GiveBack(ctx context.Context, later bool) error {
	c.stop()
	<-c.done
	wait := int64(0)
	if later {
		wait = retryModule.Milliseconds()
	}
	return c.fleet.call(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		_, err := conn.Exec(ctx, `UPDATE lopen_data.plans SET holder = NULL, lease_until = clock_timestamp(), retry_at = clock_timestamp() + $5::bigint * interval '1 ms'
			WHERE project = $1 AND module = $2 AND term = $3 AND holder = $4`, c.fleet.opts.Project, c.Module, c.term, c.fleet.holder, wait)
		return err
	})
}
