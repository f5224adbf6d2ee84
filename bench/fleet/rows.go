package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
)

// rowsSchema are the tables of sessions that are rows.
const rowsSchema = `CREATE TABLE states (id text PRIMARY KEY, state jsonb NOT NULL);
	CREATE TABLE messages (id text NOT NULL, text jsonb NOT NULL)`

// rows are sessions whose saves are each an UPDATE of one row that has the whole State. Messages are rows of
// their own, inserted by the same statement: those who do it this way would hardly keep them in the State.
type rows struct {
	lags // of saves
	pool *pgxpool.Pool
	rows []*row
}

// A row is a session.
type row struct {
	of    *rows
	id    string
	state *session.State
	said  []string // since the last save
	n     int      // tasks so far
}

func openRows(o *orders) (*rows, error) {
	cfg, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = 4 // as many as a fleet has
	l := &rows{}
	if l.pool, err = pgxpool.NewWithConfig(context.Background(), cfg); err != nil {
		return nil, err
	}
	for i := range o.Sessions {
		r := &row{of: l, id: fmt.Sprintf("%s-%d", o.Host, i)}
		id, err := session.NewID(module, time.Now(), uint64(i+1))
		if err != nil {
			return nil, err
		}
		if r.state, err = session.New(id, time.Now()); err != nil {
			return nil, err
		}
		if err := r.Change(session.TriggerStepCompleted, func(e *session.Edit) error { workload.Fill(e, tasks); return nil }); err != nil {
			return nil, err
		}
		if _, err := l.pool.Exec(context.Background(), `INSERT INTO states VALUES ($1, $2)`, r.id, r.encode()); err != nil {
			return nil, err
		}
		l.rows = append(l.rows, r)
	}
	return l, nil
}

func (r *row) encode() string {
	return fmt.Sprintf(`{"state":%s,"metrics":%s}`, wire.EncodeState(r.state, session.Mark{}), wire.EncodeMetrics(r.state, session.Mark{}))
}

// Append is worker's: what is said is saved with the next Sync.
func (r *row) Append(m *session.Message) error {
	r.said = append(r.said, string(m.Content))
	return nil
}

// Change is worker's.
func (r *row) Change(_ session.Trigger, fn func(*session.Edit) error) error {
	e := r.state.Edit()
	err := fn(e)
	if err == nil {
		r.state, err = e.State()
	}
	return err
}

// Sync is worker's: it is the save.
func (r *row) Sync(ctx context.Context) error {
	begun := time.Now()
	_, err := r.of.pool.Exec(ctx, `WITH said AS (INSERT INTO messages SELECT $1, unnest($3::jsonb[])) UPDATE states SET state = $2 WHERE id = $1`, r.id, r.encode(), r.said)
	r.said = r.said[:0]
	r.of.add(time.Since(begun))
	return err
}

func (l *rows) task(i int) error {
	r := l.rows[i]
	r.n++
	return task(r, r.n, func() {})
}

func (l *rows) arrive(int) error { return nil }
