package fleet

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/journal"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// What a batch has at most, but for one record that is larger.
const (
	maxRecords    = 1000
	maxBatch      = 1 << 20
	maxDetailOps  = 50
	maxDetailText = 200
)

// A batch is records of one session that are shipped together, with what they name.
type batch struct {
	seqs    []int64
	lines   [][]byte
	sums    [][]byte
	ats     []*time.Time
	events  []*string
	details []*string

	base uint64 // from this record on all are there
	head uint64
	sum  []byte
	size int  // of the lines, in bytes
	last bool // it ends at the last durable record

	checkpoints []string // that the records name, and
	snapshots   []history.ID
	files       []string        // of the session's folder, that they need
	objects     []sessionObject // where these are
	entries     []checkpointEntry
	first       bool // it is the first one of the session
}

// errFull ends the reading of a batch.
var errFull = errors.New("the batch is full")

// sumOf returns the sum of a record: it says which records were before it, too.
func sumOf(before, line []byte) []byte {
	h := sha256.New()
	h.Write(before)
	h.Write(line)
	return h.Sum(nil)
}

// read reads the next records from the log.
func (s *shipping) read(here *durable) (*batch, error) {
	b := &batch{head: s.row.head, sum: s.row.sum, first: s.row.head == 0}
	err := s.tail.Read(here.Seq, func(r *journal.Ref, line []byte) error {
		if len(b.seqs) == maxRecords || len(b.seqs) > 0 && b.size+len(line) > maxBatch {
			return errFull
		}
		rec, err := wire.DecodeRecord(line)
		if err != nil {
			return err
		}
		b.add(r, line, &rec)
		return nil
	})
	if err != nil && !errors.Is(err, errFull) {
		return nil, err
	}
	if b.base = s.tail.Begin(); b.base <= s.row.head+1 {
		b.base = s.row.base
	}
	if err == nil {
		b.head, b.last = max(b.head, here.Seq), true // what lies between was dropped
	}
	return b, nil
}

// add adds a record.
func (b *batch) add(r *journal.Ref, line []byte, rec *record.Record) {
	b.head, b.sum = r.Seq, sumOf(b.sum, line)
	b.seqs, b.lines, b.sums = append(b.seqs, int64(r.Seq)), append(b.lines, append([]byte(nil), line...)), append(b.sums, b.sum)
	b.size += len(line)
	var at *time.Time
	var event, detail *string
	if rec.Message == nil && rec.TranscriptEvent == nil {
		at, event, detail = &rec.At, ptr(eventOf(rec)), ptr(detailOf(rec))
	}
	b.ats, b.events, b.details = append(b.ats, at), append(b.events, event), append(b.details, detail)
	b.names(r, rec)
}

// names notes what a record needs beside the log.
func (b *batch) names(r *journal.Ref, rec *record.Record) {
	for _, id := range []string{rec.Checkpoint} {
		if id != "" {
			b.checkpoints = append(b.checkpoints, id)
		}
	}
	if w := rec.Rewind; w != nil {
		for _, id := range []string{w.Before, w.After} {
			if id != "" {
				b.checkpoints = append(b.checkpoints, id)
			}
		}
	}
	if rec.Snapshot != nil {
		id := history.ID{Epoch: r.Epoch, Seq: r.Seq}
		b.files, b.snapshots = append(b.files, id.Stem()), append(b.snapshots, id)
	}
	for i := range rec.Attempts {
		b.files = append(b.files, fmt.Sprintf("output/%06d", rec.Attempts[i].Iteration))
	}
}

func ptr[T any](v T) *T { return &v }

// eventOf returns the name of what a record is.
func eventOf(rec *record.Record) string {
	if rec.Event != "" {
		return string(rec.Event)
	}
	return "saved"
}

// detailOf returns what the view of events has of a record, as JSON.
func detailOf(rec *record.Record) string {
	type op struct {
		Op    string `json:"op"`
		Task  string `json:"task,omitempty"`
		From  string `json:"from,omitempty"`
		To    string `json:"to,omitempty"`
		Count int    `json:"count,omitempty"`
	}
	var d struct {
		Triggers   map[string]uint64 `json:"triggers,omitempty"`
		Ops        []op              `json:"ops,omitempty"`
		MoreOps    int               `json:"moreOps,omitempty"`
		Checkpoint string            `json:"checkpoint,omitempty"`
	}
	d.Checkpoint = rec.Checkpoint
	for t, n := range rec.Triggers {
		if n > 0 {
			if d.Triggers == nil {
				d.Triggers = map[string]uint64{}
			}
			d.Triggers[session.Trigger(t).String()] = n
		}
	}
	for i, o := range rec.Ops {
		if i == maxDetailOps {
			d.MoreOps = len(rec.Ops) - i
			break
		}
		d.Ops = append(d.Ops, op{o.Name, clean(o.Task), clip(o.From), clip(o.To), o.Count})
	}
	data, _ := strictjson.Marshal(d) // of strings and numbers
	return string(data)
}

// clean returns a text as the database takes it: in UTF-8 and without NUL.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func clip(s string) string {
	if len(s) > maxDetailText {
		s = s[:maxDetailText]
	}
	return clean(s)
}

// insert inserts the records with all that they name.
func (b *batch) insert(ctx context.Context, tx pgx.Tx, key int64) error {
	if len(b.seqs) > 0 {
		if _, err := tx.Exec(ctx, `INSERT INTO lopen_data.records (session, seq, bytes, sum, at, event, detail)
			SELECT $1, r.seq, r.bytes, r.sum, r.at, r.event, r.detail::jsonb
			FROM unnest($2::bigint[], $3::bytea[], $4::bytea[], $5::timestamptz[], $6::text[], $7::text[]) AS r(seq, bytes, sum, at, event, detail)`,
			inBinary, key, b.seqs, b.lines, b.sums, b.ats, b.events, b.details); err != nil {
			return err
		}
	}
	if err := b.insertObjects(ctx, tx, key); err != nil {
		return err
	}
	return b.insertCheckpoints(ctx, tx, key)
}

// insertObjects inserts them in one statement, however many they are: a transaction has a bounded time.
func (b *batch) insertObjects(ctx context.Context, tx pgx.Tx, key int64) error {
	last := map[string]blob.Hash{} // with a record comes one of a name
	for _, o := range b.objects {
		last[o.name] = o.hash
	}
	names, hashes := slices.Sorted(maps.Keys(last)), make([][]byte, 0, len(last))
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		h := last[name]
		hashes = append(hashes, h[:])
	}
	_, err := tx.Exec(ctx, `INSERT INTO lopen_data.session_objects (session, name, seq, hash) SELECT $1, o.name, $4, o.hash
		FROM unnest($2::text[], $3::bytea[]) AS o(name, hash) ON CONFLICT DO NOTHING`, key, names, hashes, int64(b.head))
	return err
}

// insertCheckpoints likewise.
func (b *batch) insertCheckpoints(ctx context.Context, tx pgx.Tx, key int64) error {
	if len(b.entries) == 0 {
		return nil
	}
	var ids, chains []string
	var numbers []int64
	var lines, roots, rules [][]byte
	for i := range b.entries {
		e := &b.entries[i]
		ids, chains, numbers = append(ids, e.id), append(chains, e.chain), append(numbers, int64(e.number))
		lines, roots, rules = append(lines, e.lines), append(roots, e.root), append(rules, e.rules)
	}
	_, err := tx.Exec(ctx, `INSERT INTO lopen_data.checkpoints (session, id, chain, entry, lines, root, rules)
		SELECT $1, c.* FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bytea[], $6::bytea[], $7::bytea[]) AS c(id, chain, entry, lines, root, rules)
		ON CONFLICT DO NOTHING`, key, ids, chains, numbers, lines, roots, rules)
	return err
}
