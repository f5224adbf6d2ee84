package commit

import (
	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer/journal"
)

// A compaction compresses the closed segments of a session's log. Above the policy's
// JournalBytes it drops the records of the State that a snapshot covers. Owned by the
// session's actor.
type compaction struct {
	segment string // the current segment when the last job was made
	bytes   int64  // size of all segments whose records of the State were not dropped

	running bool
	size    int64 // the new value of bytes; the job writes it, and it is read after the job's end
	err     error // likewise
}

// compact returns a job that runs while commits continue. The job does nothing if no segment
// was closed since the last one. Its error does not pause the session, because the segments
// are as good as before, and the next job tries again.
func (c *Committer) compact(force bool) func(segment string) {
	n := &c.compaction
	// With force a caller waits, so the job is skipped. It is not skipped when many segments wait,
	// as after many short-lived holders, which publish only with force.
	if n.segment == c.journal.Segment() || force && !c.journal.Crowded() {
		return func(string) {}
	}
	n.segment, n.running = c.journal.Segment(), true
	return func(segment string) {
		n.size, n.err = c.rewriteSegments(func() error { return c.holds(segment) })
	}
}

// compacted gets the result of the last job.
func (c *Committer) compacted() {
	n := &c.compaction
	if !n.running {
		return
	}
	n.running = false
	if n.err != nil {
		c.opts.Logger.Warn().Err(n.err).Msg("closed segments of the log stay as they are for now")
		return
	}
	n.bytes = n.size
}

// rewriteSegments compresses segments and drops records, as far as that is due. It returns the
// size in bytes of the segments whose records of the State were not dropped.
func (c *Committer) rewriteSegments(holds func() error) (int64, error) {
	for done := true; done; {
		var err error
		if done, err = c.journal.Pack(c.opts.Segment, holds); err != nil {
			return 0, err
		}
	}
	all, err := c.journal.Segments(holds)
	if err != nil {
		return 0, err
	}
	begin, err := c.boundary(all)
	if err != nil {
		return 0, err
	}
	if begin > 0 {
		if err := c.journal.Drop(all[begin], wire.ReduceRecord, holds); err != nil {
			return 0, err
		}
		c.opts.Logger.Info().Uint64("seq", all[begin].First()).Msg("the records before this one were dropped but for messages, events and attempts")
		if all, err = c.journal.Segments(holds); err != nil {
			return 0, err
		}
	}
	return closedBytes(all), c.dropSnapshots(all)
}

// closedBytes returns the size of the segments whose records of the State were not dropped.
func closedBytes(all []journal.Segment) (n int64) {
	for _, s := range all {
		if !s.Reduced() {
			n += s.Bytes
		}
	}
	return n
}

// boundary returns the index of the first segment whose records stay. That segment begins with
// a snapshot of the whole State. It is the first one that leaves at most half of JournalBytes,
// or else the last possible one. boundary returns 0 if nothing is to be dropped.
func (c *Committer) boundary(all []journal.Segment) (int, error) {
	limit := c.opts.JournalBytes
	left := closedBytes(all)
	if limit <= 0 || left <= limit {
		return 0, nil
	}
	passed, unread, err := folder.Passed(c.dir)
	if unread != "" {
		c.opts.Logger.Warn().Err(err).Str("cursor", unread).Msg("no record of the log is dropped while this cursor cannot be read: remove its file")
	} else if err != nil {
		return 0, err
	}
	found := 0
	for i, s := range all {
		if i > 0 && !s.Reduced() && !all[i-1].Reduced() && s.First() <= passed+1 {
			whole, err := c.beginsWhole(s)
			if err != nil {
				return 0, err
			}
			if whole {
				found = i
			}
			if whole && left <= limit/2 {
				break
			}
		}
		if !s.Reduced() {
			left -= s.Bytes
		}
	}
	return found, nil
}

// beginsWhole reports whether a segment begins with a snapshot that can be read.
func (c *Committer) beginsWhole(s journal.Segment) (bool, error) {
	line, err := c.journal.FirstLine(s)
	if err != nil || line == nil {
		return false, err
	}
	rec, err := wire.DecodeRecord(line)
	if err != nil || rec.Snapshot == nil {
		return false, nil //nolint:nilerr // such a segment is no boundary
	}
	state, metrics, err := history.Read(c.dir, history.ID{Epoch: rec.Epoch, Seq: rec.Seq}, rec.Snapshot.SHA256)
	if err != nil {
		return false, nil //nolint:nilerr // likewise
	}
	return (&wire.Replay{}).Load(state, metrics) == nil, nil
}

// dropSnapshots removes the snapshots of dropped records.
func (c *Committer) dropSnapshots(all []journal.Segment) error {
	if !all[0].Reduced() {
		return nil
	}
	begin := uint64(0)
	for _, s := range all {
		if begin = s.First(); !s.Reduced() {
			break
		}
	}
	ids, err := history.IDs(c.dir)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if id.Seq >= begin {
			continue
		}
		if err := history.Remove(c.dir, id); err != nil {
			return err
		}
	}
	return nil
}

// beginWhole makes the next segment begin with a snapshot of the whole State, if entries would
// begin a segment and the log has half of JournalBytes. The records before that snapshot can
// be dropped later.
func (c *Committer) beginWhole(entries []actors.Entry) error {
	limit := c.opts.JournalBytes
	c.journal.Limit, c.journal.Confirm = c.opts.Segment, c.Check
	size := c.opts.Segment / 16 // an estimate for the change of the State
	for i := range entries {
		size += int64(len(entries[i].Body) + entries[i].Size)
	}
	if limit <= 0 || c.whole || c.bytes < limit/2 || c.base == nil || !c.journal.Rotates(size) {
		return nil
	}
	c.journal.Full()
	c.whole = true
	_, err := c.append(actors.Batch{State: c.base})
	return err
}
