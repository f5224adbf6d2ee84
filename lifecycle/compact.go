package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/journal"
)

// A compaction keeps the closed segments of a session's log small: they are compressed,
// and above the policy's JournalBytes the records of the State that a snapshot covers are
// dropped. Owned by the session's actor.
type compaction struct {
	segment string // that was the current one when the last job was made
	bytes   int64  // of all segments that are not kept

	running bool
	size    int64 // of these segments, by the job; read when it has ended, like err
	err     error
}

// compact returns a job for beside the commits, which does nothing where no segment was
// closed since the last one. Its error is not the session's: what it leaves is as good as before, and the next
// closed segment has it tried again.
func (c *committer) compact(force bool) func(segment string) {
	n := &c.compaction
	// Who waits for the files does not wait for this, unless many holders did nothing else.
	if n.segment == c.journal.Segment() || force && !c.journal.Crowded() {
		return func(string) {}
	}
	n.segment, n.running = c.journal.Segment(), true
	return func(segment string) {
		n.size, n.err = c.rewriteSegments(func() error { return c.holds(segment) })
	}
}

// compacted takes the result of the last job.
func (c *committer) compacted() {
	n := &c.compaction
	if !n.running {
		return
	}
	n.running = false
	if n.err != nil {
		c.store.Logger(c.id).Warn().Err(n.err).Msg("closed segments of the log stay as they are for now")
		return
	}
	n.bytes = n.size
}

// rewriteSegments does what is due and returns how many bytes the segments take that are not
// kept.
func (c *committer) rewriteSegments(holds func() error) (int64, error) {
	for done := true; done; {
		var err error
		if done, err = c.journal.Pack(c.store.segment, holds); err != nil {
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
		if err := c.journal.Drop(all[begin], session.ReduceRecord, holds); err != nil {
			return 0, err
		}
		c.store.Logger(c.id).Info().Uint64("seq", all[begin].First()).Msg("the records before this one were dropped but for messages, events and attempts")
		if all, err = c.journal.Segments(holds); err != nil {
			return 0, err
		}
	}
	return closedBytes(all), c.dropSnapshots(all)
}

// closedBytes is what segments take that are not kept.
func closedBytes(all []journal.Segment) (n int64) {
	for _, s := range all {
		if !s.Kept() {
			n += s.Bytes
		}
	}
	return n
}

// boundary is the first segment that stays as it is when older ones are dropped: one that
// begins with a snapshot of the whole State, such that at most half of what is allowed is
// left, or as little as can be. It is 0 when nothing is to be dropped.
func (c *committer) boundary(all []journal.Segment) (int, error) {
	limit := c.store.opts.Policy.JournalBytes
	left := closedBytes(all)
	if limit <= 0 || left <= limit {
		return 0, nil
	}
	passed, err := c.store.passed(c.dir, c.id)
	if err != nil {
		return 0, err
	}
	found := 0
	for i, s := range all {
		if i > 0 && !s.Kept() && !all[i-1].Kept() && s.First() <= passed+1 {
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
		if !s.Kept() {
			left -= s.Bytes
		}
	}
	return found, nil
}

// beginsWhole says whether a segment begins with a snapshot that can be read.
func (c *committer) beginsWhole(s journal.Segment) (bool, error) {
	line, err := c.journal.FirstLine(s)
	if err != nil || line == nil {
		return false, err
	}
	rec, err := session.DecodeRecord(line)
	if err != nil || rec.Snapshot == nil {
		return false, nil //nolint:nilerr // it is no boundary then
	}
	state, metrics, err := history.Read(c.dir, history.ID{Epoch: rec.Epoch, Seq: rec.Seq}, rec.Snapshot.SHA256)
	if err != nil {
		return false, nil //nolint:nilerr // likewise
	}
	return (&session.Replay{}).Load(state, metrics) == nil, nil
}

// dropSnapshots removes those of records that were dropped.
func (c *committer) dropSnapshots(all []journal.Segment) error {
	if !all[0].Kept() {
		return nil
	}
	begin := uint64(0)
	for _, s := range all {
		if begin = s.First(); !s.Kept() {
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
		if err := c.dir.Remove(id.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("drop snapshot %s: %w", id, err)
		}
	}
	return nil
}

// beginWhole has the next segment begin with a snapshot of the whole State, when entries
// come to begin one and the log takes half of what it may: what is before that snapshot may be
// dropped later.
func (c *committer) beginWhole(entries []actors.Entry) error {
	limit := c.store.opts.Policy.JournalBytes
	c.journal.Limit, c.journal.Confirm = c.store.segment, c.check
	size := c.store.segment / 16 // there is a change of the State as well
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

// Began returns the first record from which on a session's log has the State: 1, or a later
// one where the records before were dropped but for messages, events and attempts.
func (s *Store) Began(id session.ID) (uint64, error) {
	return within(s, "log of", id, journal.Began)
}
