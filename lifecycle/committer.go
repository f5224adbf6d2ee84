package lifecycle

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"sync/atomic"
	"time"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// maxRecord is the size in bytes beyond which a change is not written into the
// journal: the State goes to history/ instead, and the record names it.
const maxRecord = 4 << 20

// committer is the Committer of one session. Owned by the session's actor once
// started.
type committer struct {
	store *Store
	id    session.ID
	dir   writer.FS // the session's folder
	lease string    // path of the lease below the store's root
	lock  *writer.Lock

	journal *journal.Writer

	base  *session.State                // of the last record: what the next one is the change from
	at    session.Mark                  // of the last record
	mark  *atomic.Pointer[session.Mark] // likewise, for those who ask
	event session.Event                 // of the next record
	took  time.Duration                 // by the last commit

	whole   bool                                      // the next record names a snapshot of the whole State
	edited  bool                                      // what somebody edited outside is taken as it is
	discard bool                                      // with edited: or it is set aside
	beside  func(writer.FS) error                     // writes what else a new session's folder has; nil for nothing
	share   func(folder string) (session.Mark, error) // puts into a new session's folder what it has in common with another; nil for nothing

	since int // records since the last snapshot
	pub   publisher
	compaction
}

// Commit appends one record: the net change from the State of the record before.
// On a full disk it makes one more attempt with the store's reserve.
func (c *committer) Commit(b actors.Batch) (actors.Committed, error) {
	if err := c.check(); err != nil {
		return actors.Committed{}, err
	}
	res, err := c.append(b)
	err = c.orLost(err, c.journal.Segment())
	if writer.ClassOf(err) != writer.ClassNoSpace || !c.store.giveUpBallast() {
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

// append makes the records of a batch durable with one write, or none of them: messages
// and events, then those that only have other entries, and the last one with the State.
func (c *committer) append(b actors.Batch) (actors.Committed, error) {
	begun := time.Now()
	if err := c.beginWhole(b.Entries); err != nil {
		return actors.Committed{}, err
	}
	at, mark := c.store.opts.Now(), c.at
	bodies := appended(b.Entries, &mark, at)
	others := len(b.Entries) > len(bodies)
	recs := c.records(b.Entries, c.store.maxRecord/2)
	rec := &recs[len(recs)-1]
	rec.Triggers, rec.Commit = b.Triggers, c.took
	if c.at.Incarnation == "" {
		rec.Incarnation = newIncarnation()
	}
	if c.base == nil { // the first record of a fork: what is replayed from it has no other source
		rec.Inherits, rec.OpenCalls, rec.Checkpoint = mark.Inherits, mark.OpenCalls, mark.Checkpoint
	}
	said := mark
	mark.Seq += uint64(len(recs))
	for i := range recs {
		recs[i].At, recs[i].Messages, recs[i].Transcript = at, mark.Messages, mark.Transcript
		mark.Follow(&recs[i])
		if i < len(recs)-1 {
			bodies = append(bodies, journal.Record{Body: session.EncodeChange(c.base, c.base, recs[i], 0).Body})
		}
	}
	limit := c.store.maxRecord
	if c.whole {
		limit = 1
	}
	change := session.EncodeChange(c.base, b.State, *rec, limit)
	if change.Iterations {
		mark.Iterations = mark.Seq
	}
	switch {
	case change.None && rec.Event == "" && b.Saves() == 0 && !others: // of the same content: a record would say nothing
		if mark = said; len(bodies) == 0 {
			c.base = b.State
			return actors.Committed{Seq: c.at.Seq}, nil
		}
	case change.Large:
		mark.Epoch = c.journal.Epoch()
		snap := c.snapshot(b.State, mark, at, history.Large)
		snap.m.After = c.at.Seq
		m, err := snap.write(c.dir)
		if err != nil {
			return actors.Committed{}, err
		}
		bodies = append(bodies, journal.Record{Body: session.EncodeSnapshotRecord(*rec, session.SnapshotRef{SHA256: m.SHA256, Counts: session.CountChanges(c.base, b.State)})})
	default:
		bodies = append(bodies, journal.Record{Body: change.Body})
	}
	pos, err := c.journal.Append(bodies...)
	if err != nil {
		return actors.Committed{}, err
	}
	mark.Epoch = pos.Epoch
	c.pub.said(b.Entries)
	if !change.Large {
		c.remember(b, mark, at, change.Iterations)
	}
	c.base, c.at, c.event, c.whole = b.State, mark, "", false
	c.took = time.Since(begun)
	c.mark.Store(&mark)
	size := 0
	for _, r := range bodies {
		size += len(r.Body) + len(r.Object)
	}
	c.pub.grew(int64(size))
	c.bytes += int64(size)
	return actors.Committed{Seq: pos.Seq, Bytes: size, Show: b.State.Status() != c.pub.status || c.pub.copies[0].held+c.pub.copies[1].held > manyUncopied}, nil
}

// newIncarnation names the folder of a session: 16 hex digits that no other one has.
func newIncarnation() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// Publication brings state.json and metrics.json up to the last record.
func (c *committer) Publication(force bool) func() error {
	job := c.pub.job(c.dir, c.base, c.at, force, c.asideFile)
	if job == nil {
		return nil
	}
	if err := c.check(); err != nil {
		return func() error { return err }
	}
	compact, segment := c.compact(force), c.journal.Segment()
	return func() error {
		if err := job(); err != nil {
			return c.orLost(err, segment)
		}
		if err := c.holds(segment); err != nil { // or the successor's files are what is shown
			return err
		}
		compact(segment)
		return nil
	}
}

// publish brings both files up to the last record at once.
func (c *committer) publish() error {
	job := c.pub.job(c.dir, c.base, c.at, true, c.asideFile)
	if job == nil {
		return nil
	}
	err := job()
	c.Published(err)
	return err
}

// Published takes the result of the last publication. An error of it pauses the
// session, which says why.
func (c *committer) Published(err error) {
	done := c.pub.ended(err)
	c.compacted()
	if note := c.pub.note(c.journal); note != nil {
		c.store.Logger(c.id).Debug().Err(note).Msg("what was published is not noted")
	}
	if err == nil {
		c.store.Logger(c.id).Debug().Uint64("seq", done.seq).Int("files", done.files).Int("snapshots", done.snapshots).
			Int64("bytes", done.bytes).Dur("duration_ms", done.took).Msg("published")
	}
}

// Recover goes on in a new segment of the journal. A folder that was removed is
// made again, a lease that was lost is taken again unless somebody else went on.
func (c *committer) Recover() error {
	err := c.check()
	gone := errors.Is(err, errGone)
	if gone || writer.ClassOf(err) == writer.ClassFenced {
		if err := c.store.layout(); err != nil {
			return err
		}
		if _, err := c.store.keepModule(c.id.Module); err != nil {
			return err
		}
	}
	switch {
	case gone:
		err = c.makeAgain()
	case writer.ClassOf(err) == writer.ClassFenced:
		err = c.retake(err)
	}
	if err != nil {
		return err
	}
	if err := c.journal.Reopen(); err != nil {
		return err
	}
	c.store.keepBallast()
	return nil
}

// Close gives the lease back.
func (c *committer) Close() error {
	var errs []error
	if c.journal != nil {
		errs = append(errs, c.journal.Close())
	}
	if c.lock != nil {
		errs = append(errs, c.lock.Unlock())
	}
	if c.dir != nil {
		errs = append(errs, c.dir.Close())
	}
	return errors.Join(errs...)
}

// appended are the records of the messages and events among entries, in order; mark goes
// on with them.
func appended(all []actors.Entry, mark *session.Mark, at time.Time) (recs []journal.Record) {
	recs = make([]journal.Record, 0, len(all)+1)
	for _, e := range all {
		if e.Body == nil {
			continue
		}
		rec := session.Record{At: at}
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
		recs = append(recs, journal.Record{Body: session.EncodeAppended(rec), Object: e.Body, Entry: true})
	}
	return recs
}

// records are those that the other entries become part of, one at least: the last one is to carry
// the State. Of attempts a record takes up to room bytes, or one; a checkpoint and an
// event of a rewind have a record each where a batch has several.
func (c *committer) records(all []actors.Entry, room int) []session.Record {
	recs := []session.Record{{Event: c.event}}
	rec := &recs[0]
	used := 0
	next := func() {
		recs = append(recs, session.Record{})
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
			rec.Event, rec.Rewind = session.EventRewindBegin, e.Rewind
			if e.Ended {
				rec.Event = session.EventRewindEnd
			}
		}
		rec.Ops = append(rec.Ops, e.Ops...)
	}
	return recs
}
