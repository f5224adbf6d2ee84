package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// Delete removes a session from the fleet for good, with all its records. The error is a [*HeldError]
// if somebody has its lease, and wraps ErrNotFound if it is gone.
func (f *Fleet) Delete(ctx context.Context, x *Found) error {
	return f.durably(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var gone bool
		err := tx.QueryRow(ctx, `SELECT coalesce(lopen_data.delete_session($1, $2), false)`, x.row.key, int64(x.row.head)).Scan(&gone)
		if gone || err != nil {
			return err
		}
		var r row
		err = r.scan(tx.QueryRow(ctx, `SELECT `+rowColumns+` FROM lopen_data.sessions WHERE session = $1`, x.row.key))
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return fmt.Errorf("session %s: %w", x.ID, ErrNotFound)
		case err != nil:
			return err
		case r.holder != "" && r.left > 0:
			return r.held(x.ID.String())
		}
		return fmt.Errorf("session %s, which is at record %d: %w", x.ID, r.head, errChanged)
	})
}

// errChanged means that a session went on since it was listed.
var errChanged = errors.New("it has changed since it was listed")

// Beyond returns the completed sessions of the fleet that are beyond the limits, by the rule by which
// [lifecycle.Store.Prune] chooses: the same sessions go where all of them are. By age goes only what
// the database, too, received longer ago than that: neither a clock here, nor the one by which a
// session was completed, nor the database's deletes one alone.
func (f *Fleet) Beyond(ctx context.Context, r lifecycle.Retention) (goes []Found, why map[session.ID]string, err error) {
	all, err := f.List(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	var done []lifecycle.Retired
	found := map[session.ID]Found{}
	for _, x := range all {
		if x.Err != nil || x.Status != session.StatusComplete || x.Pinned || x.Held || found[x.ID].ID == x.ID {
			continue
		}
		found[x.ID] = x
		done = append(done, lifecycle.Completed(x.ID, x.Origin, x.Bytes, x.CompletedAt))
	}
	why = map[session.ID]string{}
	now, counted := time.Now(), r
	counted.Age = 0
	crowded := counted.Exceeded(done, now)
	for _, x := range r.Exceeded(done, now) {
		isX := func(c lifecycle.Retired) bool { return c.ID == x.ID }
		if found[x.ID].Ago <= r.Age && !slices.ContainsFunc(crowded, isX) {
			continue
		}
		goes, why[x.ID] = append(goes, found[x.ID]), x.Why
	}
	return goes, why, nil
}

// Prune deletes the sessions that Beyond returns, or with dryRun only returns them. One that somebody
// took meanwhile stays. Then it sweeps.
func (f *Fleet) Prune(ctx context.Context, r lifecycle.Retention, dryRun bool) (gone []lifecycle.Retired, err error) {
	goes, why, err := f.Beyond(ctx, r)
	if err != nil {
		return nil, err
	}
	for i := range goes {
		x := &goes[i]
		if !dryRun {
			err := f.Delete(ctx, x)
			if held := (*HeldError)(nil); errors.As(err, &held) || errors.Is(err, ErrNotFound) || errors.Is(err, errChanged) {
				continue
			}
			if err != nil {
				return gone, err
			}
		}
		gone = append(gone, lifecycle.Retired{ID: x.ID, Why: why[x.ID], Bytes: x.Bytes, ForGood: true})
	}
	if len(gone) > 0 && !dryRun {
		_, _, err = f.Sweep(ctx)
	}
	return gone, err
}

// maxSweeps bounds the calls of the function that sweeps, which removes a thousand objects: what it says of them is the
// database's word.
const maxSweeps = 500

// Sweep removes the objects that no session needs and that are older than an hour, and returns their
// number and bytes. Any number of processes may ship meanwhile: what they name by then stays, and a
// batch that names an object which went is refused and sent again.
func (f *Fleet) Sweep(ctx context.Context) (objects int, bytes int64, err error) {
	for range maxSweeps {
		var n int
		var b int64
		err := f.durably(ctx, func(ctx context.Context, tx pgx.Tx) error {
			return tx.QueryRow(ctx, `SELECT objects, bytes FROM lopen_data.sweep()`).Scan(&n, &b)
		})
		if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Code == foreignKey {
			return objects, bytes, nil // somebody names one of them by now; the next sweep goes on
		}
		if err != nil && !errors.Is(err, errUnconfirmed) || n == 0 {
			return objects, bytes, err
		}
		f.known.clear()
		objects, bytes = objects+n, bytes+b
	}
	return objects, bytes, nil // the next sweep goes on
}
