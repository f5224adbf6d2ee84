package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/journal"
)

// shipping is what the goroutine of a Session knows of its row.
type shipping struct {
	session *Session
	note    note
	noted   time.Time // when the note was last written
	dirty   bool      // it has changed since

	lease *lease         // that is renewed; nil if there is none
	row   *row           // nil until the lease is taken, and after an error
	tail  *journal.Tail  // reads above row.head
	sent  []end          // ends of the batches since the lease was taken, whose outcome may be unknown
	sure  bool           // all up to row.head is confirmed
	shown *session.State // that the tables of tasks and iterations show; nil if that is not known
	plan  shippedPlan

	doubted *row          // that cannot be true, and
	doubt   *SessionError // why; nil if there was none

	line    map[checkpoint.ID]bool // the checkpoints on the session's line; nil if they are not known
	chained map[string]bool        // those of them that the fleet has, by chain and ID
}

// An end is the last record of a batch, with its sum. The records of another incarnation are others.
type end struct {
	of  string // the incarnation
	seq uint64
	sum []byte
}

// maxSent bounds the ends that are remembered: only the last one can be unknown, and the others are
// for a database that fell back.
const maxSent = 64

// upto ships all records up to a durable one. Between two batches other sessions have their turn.
func (s *shipping) upto(ctx context.Context, here *durable) error {
	if here.Incarnation != s.note.Incarnation {
		if err := s.anew(ctx, here); err != nil {
			return err
		}
	}
	for refused := 0; ; {
		done, err := s.step(ctx, here)
		switch {
		case errors.Is(err, errRefused) && refused < 3: // the row says why
			refused++
		case done || err != nil:
			return err
		default:
			refused = 0
		}
	}
}

// step ships the next batch, or the plan when nothing else is left, and then it is done.
func (s *shipping) step(ctx context.Context, here *durable) (done bool, err error) {
	select {
	case s.session.fleet.slots <- struct{}{}: // so that only that many sessions have a batch in memory
		defer func() { <-s.session.fleet.slots }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if !s.session.fleet.joined() {
		return false, ErrLeft
	}
	if n := here.State.NumTasks(); n > s.session.fleet.tasks {
		return false, fmt.Errorf("session %s has %d tasks: %w", s.session.ID(), n, errManyTasks)
	}
	if s.session.lost.Swap(false) {
		s.row = nil
	}
	if s.row == nil {
		if err := s.attach(ctx, here); err != nil {
			return false, err
		}
	}
	if s.row.head >= here.Seq && s.sure && s.shown == here.State {
		return true, s.plan.ship(ctx, s.session)
	}
	if err = s.batch(ctx, here); err != nil {
		s.row = nil // the outcome may be unknown: the head is read again
	}
	return false, err
}

// anew begins with the folder that was made again from memory, as another session of the fleet.
func (s *shipping) anew(ctx context.Context, here *durable) error {
	x := s.session
	dir, err := folderOf(x.store, x.ID())
	if err != nil {
		return err
	}
	s.release(ctx)
	_ = x.dir.Close() // what was written to it is gone
	x.dir, s.note = dir, note{Project: s.note.Project, Incarnation: here.Incarnation}
	return folder.MoveCursor(dir, cursorName, 0)
}

// foreignKey is the code of a violated foreign key.
const foreignKey = "23503"

// errRefused means that a guarded statement found no row, or an object that was known is gone.
var errRefused = errors.New("the batch was refused")

// attach finds the session's row or makes it, compares its last record with the log here, and
// takes the lease.
func (s *shipping) attach(ctx context.Context, here *durable) error {
	x, f := s.session, s.session.fleet
	schema, err := f.Schema(ctx)
	if err == nil {
		err = schema.usable()
	}
	if err != nil {
		return err
	}
	id := x.ID()
	r, err := f.find(ctx, id.String(), s.note.Incarnation)
	switch {
	case errors.Is(err, ErrNotFound) && s.note.Seq > 0:
		return fmt.Errorf("session %s: %w", id, ErrGone)
	case errors.Is(err, ErrNotFound):
		if err = f.insert(ctx, id, s.note.Incarnation); err == nil {
			r, err = f.find(ctx, id.String(), s.note.Incarnation)
		}
	}
	if err != nil {
		return err
	}
	if err = s.ours(ctx, r, here); err == nil {
		err = s.found(r).doubted(r.possible())
	}
	if err != nil {
		return err
	}
	r, err = f.take(ctx, id.String(), r.key, s.note.Secret, s.note.Term)
	var held *HeldError
	switch {
	case errors.As(err, &held):
		return &FencedError{ID: id, Host: held.Host, Common: min(r.head, here.Seq), Head: r.head}
	case err != nil && !errors.Is(err, errUnconfirmed):
		return err
	}
	r.host = "another machine"                   // its name made way for this one's
	if err := s.ours(ctx, r, here); err != nil { // somebody may have had it in between
		return errors.Join(err, f.giveBack(ctx, r.key, r.term))
	}
	s.fellBack(r)
	s.row, s.sure, s.shown, s.tail, s.line = r, false, nil, journal.NewTail(x.dir, r.head), nil
	s.note.Secret, s.note.Term, s.dirty = f.secret, r.term, true
	if err := s.write(true); err != nil {
		return err
	}
	s.lease = &lease{key: r.key, term: r.term, lost: func() {
		x.lost.Store(true)
		x.poke()
	}}
	f.keep(s.lease)
	return nil
}

// fellBack says that the database lacks what it had acknowledged.
func (s *shipping) fellBack(r *row) {
	if r.head >= s.note.Seq {
		return
	}
	text := fmt.Sprintf("the database is back at record %d and had acknowledged record %d: an older backup was restored, or a failover lost the rest; it is shipped again", r.head, s.note.Seq)
	s.session.log.Error().Msg(text)
	s.session.mu.Lock()
	s.session.restored = text
	s.session.mu.Unlock()
	s.note.Restored, s.note.Seq, s.note.Sum = text, r.head, r.sum
}

// insert makes the row of a session, with no record and a lease that is over.
func (f *Fleet) insert(ctx context.Context, id session.ID, incarnation string) error {
	return f.call(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		_, err := c.Exec(ctx, `INSERT INTO lopen_data.sessions (project, id, incarnation, module, term, host, lease_until)
			VALUES ($1, $2, $3, $4, 0, $5, clock_timestamp()) ON CONFLICT DO NOTHING`, f.opts.Project, id.String(), incarnation, id.Module, f.opts.Host)
		return err
	})
}

// ours returns nil if what the database has is a beginning of the log here, a [*FencedError] if somebody else
// continued the session, and a [*SessionError] if what it has cannot be true.
func (s *shipping) ours(ctx context.Context, r *row, here *durable) error {
	if r.head == 0 {
		return nil
	}
	for _, e := range append(s.sent, s.note.end()) {
		if r.head > here.Seq { // the folder was restored from an older copy, or its log was cut off
			break
		}
		if e.of == s.note.Incarnation && e.seq == r.head && bytes.Equal(e.sum, r.sum) {
			return nil
		}
	}
	same, err := s.session.fleet.sameRecord(ctx, r, s.session.dir, here.Seq)
	if err == nil && same {
		return s.found(r).doubted(s.session.fleet.headed(ctx, r))
	}
	if err != nil {
		return err
	}
	return s.another(ctx, r)
}

// batch ships the next records, at most some, and shows the State with the last of them.
func (s *shipping) batch(ctx context.Context, here *durable) error {
	b, err := s.read(here)
	if err != nil {
		return err
	}
	if err := s.contents(ctx, b); err != nil {
		return err
	}
	x, f := s.session, s.session.fleet
	s.sent = append(s.sent, end{s.note.Incarnation, b.head, b.sum})
	if len(s.sent) > maxSent {
		s.sent = s.sent[1:]
	}
	err = f.durably(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var shipped bool
		err := tx.QueryRow(ctx, `SELECT coalesce(lopen_data.ship_session($1::bigint, $2::text, $3::bigint, $4::text, $5::text, $6::bigint, $7::bigint, $8::bytea,
			$9::bigint, $10::bytea, $11::bigint, $12::bigint), false)`,
			s.row.key, s.note.Incarnation, s.row.term, f.secret, f.opts.Host, f.times.lease.Milliseconds(), int64(s.row.head), s.row.sum,
			int64(b.head), b.sum, int64(b.base), int64(b.size)).Scan(&shipped)
		if err == nil && !shipped {
			err = errRefused
		}
		if err == nil {
			err = b.insert(ctx, tx, s.row.key)
		}
		if err == nil && b.last {
			err = s.show(ctx, tx, here, x.meta())
		}
		return err
	})
	if err = f.swept(err); err != nil && !errors.Is(err, errUnconfirmed) {
		return err
	}
	s.row.head, s.row.sum, s.sure = b.head, b.sum, err == nil
	for _, e := range b.entries {
		s.chained[e.chain+e.id] = true
	}
	if b.last {
		s.shown = here.State
	}
	if err != nil {
		return err
	}
	s.note.Seq, s.note.Sum, s.dirty = b.head, b.sum, true
	x.log.Debug().Uint64("seq", b.head).Int("records", len(b.seqs)).Int("bytes", b.size).Msg("shipped to the fleet")
	return s.write(false)
}

// write writes the note and moves the cursor, now or when that is due.
func (s *shipping) write(now bool) error {
	if !s.dirty || !now && time.Since(s.noted) < noteEvery {
		return nil
	}
	dir := s.session.dir
	if err := folder.WriteSmall(dir, noteFile, s.note); err != nil {
		return err
	}
	s.noted, s.dirty = time.Now(), false
	return folder.MoveCursor(dir, cursorName, s.note.Seq)
}

// noteError notes why the last try failed, for who asks in another process.
func (s *shipping) noteError(err error) {
	text := ""
	if err != nil {
		text = Explain(err)
	}
	if text == s.note.Error {
		return
	}
	s.note.Error, s.note.ErrorAt, s.dirty = text, time.Time{}, true
	if err != nil {
		s.note.ErrorAt = time.Now()
	}
	if err := s.write(true); err != nil {
		s.session.log.Debug().Err(err).Msg("the note of the fleet is not written")
	}
}

// endTimeout bounds what the end of a Session waits for the database.
const endTimeout = 2 * time.Second

// end gives the lease back, and writes the note.
func (s *shipping) end() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.session.ctx), endTimeout)
	defer cancel()
	s.release(ctx)
	if err := s.write(true); err != nil {
		s.session.log.Warn().Err(err).Msg("what was shipped is not noted; it is compared the next time")
	}
	if errors.Is(s.session.Err(), ErrLeft) { // Leave waits for that
		if err := forgetIn(s.session.dir); err != nil {
			s.session.log.Warn().Err(err).Msg("the log is kept for a fleet that was left")
		}
	}
	_ = s.session.dir.Close() // what was written is durable
}

// release gives the lease back, if this process has it. After an error it is only renewed no more,
// and ends by itself.
func (s *shipping) release(ctx context.Context) {
	if s.lease != nil {
		s.session.fleet.forget(s.lease.key, s.lease.term)
		s.lease = nil
	}
	if s.row == nil {
		return
	}
	if err := s.session.fleet.giveBack(ctx, s.row.key, s.row.term); err != nil {
		s.session.log.Debug().Err(err).Msg("the lease was not given back; it ends by itself")
	} else {
		s.note.Secret, s.note.Term, s.dirty = "", 0, true
	}
	s.row = nil
}
