package fleet

import (
	"context"
	"errors"
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

// Claim takes the next module that is not finished and that nobody works on: the one with the lowest
// priority, then by name, whose predecessors are finished. Only those of named are taken, if there are
// some, and none of but. Several
// machines that ask at once get several modules. The Claim is nil if there is none now; held says
// whether others work on some, so that it is worth asking again.
func (f *Fleet) Claim(ctx context.Context, named, but []string) (c *Claim, held bool, err error) {
	c = &Claim{fleet: f, lost: make(chan struct{}), done: make(chan struct{})}
	named, but = append([]string{}, named...), append([]string{}, but...)
	err = f.durably(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var module *string
		var term, open *int64
		err := tx.QueryRow(ctx, `SELECT took, its_term, its_open FROM lopen_data.take_module($1::text, $2::text[], $3::text[], $4::text, $5::text, $6::bigint)`,
			f.opts.Project, named, but, f.secret, f.opts.Host, f.times.lease.Milliseconds()).Scan(&module, &term, &open)
		if err == nil && module == nil {
			err = pgx.ErrNoRows
		}
		if err == nil {
			c.Module, c.term, c.Open = *module, *term, int(*open)
		}
		return err
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
			return conn.QueryRow(ctx, `SELECT coalesce(lopen_data.renew_module($1::text, $2::text, $3::bigint, $4::text, $5::bigint), false)`,
				c.fleet.opts.Project, c.Module, c.term, c.fleet.secret, c.fleet.times.lease.Milliseconds()).Scan(&mine)
		})
		switch {
		case errors.Is(err, ErrLeft):
			return
		case err == nil && !mine:
			close(c.lost)
			return
		}
	}
}

// GiveBack ends the claim. With later nobody takes the module for ten minutes: this machine could not
// finish it, and the next one would meet the same. After the project has left the lease ends by itself.
func (c *Claim) GiveBack(ctx context.Context, later bool) error {
	c.stop()
	<-c.done
	wait := int64(0)
	if later {
		wait = retryModule.Milliseconds()
	}
	return c.fleet.call(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		_, err := conn.Exec(ctx, `SELECT lopen_data.leave_module($1::text, $2::text, $3::bigint, $4::text, $5::bigint)`,
			c.fleet.opts.Project, c.Module, c.term, c.fleet.secret, wait)
		return err
	})
}
