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
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
)

// Retention says which completed sessions prune moves to the trash. 0 is no limit.
type Retention struct {
	Sessions int           // so many completed sessions stay
	Age      time.Duration // those completed longer ago go
	Bytes    int64         // of all completed sessions on the disk: the oldest ones go
	Trash    time.Duration // what lies in the trash longer is deleted for good; 0 keeps it
}

// A Retired is a session that prune moves, or has moved, to the trash, or that is
// deleted for good.
type Retired struct {
	ID      session.ID
	Why     string
	Bytes   int64 // on the disk, as du counts them
	ForGood bool

	at time.Time // when it was completed, or came to the trash
}

// Prune moves completed sessions beyond the limits to the trash, the oldest
// completed first, deletes for good what lay there too long, and frees the contents that
// no checkpoint needs any more. Sessions that are
// active, paused, pinned, held or edited outside are never touched. What a listing
// shows decides nothing: a session is read whole, and once more under its lease right
// before it is moved. One that turns out to be damaged is moved to corrupted/ instead.
//
// With dryRun Prune only says what would go. A session that cannot be read or moved is
// skipped; the errors come back joined.
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
	gone, err := s.expired(r)
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
		return append(goes, gone...), errors.Join(errs...)
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

// stays says that an error is a reason to leave a session where it is, without a word.
func stays(err error) bool {
	return slices.ContainsFunc([]error{ErrBusy, ErrNotComplete, ErrNotFound, ErrEdited, ErrFutureVersion}, func(why error) bool { return errors.Is(err, why) })
}

// beyond are the completed sessions that the limits do not keep, and those among the
// ones that count which cannot be read. What a listing shows may lag behind the journal,
// so it only says whether a closer look is needed.
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
		all = append(all, Retired{ID: i.ID, Bytes: s.diskBytes(sessionsDir+"/"+i.ID.String(), true), at: i.CompletedAt})
	}
	now := s.opts.Now()
	if len(r.exceeded(all, now)) == 0 {
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
	return r.exceeded(whole, now), failed, nil
}

// exceeded are those of some completed sessions that the limits do not keep, the oldest
// completed first.
func (r Retention) exceeded(all []Retired, now time.Time) (goes []Retired) {
	all = slices.SortedFunc(slices.Values(all), func(a, b Retired) int { // the newest completed first
		return cmp.Or(b.at.Compare(a.at), b.ID.Compare(a.ID))
	})
	var bytes int64
	for i, x := range all {
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

// completedAt says of a session that was read whole when it was completed. ErrNotComplete says
// that it was not, or that its next holder has a rewind of the project's files to finish.
func completedAt(ld *folder.Contents, err error) (time.Time, error) {
	if err != nil {
		return time.Time{}, err
	}
	if ld.State.Status() != session.StatusComplete || ld.At.Rewinding != nil {
		return time.Time{}, fmt.Errorf("session %s: %w", ld.State.ID(), ErrNotComplete)
	}
	return ld.State.Header().CompletedAt, nil
}

// readShown reads a session whole that this process does not hold.
func (s *Store) readShown(id session.ID) (*folder.Contents, error) {
	ld, err := s.readWhole(id)
	if err != nil {
		return nil, err
	}
	return ld, ld.Dir.Close()
}

// readHeld reads a session whole whose lease this process has. A damaged one is moved
// to corrupted/.
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

// moveToTrash moves a session that nobody holds, if it is complete still. The caller
// holds the store lock.
func (s *Store) moveToTrash(x Retired) error {
	note := trashed{s.opts.Now().UTC(), x.Why}
	if err := writer.MkdirDurable(s.root(), trashDir); err != nil {
		return err
	}
	return s.withLease(sessionsDir, x.ID, func(lease *writer.Lock, name string) error {
		at, err := completedAt(s.readHeld(x.ID, lease))
		if err == nil && !at.Equal(x.at) {
			err = fmt.Errorf("session %s was completed anew meanwhile: %w", x.ID, ErrNotComplete)
		}
		if err != nil {
			return err
		}
		if err := folder.WriteSmall(s.root(), trashDir+"/"+x.ID.String()+".json", note); err != nil {
			return err
		}
		return s.move(name, trashDir+"/"+x.ID.String())
	})
}

// emptyTrash deletes a session in the trash for good. The caller holds the store lock.
func (s *Store) emptyTrash(ctx context.Context, x Retired) error {
	if err := s.withLease(trashDir, x.ID, func(_ *writer.Lock, name string) error { return s.removeForGood(ctx, name, x.ID) }); err != nil {
		return err
	}
	_ = s.root().Remove(trashDir + "/" + x.ID.String() + ".json")
	return nil
}

// freeShare is the part of the free space that checkpoints may take: one in so many.
const freeShare = 10

// CheckpointsOver is by how many bytes what may not be removed of the checkpoints is
// above the limit, 0 while it is within.
func (s *Session) CheckpointsOver() int64 {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	return s.files.over
}

// thin removes the checkpoints that the policy does not keep, and frees what they had.
// It returns how many it removed. What fails is logged and left to the next time: the
// checkpoint that was made is good. Once a sweep has failed nothing more is removed: it
// would free nothing. The caller holds mu.
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

// sweep frees what removed checkpoints had, now where nobody is in the way.
func (s *Session) sweep() {
	swept, err := s.files.store.sweep()
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

// checkpointLimit is how many bytes the checkpoints may take: those of the policy, or a
// share of what would be free on the disk without them where that is less; 0 is no limit.
func (s *Store) checkpointLimit(cps *Checkpoints) (int64, error) {
	limit := s.opts.Policy.CheckpointBytes
	if limit <= 0 {
		return 0, nil
	}
	bytes, err := writer.FreeBytes(s.Path())
	free := int64(min(bytes, 1<<62))
	if err != nil || free/freeShare >= limit {
		return limit, nil //nolint:nilerr // not known on this system
	}
	taken, err := cps.blobs.Usage()
	if err != nil {
		return 0, err
	}
	return min(limit, max((free+taken)/freeShare, 1)), nil
}

// keeps names of all entries those that stay whatever they take: the one that the session
// knows the files by, the one that its undo goes back to, what rewinds need, and the trees
// of tasks that were set back. It is all of them where these are not known.
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

// unfinishedSessions says of a session whether it may be gone on with: it is not
// complete, or it is damaged and can be recovered. Nothing is read before the first call.
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
