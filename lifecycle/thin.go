package lifecycle

import (
	"context"
	"errors"
	"slices"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// freeShare is the part of the free space that checkpoints may take: one in so many.
const freeShare = 10

// CheckpointsOver is by how many bytes what may not be removed of the checkpoints is
// above the limit, 0 while it is within.
func (s *Session) CheckpointsOver() int64 {
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	return s.kept.over
}

// thin removes the checkpoints that the policy does not keep, and frees what they had.
// It returns how many it removed. What fails is logged and left to the next time: the
// checkpoint that was made is good. Once a sweep has failed nothing more is removed: it
// would free nothing. The caller holds mu.
func (s *Session) thin(ctx context.Context) int {
	k := &s.kept
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
	swept, err := s.kept.store.sweep()
	if err != nil {
		if !errors.Is(err, ErrBusy) && !s.kept.unswept {
			s.kept.unswept = true
			s.log.Warn().Err(err).Msg("what removed checkpoints had is not all freed; this session removes no more of them")
		}
		return
	}
	s.kept.fewer = false
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
	taken, err := checkpoint.Usage(cps.blobs)
	if err != nil {
		return 0, err
	}
	return min(limit, max((free+taken)/freeShare, 1)), nil
}

// keeps names of all entries those that stay whatever they take: the one that the session
// knows the files by, the one that its undo goes back to, what rewinds need, and the trees
// of tasks that were set back. It is all of them where these cannot be told.
func (s *Session) keeps(all []*checkpoint.Entry) func(*checkpoint.Entry) bool {
	at := s.mark.Load()
	stays := map[string]bool{at.Checkpoint: true, at.Undo: true}
	if at.Rewinding != nil {
		stays[at.Rewinding.To], stays[at.Rewinding.Before] = true, true
	}
	needed := neededByRewinds(all, func(string) bool { return true })
	failed, err := s.store.neededByFailed(all)
	return func(e *checkpoint.Entry) bool {
		return stays[e.ID.String()] || needed[e.Number] || failed[e.Number] || err != nil
	}
}

// neededByRewinds are the numbers of the entries that rewinds of some sessions need, of all
// entries in their order. Of each session these are its newest rewind that ended and set no
// task back, what undo goes back to and the target of that, and the newest that began, with
// its target. Where
// the session made nothing since, that one may have to be finished: its plan is made again
// from the entries since its target.
func neededByRewinds(all []*checkpoint.Entry, of func(session string) bool) map[uint64]bool {
	newest, begun, ended := map[string]*checkpoint.Entry{}, map[string]*checkpoint.Entry{}, map[string]*checkpoint.Entry{}
	for _, e := range all {
		newest[e.Session] = e
		switch {
		case e.Removed != "" || !of(e.Session):
		case e.Reason == checkpoint.BeforeRewind:
			begun[e.Session] = e
		case e.Reason == checkpoint.AfterRewind && e.Task == "":
			ended[e.Session] = e
		}
	}
	needed := map[uint64]bool{}
	for _, e := range ended {
		needed[e.Number], needed[e.Parent], needed[e.Target] = true, true, true
	}
	for _, before := range begun {
		needed[before.Number], needed[before.Target] = true, true
		if newest[before.Session] != before {
			continue
		}
		start := before.Target
		for _, e := range slices.Backward(all) {
			if e.Number < start || e.Number > before.Number {
				continue
			}
			needed[e.Number] = true
			if e.Reason == checkpoint.AfterRewind { // what it brought back is looked for from there on
				start = min(start, e.Target)
			}
		}
	}
	return needed
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
