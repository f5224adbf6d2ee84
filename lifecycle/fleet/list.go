package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
// module only those of it. Of more than ten thousand it looks at those that were made last. Reading is all
// that it needs a right for.
func (f *Fleet) List(ctx context.Context, module string) (all []Found, err error) {
	err = f.reading(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		rows, err := c.Query(ctx, listed, f.opts.Project, module, maxListed+1)
		if err != nil {
			return err
		}
		all = nil
		left, out := maxSum, 0
		more, err := each(rows, maxListed, func(row pgx.Rows) error {
			x, size, err := scanFound(row, module)
			if left -= size; err != nil || left < 0 {
				return cmp.Or(err, refused("sessions", "their summaries have more than %d bytes together", maxSum))
			}
			// Somebody else may have written a row that is none of ours: others are not affected.
			if x.ID == (session.ID{}) {
				if out++; out <= maxSaid {
					f.opts.Logger.Warn().Err(x.Err).Msg("a session of the fleet is left out")
				}
				return nil
			}
			all = append(all, x)
			return nil
		})
		if more {
			f.opts.Logger.Warn().Msgf("the fleet has more than %d sessions: only the newest are looked at", maxListed)
		}
		return err
	})
	return all, err
}

// maxSaid bounds how many rows that are left out are said.
const maxSaid = 3

// listed are the rows of a listing. Which ones is decided first: what they have is costly.
var listed = fmt.Sprintf(`SELECT %s, pg_catalog.left(id, 128), pg_catalog.left(incarnation, 64), pg_catalog.left(status, 32),
		CASE WHEN pg_catalog.pg_column_size(summary) > %[2]d THEN NULL WHEN pg_catalog.octet_length(summary::text) <= %[2]d THEN summary::text END, %s, %s
	FROM (SELECT * FROM lopen_data.sessions WHERE project = $1 AND ($2 = '' OR module = $2) ORDER BY session DESC LIMIT $3) s
	ORDER BY updated DESC, session DESC`, rowColumns, maxSummary, at("updated"), msSince("updated"))

// scanFound returns what a row of a listing says, and how many bytes its summary has. Without an ID it is none of ours.
func scanFound(from pgx.Row, module string) (x Found, size int, err error) {
	var id, incarnation, status string
	var data *string
	var ago int64
	if err = x.row.scanWith(from, &id, &incarnation, &status, &data, &x.Received, &ago); err != nil {
		return x, 0, err
	}
	parsed, err := idOf(id)
	if err == nil && (module != "" && parsed.Module != module || !plainWord(incarnation)) {
		err = fmt.Errorf("the fleet has a session %s of module %q and incarnation %q", id, module, incarnation)
	}
	if err != nil {
		x.Err = err
		return x, 0, nil
	}
	var s summary
	if data == nil {
		x.Err = fmt.Errorf("the summary of session %s has more than %d bytes", id, maxSummary)
	} else if size, err = len(*data), strictjson.Unmarshal([]byte(*data), &s); err != nil {
		x.Err = fmt.Errorf("the summary of session %s: %w", id, err)
	}
	s.Phase, s.Step, s.ExitReason, s.Origin = word(s.Phase), word(s.Step), word(s.ExitReason), word(s.Origin)
	s.Component, s.ActiveTask, s.Head, s.TransactionID = shown(s.Component, maxName), shown(s.ActiveTask, maxName), word(s.Head), word(s.TransactionID)
	x.Bytes = x.row.bytes
	x.Host, x.Held, x.Left, x.Records, x.Ago = x.row.host, x.row.holder != "" && x.row.left > 0, x.row.left, x.row.head, time.Duration(ago)*time.Millisecond
	x.Name, x.Pinned, x.GitHead = shown(s.Name, maxHost), s.Pinned, s.Head
	x.Summary = wire.Summary{ID: parsed, Module: parsed.Module, Incarnation: incarnation, Seq: x.row.head, Status: word(session.Status(status)), Phase: s.Phase, Step: s.Step,
		Component: s.Component, ActiveTask: s.ActiveTask, ExitReason: s.ExitReason, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
		Progress:   session.Progress{Done: s.Progress.Done, Total: s.Progress.Total, Failed: s.Progress.Failed, Skipped: s.Progress.Skipped},
		Iterations: s.Iterations, InputTokens: s.InputTokens, OutputTokens: s.OutputTokens, CachedTokens: s.CachedTokens, TotalCostUSD: s.TotalCostUSD,
		Messages: s.Messages, Origin: s.Origin, TransactionID: s.TransactionID}
	if s.CompletedAt != nil {
		x.CompletedAt = *s.CompletedAt
	}
	return x, size, nil
}

// word returns a value that is one of a few words, for people: somebody may have written anything.
func word[T ~string](v T) T { return T(shown(string(v), maxHost)) }

// plainWord reports whether a text has only digits and lower-case letters, as an incarnation has.
func plainWord(s string) bool {
	return s != "" && strings.Trim(s, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}

// scanWith scans rowColumns and what follows them.
func (r *row) scanWith(from pgx.Row, more ...any) error {
	var left int64
	err := from.Scan(append([]any{&r.key, &r.term, &r.holder, &r.host, &left, &r.until, &r.base, &r.head, &r.sum, &r.bytes}, more...)...)
	r.host = shown(r.host, maxHost)
	r.left = time.Duration(left) * time.Millisecond
	return misread("sessions", err)
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

// maxOthers is how many other projects are named.
const maxOthers = 5

// Others returns the names of other projects in the database, at most five, cut to a length for people, and whether there
// are more. However many rows they have, each is found by the index.
func (f *Fleet) Others(ctx context.Context) (names []string, more bool, err error) {
	next := func(table string) string {
		return `(SELECT project FROM (WITH RECURSIVE p(project) AS (SELECT pg_catalog.min(project) FROM ` + table + `
				UNION ALL SELECT (SELECT pg_catalog.min(project) FROM ` + table + ` t WHERE t.project > p.project) FROM p WHERE p.project IS NOT NULL)
			SELECT project FROM p) q WHERE project <> $1 LIMIT $2)`
	}
	err = f.reading(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		rows, err := c.Query(ctx, `SELECT pg_catalog.left(project, 100) FROM (`+next("lopen_data.sessions")+` UNION `+next("lopen_data.plans")+`) o ORDER BY project LIMIT $2`,
			f.opts.Project, maxOthers+1)
		if err != nil {
			return err
		}
		more, err = each(rows, maxOthers, func(row pgx.Rows) error {
			var name string
			err := row.Scan(&name)
			names = append(names, shown(name, maxHost))
			return err
		})
		return err
	})
	return names, more, err
}

// Find returns the session that a person names: by its ID, the prefix of one, a module's name for its
// newest, or "latest". Of several incarnations ID@INCARNATION is one. The error wraps ErrNotFound, or
// lifecycle.ErrAmbiguous.
func (f *Fleet) Find(ctx context.Context, name string) (Found, error) {
	all, err := f.List(ctx, "")
	if err != nil {
		return Found{}, err
	}
	return choose(all, name)
}

func choose(all []Found, name string) (Found, error) {
	id, incarnation, exact := strings.Cut(name, "@")
	text := func(x Found) string { return x.ID.String() }
	for _, fits := range []func(x Found) bool{
		func(x Found) bool { return text(x) == id && (!exact || x.Incarnation == incarnation) },
		func(x Found) bool { return name == "" || name == "latest" || x.ID.Module == name },
		func(x Found) bool { return strings.HasPrefix(text(x), name) },
	} {
		found := slices.DeleteFunc(slices.Clone(all), func(x Found) bool { return !fits(x) })
		switch {
		case len(found) == 0:
			continue
		case name == "" || name == "latest" || found[0].ID.Module == name, len(found) == 1:
			return found[0], nil
		case text(found[0]) == text(found[1]):
			return Found{}, fmt.Errorf("session %q: two machines made one of this ID, %s@%s and %s@%s: %w", name, found[0].ID, found[0].Incarnation, found[1].ID, found[1].Incarnation, lifecycle.ErrAmbiguous)
		}
		return Found{}, fmt.Errorf("session %q: it fits %s and %s: %w", name, found[0].ID, found[1].ID, lifecycle.ErrAmbiguous)
	}
	return Found{}, fmt.Errorf("session %q: %w", name, ErrNotFound)
}

// errNothing means that a session has no record there yet.
var errNothing = errors.New("nothing of it is in the fleet yet")
