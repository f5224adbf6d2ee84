package commit

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"sync/atomic"
	"time"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// A Committer is the [actors.Committer] of one session. Once the session's actor was
// started, the actor owns it.
type Committer struct {
	opts Options
	id   session.ID
	dir  writer.FS // the session's folder
	path string    // of the folder, below .lopen
	lock *writer.Lock
	// staged is dir, while the session is in another place than its own: until Close.
	staged *unsynced

	journal *journal.Writer

	base  *session.State           // State of the last record; the next record is the change from it
	at    session.Mark             // Mark of the last record
	mark  *atomic.Pointer[Durable] // what is durable, for other goroutines
	event record.Event             // event of the next record
	took  time.Duration            // duration of the last commit
	whole bool                     // the next record has to name a snapshot of the whole State

	since   int // records since the last snapshot
	changed int // changes of project files in them
	pub     publisher
	compaction
}

// State returns the State of the last record.
func (c *Committer) State() *session.State { return c.base }

// A Durable is what a session has on the disk: the last durable record. It is immutable.
type Durable struct {
	session.Mark
	State *session.State  // of the record
	More  <-chan struct{} // closed once a later record is durable

	more chan struct{}
}

// Durable returns what is durable. Any goroutine may load it.
func (c *Committer) Durable() *atomic.Pointer[Durable] { return c.mark }

// acknowledge makes it known that a record is durable.
func (c *Committer) acknowledge(at session.Mark, st *session.State) {
	more := make(chan struct{})
	if was := c.mark.Swap(&Durable{at, st, more, more}); was != nil {
		close(was.more)
	}
}

// Epoch returns the epoch of the log.
func (c *Committer) Epoch() uint64 { return c.journal.Epoch() }

// Show makes st durable, unless it is nil, and then writes the readable files up to the last
// record, durably.
func (c *Committer) Show(st *session.State) error {
	if st != nil {
		if _, err := c.append(actors.Batch{State: st}); err != nil {
			return err
		}
	}
	return c.publish()
}

// Commit appends the batch to the log: a record for each message and event, and one with the
// net change from the State of the record before. On a full disk it gives up the store's
// reserve and tries once more; if that succeeds, Committed.Pause is set.
func (c *Committer) Commit(b actors.Batch) (actors.Committed, error) {
	if err := c.Check(); err != nil {
		return actors.Committed{}, err
	}
	res, err := c.append(b)
	err = c.orLost(err, c.journal.Segment())
	if writer.ClassOf(err) != writer.ClassNoSpace || !c.opts.Reserve.GiveUp() {
		return res, err
	}
	full := err
	if err := c.journal.Reopen(); err != nil {
		return actors.Committed{}, errors.Join(full, err)
	}
	if res, err = c.append(b); err != nil {
		return actors.Committed{}, c.orLost(err, c.journal.Segment())
	}
	res.Pause = full
	return res, nil
}

// append makes the records of a batch durable, all or none.
func (c *Committer) append(b actors.Batch) (actors.Committed, error) {
	begun := time.Now()
	if err := c.beginWhole(b.Entries); err != nil {
		return actors.Committed{}, err
	}
	w, err := c.encode(b)
	if err != nil {
		return actors.Committed{}, err
	}
	if len(w.bodies) == 0 {
		c.base = b.State
		return actors.Committed{Seq: c.at.Seq}, nil
	}
	pos, err := c.journal.Append(w.bodies...)
	if err != nil {
		return actors.Committed{}, err
	}
	w.mark.Epoch = pos.Epoch
	c.pub.appended(b.Entries)
	if !w.change.Large {
		c.remember(b, w.mark, w.at, w.change.Iterations)
	} else {
		c.changed = 0
	}
	c.base, c.at, c.event, c.whole = b.State, w.mark, "", false
	c.took = time.Since(begun)
	c.acknowledge(w.mark, b.State)
	size := 0
	for _, r := range w.bodies {
		size += len(r.Body) + len(r.Object)
	}
	c.pub.grew(int64(size))
	c.bytes += int64(size)
	show := c.staged == nil && b.State.Status() != c.pub.status || c.pub.copies[0].held+c.pub.copies[1].held > manyUncopied
	return actors.Committed{Seq: pos.Seq, Bytes: size, Show: show}, nil
}

// A write has the records that a batch adds to the log.
type write struct {
	at     time.Time
	bodies []journal.Record
	mark   session.Mark // Mark of the last of them
	change wire.Change  // change of the State
}

// encode makes the records of a batch: first those of messages and events, then those that have
// only other entries, and last the one with the change of the State. A snapshot that a record
// names is durable when encode returns.
func (c *Committer) encode(b actors.Batch) (*write, error) {
	w := &write{at: c.opts.Now(), mark: c.at}
	w.bodies = appended(b.Entries, &w.mark, w.at)
	others := len(b.Entries) > len(w.bodies)
	entries := w.mark
	recs := c.records(b, &w.mark, w.at)
	rec := recs[len(recs)-1]
	for _, other := range recs[:len(recs)-1] {
		w.bodies = append(w.bodies, journal.Record{Body: wire.EncodeChange(c.base, c.base, other, 0).Body})
	}
	limit := c.opts.MaxRecord
	if c.whole {
		limit = 1
	}
	w.change = wire.EncodeChange(c.base, b.State, rec, limit)
	if w.change.Iterations {
		w.mark.Iterations = w.mark.Seq
	}
	switch {
	case w.change.None && rec.Event == "" && b.Saves() == 0 && !others: // nothing changed: no record
		w.mark = entries
	case w.change.Large:
		w.mark.Epoch = c.journal.Epoch()
		snap := c.snapshot(b.State, w.mark, w.at, history.Large, c.changed+changedFiles(b))
		snap.m.After = c.at.Seq
		m, err := snap.write(c.dir)
		if err != nil {
			return nil, err
		}
		w.bodies = append(w.bodies, journal.Record{Body: wire.EncodeSnapshotRecord(rec, record.SnapshotRef{SHA256: m.SHA256, Counts: wire.CountChanges(c.base, b.State)})})
	default:
		w.bodies = append(w.bodies, journal.Record{Body: w.change.Body})
	}
	return w, nil
}

// records returns the records of a batch without its messages and events. The caller adds the
// change of the State to the last one. records advances mark.
func (c *Committer) records(b actors.Batch, mark *session.Mark, at time.Time) []record.Record {
	recs := c.distribute(b.Entries, c.opts.MaxRecord/2)
	rec := &recs[len(recs)-1]
	rec.Triggers, rec.Commit = b.Triggers, c.took
	if c.at.Incarnation == "" {
		rec.Incarnation = newIncarnation()
	}
	if c.base == nil { // the first record: for a fork, replay has no other source of these
		rec.Inherits, rec.OpenCalls, rec.Checkpoint = mark.Inherits, mark.OpenCalls, mark.Checkpoint
	}
	mark.Seq += uint64(len(recs))
	for i := range recs {
		recs[i].At, recs[i].Messages, recs[i].Transcript = at, mark.Messages, mark.Transcript
		wire.Follow(mark, &recs[i])
	}
	return recs
}

// newIncarnation returns 16 random hex digits that identify the folder of a session.
func newIncarnation() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Publication returns the job that writes the readable files up to the last record, or nil.
func (c *Committer) Publication(force bool) func() error {
	job := c.publication(force)
	if job == nil {
		return nil
	}
	if err := c.Check(); err != nil {
		return func() error { return err }
	}
	compact, segment := c.compact(force), c.journal.Segment()
	return func() error {
		if err := job.run(); err != nil {
			return c.orLost(err, segment)
		}
		if err := c.holds(segment); err != nil { // a successor may have written its files meanwhile
			return err
		}
		compact(segment)
		return nil
	}
}

func (c *Committer) publication(force bool) *publication {
	return c.pub.publication(c.base, publication{dir: c.dir, at: c.at, durable: force, quarantine: c.quarantine})
}

// publish writes the readable files up to the last record, durably, in the calling goroutine.
func (c *Committer) publish() error {
	job := c.publication(true)
	if job == nil {
		return nil
	}
	err := job.run()
	c.Published(err)
	return err
}

// Published gets the result of the last publication. It does not log an error, because the
// error pauses the session and the pause is logged.
func (c *Committer) Published(err error) {
	done := c.pub.ended(err)
	c.compacted()
	if note := c.pub.note(c.journal); note != nil {
		c.opts.Logger.Debug().Err(note).Msg("what was published is not noted")
	}
	if err == nil {
		c.opts.Logger.Debug().Uint64("seq", done.seq).Int("files", done.files).Int("snapshots", done.snapshots).
			Int64("bytes", done.bytes).Dur("duration_ms", done.took).Msg("published")
	}
}

// Recover continues in a new segment of the journal. It first recreates a removed folder, or
// takes a lost lease again unless another process resumed the session.
func (c *Committer) Recover() error {
	err := c.Check()
	if err != nil && c.staged != nil {
		return err // nobody saw it yet
	}
	gone := errors.Is(err, errGone)
	if gone || writer.ClassOf(err) == writer.ClassFenced {
		if err := c.opts.Place.Restore(); err != nil {
			return err
		}
	}
	switch {
	case gone:
		err = c.recreate()
	case writer.ClassOf(err) == writer.ClassFenced:
		err = c.retake(err)
	}
	if err != nil {
		return err
	}
	if err := c.journal.Reopen(); err != nil {
		return err
	}
	c.opts.Reserve.Keep()
	return nil
}

// Close closes the log and releases the lease. A session of Stage is durable then.
func (c *Committer) Close() error {
	var errs []error
	if c.journal != nil {
		errs = append(errs, c.journal.Close())
	}
	if c.staged != nil {
		errs = append(errs, c.staged.settle())
	}
	if c.lock != nil {
		errs = append(errs, c.lock.Unlock())
	}
	if c.dir != nil {
		errs = append(errs, c.dir.Close())
	}
	return errors.Join(errs...)
}

// appended returns the records of the messages and events among entries, in order, and
// advances mark.
func appended(all []actors.Entry, mark *session.Mark, at time.Time) (recs []journal.Record) {
	recs = make([]journal.Record, 0, len(all)+1)
	for _, e := range all {
		if e.Body == nil {
			continue
		}
		rec := record.Record{At: at}
		if e.Message != nil {
			mark.Messages++
			mark.OpenCalls = session.Answered(mark.OpenCalls, e.Message)
			rec.Message = e.Body
		} else {
			mark.Transcript++
			rec.TranscriptEvent = e.Body
		}
		mark.Seq++
		rec.Messages, rec.Transcript = mark.Messages, mark.Transcript
		recs = append(recs, journal.Record{Body: wire.EncodeAppended(rec), Object: e.Body, Entry: true})
	}
	return recs
}

// distribute distributes the other entries to records, at least one. A record takes attempts
// of up to room bytes in all, or a single larger one. A record has at most one checkpoint and
// one event of a rewind.
func (c *Committer) distribute(all []actors.Entry, room int) []record.Record {
	recs := []record.Record{{Event: c.event}}
	rec := &recs[0]
	used := 0
	next := func() {
		recs = append(recs, record.Record{})
		rec, used = &recs[len(recs)-1], 0
	}
	for _, e := range all {
		switch {
		case e.Attempt != nil:
			if used > 0 && used+e.Size > room {
				next()
			}
			rec.Attempts = append(rec.Attempts, *e.Attempt)
			used += e.Size
		case e.Checkpoint != "":
			if rec.Checkpoint != "" {
				next()
			}
			rec.Checkpoint = e.Checkpoint
		case e.Rewind != nil:
			if rec.Rewind != nil || rec.Checkpoint != "" {
				next()
			}
			rec.Event, rec.Rewind = record.EventRewindBegin, e.Rewind
			if e.Ended {
				rec.Event = record.EventRewindEnd
			}
		}
		rec.Ops = append(rec.Ops, e.Ops...)
	}
	return recs
}
