package search

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/cache/sqlite"
)

// Search brings the index up to date with the sources and returns what has what is asked.
// It returns the same as Scan; when the index cannot be used, it scans and says so in the Note.
// An index that is damaged is made anew.
func (ix *Index) Search(ctx context.Context, sources []Source, q *Query, limit int, failed func(*Source, error)) (*Result, error) {
	r, err := ix.try(ctx, sources, q, limit, failed)
	for range 2 {
		switch {
		case err == nil || ctx.Err() != nil:
			return r, err
		case errors.Is(err, errRaced):
		case sqlite.Busy(err) || sqlite.Unavailable(err):
			return scanInstead(ctx, sources, q, limit, failed, err)
		default:
			if rerr := ix.renew(); rerr != nil {
				return scanInstead(ctx, sources, q, limit, failed, rerr)
			}
		}
		r, err = ix.try(ctx, sources, q, limit, failed)
	}
	if err == nil {
		return r, nil
	}
	return scanInstead(ctx, sources, q, limit, failed, err)
}

func scanInstead(ctx context.Context, sources []Source, q *Query, limit int, failed func(*Source, error), why error) (*Result, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	r, err := Scan(ctx, sources, q, limit, failed)
	if err == nil {
		if r.Note = "the index cannot be used: " + why.Error(); sqlite.Busy(why) || errors.Is(why, errRaced) {
			r.Note = "another process writes the index"
		}
	}
	return r, err
}

// errPanicked says that SQLite failed where it has no error for it.
var errPanicked = errors.New("database failed")

func (ix *Index) try(ctx context.Context, sources []Source, q *Query, limit int, failed func(*Source, error)) (r *Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			r, err = nil, fmt.Errorf("%w: %v", errPanicked, p)
		}
	}()
	if r, err = ix.look(ctx, sources, q, limit, false); !errors.Is(err, errOld) {
		return r, err
	}
	if err := ix.update(ctx, sources, failed); err != nil {
		return nil, err
	}
	return ix.look(ctx, sources, q, limit, true)
}

// errOld says that an index has not all that the sources have.
var errOld = errors.New("the index is not up to date")

// look finds what the index has, as it is at one moment. Just updated, it is asked only
// whether it has each source: a source may grow all the time.
func (ix *Index) look(ctx context.Context, sources []Source, q *Query, limit int, updated bool) (*Result, error) {
	tx, err := ix.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	have, err := current(tx)
	if err != nil {
		return nil, err
	}
	if changed, gone := stale(have, sources); !updated && len(changed)+len(gone) > 0 {
		return nil, errOld
	}
	f := finder{tx: tx, pool: newPool(q, limit)}
	if f.query, err = q.expression(f.words); err != nil {
		return nil, err
	}
	if err := f.find(ctx, sorted(sources, q.Sources), have); err != nil {
		return nil, err
	}
	return f.pool.result(limit), nil
}

// sparse is how many entries may have the words of a query to be looked at all at once, and
// not source by source.
const sparse = 6000

// A finder looks a query up.
type finder struct {
	tx    *sql.Tx
	pool  *pool
	query string
	read  *sql.Stmt
	small *sql.Stmt
	big   *sql.Stmt
	ids   []int64
}

// A run are entries of one source that follow each other.
type run struct{ first, last, source int64 }

func (f *finder) find(ctx context.Context, sources []*Source, have map[string]known) (err error) {
	for stmt, text := range map[**sql.Stmt]string{
		&f.read: `SELECT number, piece, time, kind, role, tool, files, text FROM doc WHERE id = ?`,
		// One row for all: a row for each would take longer than to find it.
		&f.small: `SELECT group_concat(id, ' ') FROM (SELECT rowid AS id FROM small WHERE small MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?)`,
		&f.big:   `SELECT group_concat(id, ' ') FROM (SELECT rowid AS id FROM big WHERE big MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?)`,
	} {
		if *stmt, err = f.tx.Prepare(text); err != nil {
			return err
		}
	}
	runs, err := f.runs()
	if err != nil {
		return err
	}
	if err = f.lookUp(0, math.MaxInt64, sparse+1); err != nil {
		return err
	}
	few := len(f.ids) <= sparse
	of := map[int64][]int64{} // by source, the newest first
	if few {
		for _, id := range f.ids {
			if r, ok := runOf(runs, id); ok {
				of[r.source] = append(of[r.source], id)
			}
		}
	}
	bySource := map[int64][]run{}
	for _, r := range runs {
		bySource[r.source] = append(bySource[r.source], r)
	}
	for _, s := range sources {
		k, ok := have[s.Key]
		switch {
		case !ok:
			return errRaced // it was taken out by a process that did not know of it
		case few:
			err = f.take(ctx, s, of[k.id])
		default:
			err = f.takeRuns(ctx, s, bySource[k.id])
		}
		if err != nil || f.pool.full() {
			return err
		}
	}
	return nil
}

// words are those of the index that begin so, or more of them than are asked for one by one.
func (f *finder) words(prefix string) (all []string, err error) {
	end := append([]byte(prefix[:len(prefix)-1]), prefix[len(prefix)-1]+1) // the last byte is below 0xff: words are UTF-8
	rows, err := f.tx.Query(`SELECT term FROM smallwords WHERE term >= ?1 AND term < ?2 UNION SELECT term FROM bigwords WHERE term >= ?1 AND term < ?2 LIMIT ?3`,
		prefix, string(end), maxWords*4+1)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var word string
		if err := rows.Scan(&word); err != nil {
			return nil, err
		}
		all = append(all, word)
	}
	return all, rows.Err()
}

func (f *finder) runs() (all []run, err error) {
	rows, err := f.tx.Query(`SELECT first, last, source FROM run ORDER BY first`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r run
		if err := rows.Scan(&r.first, &r.last, &r.source); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

func runOf(runs []run, id int64) (run, bool) {
	i, ok := slices.BinarySearchFunc(runs, id, func(r run, id int64) int {
		switch {
		case r.last < id:
			return -1
		case r.first > id:
			return 1
		}
		return 0
	})
	if !ok {
		return run{}, false
	}
	return runs[i], true
}

// lookUp sets ids to the last entries of a range that have the words, the newest first.
func (f *finder) lookUp(first, last int64, limit int) error {
	f.ids = f.ids[:0]
	for _, table := range [...]*sql.Stmt{f.small, f.big} {
		if err := f.add(table, f.query, first, last, limit); err != nil {
			return err
		}
	}
	slices.SortFunc(f.ids, func(a, b int64) int { return cmp.Compare(b, a) })
	f.ids = f.ids[:min(len(f.ids), limit)]
	return nil
}

func (f *finder) add(table *sql.Stmt, args ...any) error {
	var ids sql.NullString
	if err := table.QueryRow(args...).Scan(&ids); err != nil {
		return err
	}
	for text := range strings.FieldsSeq(ids.String) {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return err
		}
		f.ids = append(f.ids, id)
	}
	return nil
}

func (f *finder) takeRuns(ctx context.Context, s *Source, runs []run) error {
	for _, r := range slices.Backward(runs) {
		// Most runs have fewer matches than fill the pool; of a long one not all are asked for at once.
		for last := r.last; last >= r.first; last = f.ids[len(f.ids)-1] - 1 {
			if err := f.lookUp(r.first, last, 2*Ranked); err != nil {
				return err
			}
			if err := f.take(ctx, s, f.ids); err != nil || f.pool.full() {
				return err
			}
			if len(f.ids) < 2*Ranked {
				break
			}
		}
	}
	return nil
}

// take compares entries of a source with the query.
func (f *finder) take(ctx context.Context, s *Source, ids []int64) error {
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return err
		}
		var d Document
		var number, ms int64
		var piece int
		var files string
		if err := f.read.QueryRow(id).Scan(&number, &piece, &ms, &d.Kind, &d.Role, &d.Tool, &files, &d.Text); err != nil {
			if errors.Is(err, sql.ErrNoRows) {
				err = errOther // words without their text: something else wrote it
			}
			return err
		}
		d.Number, d.Time = uint64(number), time.UnixMilli(ms).UTC()
		if files != "" {
			d.Files = strings.Split(files, "\n")
		}
		if f.pool.take(s.Key, &d, piece); f.pool.full() {
			return nil
		}
	}
	return nil
}
