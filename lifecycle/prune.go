package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
)

// Retention limits the completed sessions of runs; Prune moves the others to the trash. 0 means no
// limit.
type Retention struct {
	Sessions int           // number of completed sessions that stay
	Age      time.Duration // time after its completion that a session stays
	Bytes    int64         // bytes that all completed sessions may take; the oldest go first
	Trash    time.Duration // time in the trash after which a session is deleted for good
	Imported int           // number of completed sessions that stay of those that no run made; no other limit is theirs
}

// A Retired is a session that Prune moves, or has moved, to the trash, or deletes for good.
type Retired struct {
	ID      session.ID
	Why     string
	Bytes   int64 // on the disk, as du counts them
	ForGood bool
	Marked  time.Time // when it was found due, if a later command deletes it; else zero

	foreign bool      // no run made it
	at      time.Time // when it was completed, or moved to the trash
}

// Prune moves completed sessions beyond the limits to the trash, the oldest completed
// first. It marks what was in the trash too long, and deletes for good what an earlier command
// marked, at least a day ago: see trashed. It removes the contents that no checkpoint needs. It never touches sessions that are active, paused, pinned, held or
// edited outside. A listing decides nothing: a session is read whole, and once more under
// its lease right before it is moved. If it turns out to be damaged, it is moved to
// corrupted/ instead.
//
// With dryRun Prune only returns what it would do, and what is marked and stays. It skips a session that cannot be read or
// moved, and returns the errors joined.
func (s *Store) Prune(ctx context.Context, r Retention, dryRun bool) ([]Retired, error) {
	take := s.lockCleared
	if dryRun {
		take = s.lock
	}
	lock, err := take(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Unlock() }()
	goes, damaged, err := s.beyond(r)
	if err != nil {
		return nil, err
	}
	gone, waiting, err := s.expired(r, dryRun)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, d := range damaged {
		if !dryRun {
			d.Err = s.withLease(sessionsDir, d.ID, func(lease *writer.Lock, _ string) error {
				_, err := s.readHeld(d.ID, lease)
				return err
			})
		}
		if !stays(d.Err) {
			errs = append(errs, d.Err)
		}
	}
	if dryRun {
		return slices.Concat(goes, gone, waiting), errors.Join(errs...)
	}
	var done []Retired
	for _, x := range append(goes, gone...) {
		retire := s.moveToTrash
		if x.ForGood {
			retire = func(x Retired) error { return s.emptyTrash(ctx, x) }
		}
		switch err := retire(x); {
		case err == nil:
			done = append(done, x)
		case !stays(err):
			errs = append(errs, err)
		}
	}
	s.clearDeleting(ctx)
	if len(done) > 0 {
		s.refreshLatest()
	}
	s.free()
	for _, x := range done {
		s.Logger(x.ID).Info().Str("reason", x.Why).Int64("bytes", x.Bytes).Bool("for_good", x.ForGood).Msg("session pruned")
	}
	return done, errors.Join(errs...)
}

// stays reports whether err is an expected reason to leave a session where it is, which is
// not reported.
func stays(err error) bool {
	return slices.ContainsFunc([]error{ErrBusy, ErrNotComplete, ErrNotFound, ErrEdited, ErrFutureVersion}, func(why error) bool { return errors.Is(err, why) })
}

// beyond returns the completed sessions beyond the limits, and those that cannot be read. A
// listing may lag behind the journals, so it only decides whether the sessions are read.
func (s *Store) beyond(r Retention) (goes []Retired, failed []Info, err error) {
	infos, err := s.List()
	if err != nil {
		return nil, nil, err
	}
	var all []Retired
	for _, i := range infos {
		if i.Err != nil || i.Status != session.StatusComplete {
			continue
		}
		if m, err := s.Meta(i.ID); err != nil || m.Pinned {
			continue
		}
		if owner, err := s.Holder(i.ID); err != nil || owner != nil {
			continue
		}
		all = append(all, Retired{ID: i.ID, foreign: i.Origin != session.OriginRun, Bytes: s.diskBytes(sessionsDir+"/"+i.ID.String(), true), at: i.CompletedAt})
	}
	now := s.opts.Now()
	if len(r.Exceeded(all, now)) == 0 {
		return nil, nil, nil
	}
	whole := all[:0]
	for _, x := range all {
		x.at, err = completedAt(s.readShown(x.ID))
		switch {
		case err == nil:
			whole = append(whole, x)
		case !stays(err):
			failed = append(failed, Info{Summary: wire.Summary{ID: x.ID}, Err: err})
		}
	}
	return r.Exceeded(whole, now), failed, nil
}

// Completed returns what a Retention judges of a completed session that is elsewhere.
func Completed(id session.ID, origin session.Origin, bytes int64, at time.Time) Retired {
	return Retired{ID: id, foreign: origin != session.OriginRun, Bytes: bytes, at: at}
}

// Exceeded returns those of the completed sessions that are beyond the limits, the oldest
// completed first, each with the reason.
func (r Retention) Exceeded(all []Retired, now time.Time) (goes []Retired) {
	all = slices.SortedFunc(slices.Values(all), func(a, b Retired) int { // the newest completed first
		if ahead := a.at.After(now); ahead != b.at.After(now) { // what a wrong clock completed takes nobody's slot
			return map[bool]int{true: 1, false: -1}[ahead]
		}
		return cmp.Or(b.at.Compare(a.at), b.ID.Compare(a.ID))
	})
	var bytes int64
	i, foreign := -1, 0
	for _, x := range all {
		if x.foreign {
			if foreign++; r.Imported > 0 && foreign > r.Imported {
				x.Why = fmt.Sprintf("more than %d sessions that no run made", r.Imported)
				goes = append(goes, x)
			}
			continue
		}
		i++
		bytes += x.Bytes
		switch {
		case r.Sessions > 0 && i >= r.Sessions:
			x.Why = fmt.Sprintf("more than %d completed sessions", r.Sessions)
		case r.Age > 0 && now.Sub(x.at) > r.Age:
			x.Why = fmt.Sprintf("completed more than %d days ago", int(r.Age.Hours()/24))
		case r.Bytes > 0 && bytes > r.Bytes:
			x.Why = fmt.Sprintf("completed sessions take more than %d bytes", r.Bytes)
		default:
			continue
		}
		goes = append(goes, x)
	}
	slices.Reverse(goes)
	return goes
}

// completedAt returns when a session that was read whole was completed. The error wraps
// ErrNotComplete if it is not complete, or if its next holder has to finish a rewind.
func completedAt(ld *folder.Contents, err error) (time.Time, error) {
	if err != nil {
		return time.Time{}, err
	}
	if ld.State.Status() != session.StatusComplete || ld.At.Rewinding != nil {
		return time.Time{}, fmt.Errorf("session %s: %w", ld.State.ID(), ErrNotComplete)
	}
	return ld.State.Header().CompletedAt, nil
}

// readShown reads a whole session that this process does not hold.
func (s *Store) readShown(id session.ID) (*folder.Contents, error) {
	ld, err := s.readWhole(id)
	if err != nil {
		return nil, err
	}
	return ld, ld.Dir.Close()
}

// readHeld reads a whole session whose lease this process has. It moves a damaged session to
// corrupted/.
func (s *Store) readHeld(id session.ID, lease *writer.Lock) (ld *folder.Contents, err error) {
	dir, err := s.sessionDir(id)
	if err == nil {
		defer dir.Close()
		ld, err = s.loadHeld(dir, id, lease, false)
	}
	if err != nil {
		return nil, fmt.Errorf("read session %s: %w", id, err)
	}
	return ld, nil
}

// freeShare limits the checkpoints to this fraction of the free space: one tenth.
const freeShare = 10

// CheckpointsOver returns by how many bytes the checkpoints that may not be removed exceed
// the limit; 0 if they do not.
func (s *Session) CheckpointsOver() int64 {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	return s.files.over
}

// thin removes checkpoints beyond the limit of the policy, sweeps their contents, and returns
// how many it removed. A failure is only logged, because the new checkpoint is good, and the
// next call tries again. After a failed sweep nothing more is removed, because it would free
// nothing. The caller holds mu.
func (s *Session) thin(ctx context.Context) int {
	k := &s.files
	limit, err := s.store.checkpointLimit(k.store)
	if err != nil || limit == 0 || k.unswept {
		return 0
	}
	done, err := k.store.Thin(ctx, checkpoint.Limits{Bytes: limit, Keep: s.keeps, Unfinished: s.store.unfinishedSessions()})
	for _, e := range done.Removed {
		s.log.Info().Uint64("number", e.Number).Stringer("checkpoint", e.ID).Str("reason", "its contents take more than checkpoint_bytes or the disk allow").Msg("checkpoint removed")
	}
	if err != nil {
		s.log.Warn().Err(err).Msg("old checkpoints are not removed")
		return len(done.Removed)
	}
	if done.Over > 0 && k.over == 0 {
		s.log.Warn().Int64("limit", limit).Int64("over", done.Over).Msg("the checkpoints that may not be removed take more than the limit")
	}
	k.over = done.Over
	if len(done.Removed) > 0 {
		k.fewer = true
	}
	if k.fewer {
		s.sweep()
	}
	return len(done.Removed)
}

// sweep removes the contents of removed checkpoints, unless another process is busy with them.
func (s *Session) sweep() {
	swept, err := s.files.store.sweep(&s.log)
	if err != nil {
		if !errors.Is(err, ErrBusy) && !s.files.unswept {
			s.files.unswept = true
			s.log.Warn().Err(err).Msg("what removed checkpoints had is not all freed; this session removes no more of them")
		}
		return
	}
	s.files.fewer = false
	s.log.Info().Int("blobs", len(swept.Hashes)).Int64("bytes", swept.Bytes).Msg("freed what removed checkpoints had")
}

// checkpointLimit returns how many bytes the checkpoints may take: the limit of the policy, or
// a tenth of what would be free on the disk without them if that is less. 0 means no limit.
func (s *Store) checkpointLimit(cps *Checkpoints) (int64, error) {
	limit := s.opts.Policy.CheckpointBytes
	if limit <= 0 {
		return 0, nil
	}
	bytes, err := writer.FreeBytes(s.Path())
	free := int64(min(bytes, 1<<62))
	if err != nil || free/freeShare >= limit {
		return limit, nil //nolint:nilerr // free space is not known on this system
	}
	taken, err := cps.blobs.Usage()
	if err != nil {
		return 0, err
	}
	return min(limit, max((free+taken)/freeShare, 1)), nil
}

// keeps returns which entries stay regardless of the limit: the session's newest checkpoint,
// the one that undo returns to, those that rewinds need, and those with the trees of tasks
// that were set back. If the latter are not known, all entries stay.
func (s *Session) keeps(all []*checkpoint.Entry) func(*checkpoint.Entry) bool {
	at := s.mark.Load()
	stays := map[string]bool{at.Checkpoint: true, at.Undo: true}
	if at.Rewinding != nil {
		stays[at.Rewinding.To], stays[at.Rewinding.Before] = true, true
	}
	needed := rewind.Needed(all, func(string) bool { return true })
	trees, err := s.store.FailedTrees(all)
	failed := rewind.NeededByFailed(all, trees)
	return func(e *checkpoint.Entry) bool {
		return stays[e.ID.String()] || needed[e.Number] || failed[e.Number] || err != nil
	}
}

// unfinishedSessions returns a function that reports whether a session may be resumed or
// recovered: it is not complete, or it is damaged. Nothing is read before the first call.
func (s *Store) unfinishedSessions() func(string) bool {
	var unfinished map[string]bool
	return func(name string) bool {
		if unfinished == nil {
			unfinished = map[string]bool{}
			infos, _ := s.List()
			for _, i := range infos {
				unfinished[i.ID.String()] = i.Err != nil || i.Status != session.StatusComplete
			}
			folders, _ := s.corrupted()
			for _, f := range folders {
				unfinished[f.id.String()] = true
			}
		}
		return unfinished[name]
	}
}

// confirmed is how long after a mark a session in the trash is deleted at the earliest.
const confirmed = 24 * time.Hour

// trashed is the content of trash/{id}.json, which is written before the folder is moved there.
//
// Nothing is deleted for good on the word of one clock. A command that finds a session due marks
// it. A later command deletes it, if the session is due by its clock as well, the mark is at least
// a day old by its clock, and the store knows a time at least a day after the mark. So two commands
// have to agree, and all between them: if the clock of one of them is right, the session is due. A
// command by whose clock the session is not due removes the mark. A mark in the future was made with
// a wrong clock, or is read with one: it is replaced.
type trashed struct {
	At  time.Time `json:"at"`
	Why string    `json:"why"`
	// Ahead is when a command first found At in the future: the time in the trash counts from then
	// on, or a clock that was ahead once would keep the session for years.
	Ahead time.Time `json:"ahead,omitzero"`
	Due   time.Time `json:"due,omitzero"`   // the mark
	Again time.Time `json:"again,omitzero"` // when a later command found the session due, a day after the mark
}

// A verdict is what a command finds of a session in the trash.
type verdict int

const (
	stayed  verdict = iota
	marked          // it is due; a later command deletes it
	deleted         // it is deleted for good
)

// judge says what becomes of a session in the trash, and the note that a command leaves of it. known
// is the newest time that the store knows, of those that are not in the future.
func (t trashed) judge(now, known time.Time, stays time.Duration) (trashed, verdict) {
	since := t.At
	if since.After(now) {
		if t.Ahead.IsZero() || t.Ahead.After(now) {
			t.Ahead = now
		}
		since = t.Ahead
	}
	if now.Sub(since) <= stays { // by this clock, which may be right: what an earlier one said does not count
		t.Due, t.Again = time.Time{}, time.Time{}
		return t, stayed
	}
	switch {
	case t.Due.IsZero() || t.Due.After(now):
		t.Due, t.Again = now, time.Time{}
		return t, marked
	case t.Again.After(now):
		t.Again = time.Time{}
	}
	if t.Again.After(known) {
		known = t.Again
	}
	if known.Sub(t.Due) < confirmed { // known is not after now, so the mark is a day old by this clock as well
		t.Again = now // the next command may rely on it
		return t, marked
	}
	return t, deleted
}

// known returns the newest time that a session has, of those that are not after now: a time in the
// future was written with a wrong clock, or now is wrong, and neither must count.
func (s *Store) known(now time.Time) (newest time.Time) {
	infos, err := s.List()
	if err != nil {
		return time.Time{} // nothing is known, and nothing is deleted
	}
	for _, i := range infos {
		for _, at := range []time.Time{i.UpdatedAt, i.CompletedAt} {
			if !at.After(now) && at.After(newest) {
				newest = at
			}
		}
	}
	return newest
}

// expired returns the sessions that were in the trash for too long and that may be deleted for
// good. It marks the others that are due, unless this is a dry run, and returns them as waiting.
func (s *Store) expired(r Retention, dryRun bool) (gone, waiting []Retired, err error) {
	if r.Trash <= 0 {
		return nil, nil, nil
	}
	all, err := s.Trash()
	now := s.opts.Now().UTC()
	var known time.Time
	if len(all) > 0 {
		known = s.known(now)
	}
	for _, x := range all {
		before := s.note(x.ID)
		if before.At.IsZero() {
			continue
		}
		after, v := before.judge(now, known, r.Trash)
		if after != before && !dryRun {
			if err := folder.WriteSmall(s.root(), noteOf(x.ID), after); err != nil {
				return nil, nil, err
			}
		}
		x.ForGood, x.Why = true, fmt.Sprintf("in the trash for more than %d days", int(r.Trash.Hours()/24))
		switch v {
		case deleted:
			gone = append(gone, x)
		case marked:
			x.Marked = after.Due
			waiting = append(waiting, x)
		case stayed:
		}
	}
	return gone, waiting, err
}

func noteOf(id session.ID) string { return trashDir + "/" + id.String() + ".json" }

// checkTrash says why sessions in the trash that are due are not deleted yet.
func (s *Store) checkTrash() (all []repair.Check) {
	trash, err := s.Trash()
	if err != nil {
		return []repair.Check{repair.Failed(trashDir, err)}
	}
	now := s.opts.Now()
	for _, x := range trash {
		t := s.note(x.ID)
		c := repair.Check{Name: x.ID.String()}
		switch {
		case t.At.IsZero():
			c.Found = "in the trash with a note that cannot be read: it is never deleted by itself"
		case !t.Due.IsZero():
			c.Found = fmt.Sprintf("in the trash, marked on %s, deleted for good by a command after %s", day(t.Due), day(t.Due.Add(confirmed)))
		case t.At.After(now):
			c.Found = fmt.Sprintf("in the trash since %s, which is in the future: its days there count from the next lopen session prune on", day(t.At))
			if !t.Ahead.IsZero() {
				c.Found = fmt.Sprintf("in the trash since %s, which is in the future: its days there count from %s", day(t.At), day(t.Ahead))
			}
		default:
			continue
		}
		all = append(all, c)
	}
	return all
}

func day(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }
