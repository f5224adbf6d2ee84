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
		case sqlite.Full(err):
			ix.giveBack()
			return scanInstead(ctx, sources, q, limit, failed, fmt.Errorf("%w: %w", errNoRoom, err))
		case sqlite.Busy(err) || sqlite.Unavailable(err) || errors.Is(err, errNoRoom):
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

// A finder looks a query up.
type finder struct {
	tx    *sql.Tx
	pool  *pool
	query expression
	read  *sql.Stmt
	small *sql.Stmt
	big   *sql.Stmt
	runs  []run
	of    map[int64]*Source // those that are searched, by their number
	ids   []int64
}

// A run are entries of one source that follow each other, and the time of the newest.
type run struct{ first, last, source, newest int64 }

// A stretch has the runs of several sources of which the entries, the last one first, are in the order in
// which they are looked at: one question finds those of all. Entries between them that are not
// searched are no more than those that are.
type stretch struct{ first, last, size int64 }

const (
	// scattered is from how many stretches on the entries that have the words are asked for in all at once.
	scattered = 16
	// sparse is how many of them may be, in place of asking in each stretch.
	sparse = 6000
)

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
	ordered, err := f.readRuns(sources, have)
	if err != nil {
		return err
	}
	stretches := stretchesOf(ordered)
	if f.query.broad {
		if stretches, err = f.takeNewest(ctx, stretches); err != nil || f.pool.full() {
			return err
		}
	}
	if len(stretches) > scattered {
		if err := f.lookUp(f.query.all, 0, math.MaxInt64, sparse+1); err != nil {
			return err
		}
		if len(f.ids) <= sparse {
			return f.takeSorted(ctx, sources)
		}
	}
	for _, s := range stretches {
		if err := f.takeStretch(ctx, s); err != nil || f.pool.full() {
			return err
		}
	}
	return nil
}

// stretchesOf joins runs that stand in the order in which they are looked at.
func stretchesOf(runs []run) (all []stretch) {
	for _, r := range runs {
		size := r.last - r.first + 1
		if n := len(all) - 1; n >= 0 && r.last < all[n].first && all[n].last-r.first+1 <= 2*(all[n].size+size) {
			all[n].first = r.first
			all[n].size += size
			continue
		}
		all = append(all, stretch{r.first, r.last, size})
	}
	return all
}

// words are those of the index that begin so, or more of them than are asked for one by one.
func (f *finder) words(prefix string) (all []string, err error) {
	end := append([]byte(prefix[:len(prefix)-1]), prefix[len(prefix)-1]+1) // the last byte is below 0xff: words are UTF-8
	rows, err := f.tx.Query(`SELECT term FROM smallwords WHERE term >= ?1 AND term < ?2 UNION SELECT term FROM bigwords WHERE term >= ?1 AND term < ?2 LIMIT ?3`,
		prefix, string(end), maxBegin+1)
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

// readRuns reads all runs and returns those of the sources in the order in which they are looked
// at: source by source, the last one of each first. Runs that are too old are left out.
func (f *finder) readRuns(sources []*Source, have map[string]known) (ordered []run, err error) {
	rows, err := f.tx.Query(`SELECT first, last, iif(newest < ?, 0, source) FROM run ORDER BY first`, f.pool.since())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	bySource := map[int64][]run{}
	for rows.Next() {
		var r run
		if err := rows.Scan(&r.first, &r.last, &r.source); err != nil {
			return nil, err
		}
		f.runs = append(f.runs, r)
		bySource[r.source] = append(bySource[r.source], r)
	}
	f.of = make(map[int64]*Source, len(sources))
	for _, s := range sources {
		k, ok := have[s.Key]
		if !ok {
			return nil, errRaced // it was taken out by a process that did not know of it
		}
		f.of[k.id] = s
		for _, r := range slices.Backward(bySource[k.id]) {
			ordered = append(ordered, r)
		}
	}
	return ordered, rows.Err()
}

// sourceOf returns the source of an entry, or nil if it is not searched.
func (f *finder) sourceOf(id int64) *Source {
	i, ok := slices.BinarySearchFunc(f.runs, id, func(r run, id int64) int {
		switch {
		case r.last < id:
			return -1
		case r.first > id:
			return 1
		}
		return 0
	})
	if !ok {
		return nil
	}
	return f.of[f.runs[i].source]
}

// lookUp sets ids to the last entries of a range that have the words, the newest first.
func (f *finder) lookUp(query string, first, last int64, limit int) error {
	f.ids = f.ids[:0]
	for _, table := range [...]*sql.Stmt{f.small, f.big} {
		if err := f.add(table, query, first, last, limit); err != nil {
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

// takeSorted compares the entries that were looked up, source by source.
func (f *finder) takeSorted(ctx context.Context, sources []*Source) error {
	of := map[*Source][]int64{}
	for _, id := range f.ids {
		if s := f.sourceOf(id); s != nil {
			of[s] = append(of[s], id)
		}
	}
	for _, s := range sources {
		for _, id := range of[s] {
			if err := f.take(ctx, s, id); err != nil || f.pool.full() {
				return err
			}
		}
	}
	return nil
}

// takeStretch compares the entries of a stretch that have the words. Not all are asked for at once: most
// often the first ones fill the pool. But a beginning of very many words costs the same for one and for all.
func (f *finder) takeStretch(ctx context.Context, s stretch) error {
	limit := 2 * Ranked
	if f.query.broad {
		limit *= 64
	}
	for last := s.last; last >= s.first; last = f.ids[len(f.ids)-1] - 1 {
		if err := f.lookUp(f.query.all, s.first, last, limit); err != nil {
			return err
		}
		if err := f.takeAll(ctx); err != nil || f.pool.full() {
			return err
		}
		if len(f.ids) < limit {
			break
		}
	}
	return nil
}

// takeAll compares the entries that were looked up in a stretch.
func (f *finder) takeAll(ctx context.Context) error {
	for _, id := range f.ids {
		of := f.sourceOf(id)
		if of == nil {
			continue
		}
		if err := f.take(ctx, of, id); err != nil || f.pool.full() {
			return err
		}
	}
	return nil
}

// take compares an entry of a source with the query.
func (f *finder) take(ctx context.Context, s *Source, id int64) error {
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
		d.Files = strings.Split(files, between)
	}
	f.pool.take(s.Key, &d, piece)
	return nil
}
