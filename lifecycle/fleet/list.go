package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A Found is a session in the fleet, with what a listing shows of it.
type Found struct {
	lifecycle.Info

	Name     string
	Pinned   bool
	Host     string        // where its last holder runs, or ran
	Held     bool          // somebody has the lease
	Left     time.Duration // of the lease
	Records  uint64        // the number of its last record
	Bytes    int64         // of all records
	Received time.Time     // when the last batch came, by the clock of the database
	Ago      time.Duration // the time since then
	GitHead  string        // of the repository, as the session last saw it

	row row
}

// List returns the sessions of the project in the fleet, the most recently received first; with a
// module only those of it. Reading is all that it needs a right for.
func (f *Fleet) List(ctx context.Context, module string) (all []Found, err error) {
	err = f.reading(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		rows, err := c.Query(ctx, `SELECT `+rowColumns+`, id, incarnation, bytes, status, summary, updated,
				(extract(epoch FROM clock_timestamp() - updated) * 1000)::bigint
			FROM lopen_data.sessions WHERE project = $1 AND ($2 = '' OR module = $2) ORDER BY updated DESC, session DESC`, f.opts.Project, module)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, scanFound)
		return err
	})
	return all, err
}

func scanFound(from pgx.CollectableRow) (x Found, err error) {
	var id, incarnation, status string
	var data []byte
	var ago int64
	err = x.row.scanWith(from, &id, &incarnation, &x.Bytes, &status, &data, &x.Received, &ago)
	if err != nil {
		return x, err
	}
	parsed, err := idOf(id)
	if err != nil {
		return x, err
	}
	var s summary
	if err := strictjson.Unmarshal(data, &s); err != nil {
		x.Err = fmt.Errorf("the summary of session %s: %w", id, err)
	}
	x.Host, x.Held, x.Left, x.Records, x.Ago = x.row.host, x.row.holder != "" && x.row.left > 0, x.row.left, x.row.head, time.Duration(ago)*time.Millisecond
	x.Name, x.Pinned, x.GitHead = s.Name, s.Pinned, s.Head
	x.Summary = wire.Summary{ID: parsed, Module: parsed.Module, Incarnation: incarnation, Seq: x.row.head, Status: session.Status(status), Phase: s.Phase, Step: s.Step,
		Component: s.Component, ActiveTask: s.ActiveTask, ExitReason: s.ExitReason, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
		Progress:   session.Progress{Done: s.Progress.Done, Total: s.Progress.Total, Failed: s.Progress.Failed, Skipped: s.Progress.Skipped},
		Iterations: s.Iterations, InputTokens: s.InputTokens, OutputTokens: s.OutputTokens, CachedTokens: s.CachedTokens, TotalCostUSD: s.TotalCostUSD,
		Messages: s.Messages, Origin: s.Origin, TransactionID: s.TransactionID}
	if s.CompletedAt != nil {
		x.CompletedAt = *s.CompletedAt
	}
	return x, nil
}

// scanWith scans rowColumns and what follows them.
func (r *row) scanWith(from pgx.Row, more ...any) error {
	var left int64
	err := from.Scan(append([]any{&r.key, &r.term, &r.holder, &r.host, &left, &r.until, &r.base, &r.head, &r.sum}, more...)...)
	r.left = time.Duration(left) * time.Millisecond
	return err
}

// reading is call for a client that may be older than the tables: what it knows is still there.
func (f *Fleet) reading(ctx context.Context, fn func(ctx context.Context, c *pgxpool.Conn) error) error {
	return f.call(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		s, err := readSchema(ctx, c, "")
		if err != nil {
			return err
		}
		if s.Version == 0 {
			return ErrNoSchema
		}
		return fn(ctx, c)
	})
}

// Find returns the session that a person names: by its ID, the prefix of one, a module's name for its
// newest, or "latest". Of several incarnations it is the one that was received last. The error wraps
// ErrNotFound.
func (f *Fleet) Find(ctx context.Context, name string) (Found, error) {
	all, err := f.List(ctx, "")
	if err != nil {
		return Found{}, err
	}
	return choose(all, name)
}

func choose(all []Found, name string) (Found, error) {
	if (name == "" || name == "latest") && len(all) > 0 {
		return all[0], nil
	}
	for _, fits := range []func(x *Found) bool{
		func(x *Found) bool { return x.ID.String() == name },
		func(x *Found) bool { return x.ID.Module == name },
	} {
		if i := slices.IndexFunc(all, func(x Found) bool { return fits(&x) }); i >= 0 {
			return all[i], nil
		}
	}
	var found []Found
	for _, x := range all {
		if len(x.ID.String()) > len(name) && name != "" && x.ID.String()[:len(name)] == name && !slices.ContainsFunc(found, func(o Found) bool { return o.ID == x.ID }) {
			found = append(found, x)
		}
	}
	switch len(found) {
	case 0:
		return Found{}, fmt.Errorf("session %q: %w", name, ErrNotFound)
	case 1:
		return found[0], nil
	}
	return Found{}, fmt.Errorf("session %q: it fits %s and %s: %w", name, found[0].ID, found[1].ID, lifecycle.ErrAmbiguous)
}

// errNothing means that a session has no record there yet.
var errNothing = errors.New("nothing of it is in the fleet yet")
