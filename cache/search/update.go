package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// A known source is one of the index.
type known struct {
	id      int64
	version string
	mark    uint64
	sign    string
	tail    string
}

// current reads what the index has.
func current(tx *sql.Tx) (map[string]known, error) {
	rows, err := tx.Query(`SELECT id, key, version, mark, sign, tail FROM source`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]known{}
	for rows.Next() {
		var key string
		var k known
		if err := rows.Scan(&k.id, &key, &k.version, &k.mark, &k.sign, &k.tail); err != nil {
			return nil, err
		}
		all[key] = k
	}
	return all, rows.Err()
}

// stale are the sources that have grown or changed, and the keys of those that are gone.
func stale(have map[string]known, sources []Source) (changed []*Source, gone []string) {
	live := make(map[string]bool, len(sources))
	for i := range sources {
		s := &sources[i]
		live[s.Key] = true
		if k, ok := have[s.Key]; !ok || s.Grows || k.version != s.Version || k.mark != s.Mark || k.sign != s.Sign {
			changed = append(changed, s)
		}
	}
	for key := range have {
		if !live[key] {
			gone = append(gone, key)
		}
	}
	return changed, gone
}

// batchBytes is how much text is read, or committed, at once.
const (
	batchBytes  = 1 << 20
	commitBytes = 192 << 20
	// smallBytes of an update are merged with those before, what is more is not.
	smallBytes = 4 << 20
)

// An entry is a piece of a document, and the words that lead to it.
type entry struct {
	Document
	piece int
	words string
	files string
}

// A batch is a part of what is read of a source. The last one of a source says how far it got.
type batch struct {
	source  *Source
	entries []entry
	bytes   int
	from    known
	begins  bool // the first batch: what the index has from before goes if anew is set
	anew    bool
	ends    bool
	mark    uint64
	tail    string
	err     error // the source could not be read to its end
}

// update brings the index up to date: one goroutine reads and finds the words, the other writes.
func (ix *Index) update(ctx context.Context, sources []Source, failed func(*Source, error)) error {
	if err := ix.room(); err != nil {
		return err
	}
	tx, err := ix.db.BeginTx(ctx, nil) // no other process writes
	if err != nil {
		return err
	}
	w := &indexer{ix: ix, tx: tx, failed: failed}
	defer func() { _ = w.tx.Rollback() }() // a part of a source is in no commit
	have, err := current(tx)
	if err != nil {
		return err
	}
	changed, gone := stale(have, sources)
	if len(changed)+len(gone) == 0 {
		return nil // another process was faster
	}
	if err := tooMuchGone(tx); err != nil {
		return err
	}
	for _, key := range gone {
		w.gone = append(w.gone, have[key].id)
	}
	if err := w.begin(); err != nil {
		return err
	}
	// The newest come last: backwards, the entries are then in the order in which they are looked at.
	slices.SortFunc(changed, func(a, b *Source) int { return byAge(b, a) })
	if err := ix.fill(ctx, w, changed, have); err != nil {
		return err
	}
	if err := w.finish(); err != nil {
		return err
	}
	if err := w.tx.Commit(); err != nil {
		return err
	}
	ix.remove(ix.notes())
	return nil
}

// maxGone is how many entries may be gone, when they are more than half of all, before an index is made anew.
var maxGone = 50_000

func tooMuchGone(tx *sql.Tx) error {
	var gone, all int
	if err := tx.QueryRow(`SELECT coalesce(sum(last - first + 1), 0), coalesce(sum(iif(source = 0, last - first + 1, 0)), 0) FROM run`).Scan(&all, &gone); err != nil {
		return err
	}
	if gone > maxGone && gone > all/2 {
		return errOther
	}
	return nil
}

// fill reads sources in one goroutine and writes them in another.
func (ix *Index) fill(ctx context.Context, w *indexer, changed []*Source, have map[string]known) error {
	batches := make(chan *batch, 4)
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(batches)
		r := &reader{ctx: gctx, out: batches}
		for _, s := range changed {
			if err := r.read(s, have[s.Key]); err != nil {
				return err
			}
		}
		return nil
	})
	g.Go(func() error {
		for b := range batches {
			if err := w.write(b); err != nil {
				return err
			}
		}
		return nil
	})
	return g.Wait()
}

// A reader makes batches of sources.
type reader struct {
	ctx   context.Context
	out   chan<- *batch
	words wordSet
}

func (r *reader) send(b *batch) error {
	select {
	case r.out <- b:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// read reads what a source has more than the index, or all of it if it has changed.
func (r *reader) read(s *Source, k known) error {
	anew := k.id == 0 || k.version != s.Version || s.Mark < k.mark && !s.Grows
	err := r.readFrom(s, k, anew)
	if errors.Is(err, ErrChanged) && !anew {
		err = r.readFrom(s, k, true)
	}
	return err
}

func (r *reader) readFrom(s *Source, k known, anew bool) error {
	from := k
	if anew {
		from.mark, from.tail = 0, ""
	}
	b := &batch{source: s, from: k, begins: true, anew: anew}
	var stop error
	mark, tail, err := s.Read(from.mark, from.tail, func(d *Document) error {
		stop = pieces(d.Text, func(n int, part string) error {
			e := entry{Document: *d, piece: n, files: strings.Join(d.Files, between)}
			e.Text = part
			e.words = r.words.of(&e.Document)
			b.entries = append(b.entries, e)
			if b.bytes += len(part) + 256; b.bytes < batchBytes {
				return nil
			}
			full := b
			b = &batch{source: s, from: k}
			return r.send(full)
		})
		return stop
	})
	switch {
	case stop != nil:
		return stop
	case errors.Is(err, ErrChanged):
		if b.begins {
			return err
		}
		return fmt.Errorf("read %s: %w after it was begun", s.Key, err)
	}
	b.ends, b.mark, b.tail, b.err = true, max(mark, s.Mark), tail, err
	return r.send(b)
}

// An indexer writes batches.
type indexer struct {
	ix         *Index
	tx         *sql.Tx
	doc        *sql.Stmt
	small      *sql.Stmt
	big        *sql.Stmt
	next       int64 // the number of the next entry
	bytes      int   // since the last commit
	all        int   // bytes of the update
	source     int64
	first      int64   // of the entries of the source in this update
	gone       []int64 // sources to forget
	ended      []ended // sources to note
	runs       []run   // to note
	nextSource int64
	others     int64 // changes with each commit of another process
	failed     func(*Source, error)
}

// errRaced says that another process wrote between two commits of this one.
var errRaced = errors.New("another process writes in the index")

// begin prepares a transaction.
func (w *indexer) begin() (err error) {
	var next, source sql.NullInt64
	before := w.others
	if err = w.tx.QueryRow(`PRAGMA data_version`).Scan(&w.others); err != nil {
		return err
	}
	if before != 0 && before != w.others {
		return errRaced
	}
	if err = w.tx.QueryRow(`SELECT max(last) FROM run`).Scan(&next); err != nil {
		return err
	}
	if err = w.tx.QueryRow(`SELECT max(id) FROM source`).Scan(&source); err != nil {
		return err
	}
	w.next, w.nextSource = max(w.next, next.Int64+1), max(w.nextSource, source.Int64+1)
	if w.doc, err = w.tx.Prepare(`INSERT INTO doc VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`); err != nil {
		return err
	}
	if w.small, err = w.tx.Prepare(`INSERT INTO small(rowid, text) VALUES (?, ?)`); err != nil {
		return err
	}
	w.big, err = w.tx.Prepare(`INSERT INTO big(rowid, text) VALUES (?, ?)`)
	return err
}

// forget removes a source. The words that lead to its entries stay until the index is made
// anew; the entries are gone.
func (w *indexer) forget(source int64) error {
	for _, statement := range [...]string{
		`DELETE FROM doc WHERE id IN (SELECT doc.id FROM run JOIN doc ON doc.id BETWEEN run.first AND run.last WHERE run.source = ?)`,
		`UPDATE run SET source = 0 WHERE source = ?`,
		`DELETE FROM source WHERE id = ?`,
	} {
		if _, err := w.tx.Exec(statement, source); err != nil {
			return err
		}
	}
	return nil
}

func (w *indexer) write(b *batch) error {
	if b.begins {
		w.beginSource(b)
	}
	words := w.small
	if w.all += b.bytes; w.all > smallBytes {
		words = w.big
	}
	for i := range b.entries {
		e := &b.entries[i]
		if _, err := w.doc.Exec(w.next, int64(e.Number), e.piece, e.Time.UnixMilli(), e.Kind, e.Role, e.Tool, e.files, e.Text); err != nil {
			return err
		}
		if _, err := words.Exec(w.next, e.words); err != nil {
			return err
		}
		w.ran(e.Time.UnixMilli())
		w.next++
	}
	w.bytes += b.bytes
	if !b.ends {
		return nil
	}
	return w.endSource(b)
}

// maxRun is how many entries a run has at most when it is begun, and about how many entries are looked at for nothing
// in a source that has some which are young enough.
const maxRun = 1024

// ran adds the next entry to the last run of its source, or begins another one.
func (w *indexer) ran(ms int64) {
	if n := len(w.runs); n > 0 && w.next > w.first {
		if r := &w.runs[n-1]; r.last-r.first+1 < maxRun {
			r.last, r.newest = w.next, max(r.newest, ms)
			return
		}
	}
	w.runs = append(w.runs, run{w.next, w.next, w.source, ms})
}

func (w *indexer) beginSource(b *batch) {
	w.source, w.first = b.from.id, w.next
	if b.anew && w.source != 0 {
		w.gone = append(w.gone, w.source)
		w.source = 0
	}
	if w.source == 0 {
		w.source = w.nextSource
		w.nextSource++
	}
}

// endSource remembers what the index has of a source. One that could not be read to its end is
// read again the next time, from the beginning.
func (w *indexer) endSource(b *batch) error {
	version := b.source.Version
	if b.err == nil && !b.anew && w.next == w.first && b.mark == b.from.mark && b.source.Sign == b.from.sign && b.tail == b.from.tail {
		return nil
	}
	if b.err != nil {
		w.failed(b.source, b.err)
		version += " unread"
	}
	w.ended = append(w.ended, ended{b.source.Key, known{w.source, version, b.mark, b.source.Sign, b.tail}})
	if w.bytes < commitBytes {
		return nil
	}
	return w.commit()
}

// An ended source has been written.
type ended struct {
	key string
	known
}

// finish writes what is known of the sources. FTS5 writes a segment at each such statement,
// so that it is done once, before a commit.
func (w *indexer) finish() error {
	for _, source := range w.gone {
		if err := w.forget(source); err != nil {
			return err
		}
	}
	for _, e := range w.ended {
		if _, err := w.tx.Exec(`INSERT OR REPLACE INTO source (id, key, version, mark, sign, tail) VALUES (?, ?, ?, ?, ?, ?)`, e.id, e.key, e.version, int64(e.mark), e.sign, e.tail); err != nil {
			return err
		}
	}
	for _, r := range w.runs {
		res, err := w.tx.Exec(`UPDATE run SET last = ?, newest = max(newest, ?) WHERE last = ? AND source = ? AND last - first < ?`,
			r.last, r.newest, r.first-1, r.source, maxRun-1)
		if err != nil {
			return err
		}
		if n, _ := res.RowsAffected(); n > 0 {
			continue
		}
		if _, err := w.tx.Exec(`INSERT INTO run VALUES (?, ?, ?, ?)`, r.first, r.last, r.source, r.newest); err != nil {
			return err
		}
	}
	w.gone, w.ended, w.runs = nil, nil, nil
	return nil
}

// commit ends the transaction after a source, and begins the next one.
func (w *indexer) commit() error {
	w.bytes = 0
	if err := w.finish(); err != nil {
		return err
	}
	if err := w.tx.Commit(); err != nil {
		return err
	}
	tx, err := w.ix.db.BeginTx(context.Background(), nil)
	if err != nil { // another process was faster
		return err
	}
	w.tx = tx
	return w.begin()
}
