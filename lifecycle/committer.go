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

	journal              *journal.Writer
	messages, transcript *journal.Stream

	base  *session.State                // of the last record: what the next one is the change from
	at    session.Mark                  // of the last record
	mark  *atomic.Pointer[session.Mark] // likewise, for those who ask
	event session.Event                 // of the next record
	took  time.Duration                 // by the last commit

	whole  bool                                      // the next record names a snapshot of the whole State
	edited bool                                      // what somebody edited outside is taken as it is
	beside func(writer.FS) error                     // writes what else a new session's folder has; nil for nothing
	share  func(folder string) (session.Mark, error) // puts into a new session's folder what it has in common with another; nil for nothing

	since int // records since the last snapshot
	pub   publisher
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

// append makes the records of a batch durable with one write, or none of them: those
// that only have entries, and the last one with the State.
func (c *committer) append(b actors.Batch) (_ actors.Committed, err error) {
	begun := time.Now()
	defer func() {
		if err != nil {
			c.messages.GiveUp()
			c.transcript.GiveUp()
		}
	}()
	recs := c.records(b.Entries, c.store.maxRecord/2)
	rec := &recs[len(recs)-1]
	rec.Triggers, rec.Commit = b.Triggers, c.took
	if c.at.Incarnation == "" {
		rec.Incarnation = newIncarnation()
	}
	mark := c.at
	mark.Seq += uint64(len(recs))
	if err := c.appendStreams(b.Entries, mark.Seq, rec); err != nil {
		return actors.Committed{}, err
	}
	at := c.store.opts.Now()
	bodies := make([][]byte, len(recs))
	for i := range recs {
		recs[i].At = at
		mark.Follow(&recs[i])
		if i < len(recs)-1 {
			bodies[i] = session.EncodeChange(c.base, c.base, recs[i], 0).Body
		}
	}
	limit := c.store.maxRecord
	if c.whole {
		limit = 1
	}
	change := session.EncodeChange(c.base, b.State, *rec, limit)
	if change.None && rec.Event == "" && b.Saves() == 0 && len(b.Entries) == 0 {
		c.base = b.State // of the same content: a record would say nothing
		return actors.Committed{Seq: c.at.Seq}, nil
	}
	if change.Iterations {
		mark.Iterations = mark.Seq
	}
	body := change.Body
	if change.Large {
		mark.Epoch = c.journal.Epoch()
		snap := c.snapshot(b.State, mark, at, history.Large)
		snap.m.After = c.at.Seq
		m, err := snap.write(c.dir)
		if err != nil {
			return actors.Committed{}, err
		}
		body = session.EncodeSnapshotRecord(*rec, session.SnapshotRef{SHA256: m.SHA256, Counts: session.CountChanges(c.base, b.State)})
	}
	bodies[len(bodies)-1] = body
	c.journal.Limit, c.journal.Confirm = c.store.segment, c.check
	pos, err := c.journal.Append(bodies...)
	if err != nil {
		return actors.Committed{}, err
	}
	c.messages.Accept()
	c.transcript.Accept()
	mark.Epoch = pos.Epoch
	if !change.Large {
		c.remember(b, mark, at, change.Iterations)
	}
	c.base, c.at, c.event, c.whole = b.State, mark, "", false
	c.took = time.Since(begun)
	c.mark.Store(&mark)
	size := 0
	for _, body := range bodies {
		size += len(body)
	}
	c.pub.grew(int64(size))
	return actors.Committed{Seq: pos.Seq, Bytes: size}, nil
}

// newIncarnation names the folder of a session: 16 hex digits that no other one has.
func newIncarnation() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// Publication brings state.json and metrics.json up to the last record.
func (c *committer) Publication(force bool) func() error {
	job := c.pub.job(c.dir, c.base, c.at, force)
	if job == nil {
		return nil
	}
	if err := c.check(); err != nil {
		return func() error { return err }
	}
	segment := c.journal.Segment()
	return func() error {
		if err := job(); err != nil {
			return c.orLost(err, segment)
		}
		return c.holds(segment) // or the successor's files are what is shown
	}
}

// Published takes the result of the last publication. An error of it pauses the
// session, which says why.
func (c *committer) Published(err error) {
	done := c.pub.ended(err)
	if err == nil {
		c.store.Logger(c.id).Debug().Uint64("seq", done.seq).Int("files", done.files).Int("snapshots", done.snapshots).
			Int64("bytes", done.bytes).Dur("duration_ms", done.took).Msg("published")
	}
}

// Recover goes on in a new segment of the journal. A folder that was removed is
// made again, a lease that was lost is taken again unless somebody else went on.
func (c *committer) Recover() error {
	err := c.check()
	switch {
	case errors.Is(err, errGone):
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
	if c.messages != nil {
		errs = append(errs, c.messages.Close(), c.transcript.Close())
	}
	if c.lock != nil {
		errs = append(errs, c.lock.Unlock())
	}
	if c.dir != nil {
		errs = append(errs, c.dir.Close())
	}
	return errors.Join(errs...)
}
