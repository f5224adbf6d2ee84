package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/commit"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// Rewind brings the project's files, the State, or both back to a checkpoint. It makes
// a checkpoint first, to which Undo goes back. Of the files only what this session's own
// tasks changed since is brought back; the rest is kept and reported. The begin is
// on record before the first file is changed, and the end with the State after the
// last: a rewind that is cut off is finished by the next Open. What the plan's boxes
// say follows the State.
func (s *Session) Rewind(ctx context.Context, to checkpoint.ID, opts rewind.Options) (rewind.Result, error) {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	done, err := s.rewind(ctx, to, opts)
	if err != nil {
		return done, rewind.Failed(s.id, to, err)
	}
	return done, nil
}

// Undo takes the last rewind back: files and State are as they were before it, but
// for what was changed since. An Undo can be undone as well. ErrNotFound says that there
// was no rewind.
func (s *Session) Undo(ctx context.Context, opts rewind.Options) (rewind.Result, error) {
	id, err := rewind.Undo(s.id, *s.mark.Load())
	if err != nil {
		return rewind.Result{}, err
	}
	return s.Rewind(ctx, id, opts)
}

func (s *Session) rewind(ctx context.Context, to checkpoint.ID, opts rewind.Options) (rewind.Result, error) {
	if err := s.openCheckpoints(); err != nil {
		return rewind.Result{}, err
	}
	p := s.planner()
	r, would, err := p.Preview(ctx, to, opts)
	if err != nil || opts.DryRun || would.Nothing() {
		return would, err // one that changes nothing must not take the place of what undo goes back to
	}
	return s.runRewind(ctx, p, r, would)
}

// PlanRewind says what [Session.Rewind] would do, or, where to is zero, [Session.Undo],
// without a lock and without changing anything, whoever holds the session.
func (s *Store) PlanRewind(ctx context.Context, id session.ID, to checkpoint.ID, opts rewind.Options) (rewind.Result, error) {
	ld, err := s.readWhole(id)
	if err != nil {
		return rewind.Result{}, err
	}
	defer ld.Dir.Close()
	if to.IsZero() {
		if to, err = rewind.Undo(id, ld.At); err != nil {
			return rewind.Result{}, err
		}
	}
	cps, err := s.Checkpoints()
	if err != nil {
		return rewind.Result{}, err
	}
	defer cps.Close()
	var last *checkpoint.Entry
	if name := ld.At.Checkpoint; name != "" {
		if last, err = cps.Lookup(name); err != nil && !errors.Is(err, checkpoint.ErrNotFound) {
			return rewind.Result{}, err
		}
	}
	p := s.planner(id, func() *session.State { return ld.State }, ld.At, cps, last)
	_, would, err := p.Preview(ctx, to, opts)
	if err != nil {
		return would, rewind.Failed(id, to, err)
	}
	return would, nil
}

// SetBack brings the files that a failed task changed back to what they were before the
// first of its attempts; see [rewind.Planner.SetBack]. It is a [Session.Rewind] of the
// files, but for three things: undo goes back to where it went before, the tree as the task
// left it stays until the session is pruned (see [Store.FailedTrees]), and there are reasons
// to leave all files as they are: why is one, "" for none. A task that changed nothing has
// no Result.Before.
//
// After an error that wraps [checkpoint.ErrUnchanged] the files are as they were. After
// another one the rewind has begun: the next Open finishes it, and a second SetBack is refused.
func (s *Session) SetBack(ctx context.Context, task string) (done rewind.Result, why string, err error) {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	done, why, err = s.setBack(ctx, task)
	if err != nil && s.mark.Load().Rewinding == nil && !errors.Is(err, checkpoint.ErrUnchanged) {
		err = fmt.Errorf("%w: %w", checkpoint.ErrUnchanged, err)
	}
	if err != nil {
		err = fmt.Errorf("set back the files of %s: %w", task, err)
	}
	return done, why, err
}

func (s *Session) setBack(ctx context.Context, task string) (rewind.Result, string, error) {
	if r := s.mark.Load().Rewinding; r != nil {
		return rewind.Result{}, "", errors.New(rewind.HowToFinish(r))
	}
	if err := s.openCheckpoints(); err != nil {
		return rewind.Result{}, "", err
	}
	p := s.planner()
	r, would, why, err := p.SetBack(ctx, task)
	if err != nil || why != "" || len(would.Changes) == 0 {
		return would, why, err
	}
	done, err := s.runRewind(ctx, p, r, would)
	return done, "", err
}

// maxReason bounds a reason that is put on record, in bytes.
const maxReason = 1 << 10

// NotSetBack puts on record why the files of a failed task stay as it left them. The text
// is redacted, and cut at 1 KiB.
func (s *Session) NotSetBack(task, why string) error {
	why = s.Redact(why)
	why = strings.ToValidUTF8(why[:min(len(why), maxReason)], "")
	return s.append(actors.Entry{Ops: []record.Op{{Name: record.OpNotSetBack, Task: task, To: why}}})
}

// FailedTrees are the numbers of those of some entries that have the tree of a failed task
// whose files were set back. They stay, whatever checkpoints take, until their session is
// pruned or deleted. A session is there as long as its folder is.
func (s *Store) FailedTrees(all []*checkpoint.Entry) (map[uint64]bool, error) {
	folders, err := s.folders(sessionsDir)
	if err != nil {
		return nil, err
	}
	return rewind.FailedTrees(all, func(session string) bool {
		return slices.ContainsFunc(folders, func(f sessionFolder) bool { return f.name == session })
	}), nil
}

// planner plans rewinds of a session, of which the newest State, the last record and the
// last checkpoint are given.
func (s *Store) planner(id session.ID, newest func() *session.State, at session.Mark, cps *Checkpoints, last *checkpoint.Entry) *rewind.Planner {
	p := &rewind.Planner{ID: id, State: newest, Mark: at, Last: last,
		Meta:      func() checkpoint.Meta { return s.meta(id, newest(), at, last) },
		Permitted: s.opts.Policy.RewindPermitted, Now: s.opts.Now, Sessions: otherSessions{s}, Plans: s}
	if cps != nil {
		p.Chain = cps.Store
	}
	return p
}

// planner plans rewinds of the session. It has no chain where the session has no checkpoint
// and nobody opened the chain. The caller holds mu.
func (s *Session) planner() *rewind.Planner {
	return s.store.planner(s.id, s.State, *s.mark.Load(), s.files.store, s.files.last)
}

// otherSessions reads sessions for a [rewind.Planner].
type otherSessions struct{ *Store }

func (s otherSessions) WholeIncarnation(id session.ID) (string, error) {
	ld, err := s.readWhole(id)
	if err != nil {
		return "", err
	}
	_ = ld.Dir.Close() // nothing was written
	return ld.At.Incarnation, nil
}

// runRewind carries out what was planned. The caller holds mu.
func (s *Session) runRewind(ctx context.Context, p *rewind.Planner, r *session.Rewinding, would rewind.Result) (rewind.Result, error) {
	run := &rewindRun{Session: s}
	done, err := p.Run(ctx, run, r, would)
	switch {
	case run.begun.IsZero(): // the caller gets the reason
	case err != nil:
		actors.Cause(s.log.Warn(), err).Str("checkpoint", r.To).Dur("duration_ms", time.Since(run.begun)).Msg("rewind failed")
	default:
		s.log.Info().Str("checkpoint", r.To).Int("changed", len(done.Changes)).Int("kept", len(done.Retained)).Int("tasks", len(done.Tasks)).
			Dur("duration_ms", time.Since(run.begun)).Msg("rewind ends")
		s.thin(ctx)
	}
	return done, err
}

// finishRewind finishes the rewind that the last holder had begun. One that cannot be
// finished is given up.
func (s *Session) finishRewind(r *session.Rewinding) error {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	if err := s.openCheckpoints(); err != nil {
		return err
	}
	log := s.log.With().Str("checkpoint", r.To).Logger()
	done, err := s.planner().Finish(context.Background(), &rewindRun{Session: s}, r)
	switch {
	case errors.Is(err, ErrCorrupt), errors.Is(err, ErrNotFound), errors.Is(err, checkpoint.ErrNotFound):
		actors.Cause(log.Warn(), err).Msg("rewind given up: it was cut off and cannot be finished; some files may be as they were before it")
		return s.append(commit.RewindGivenUp(r, r.Before))
	case err != nil:
		return fmt.Errorf("finish the rewind to checkpoint %s that was begun: %w; %s", shortID(r.To), err, rewind.HowToFinish(r))
	}
	for _, k := range done.Retained {
		if k.Why == checkpoint.Denied {
			log.Warn().Str("path", k.Path).Msg("the rewind left a path as it is: the system does not allow the change")
		}
	}
	log.Info().Int("changed", len(done.Changes)).Int("kept", len(done.Retained)).Int("tasks", len(done.Tasks)).Msg("rewind ends: it was cut off and is finished")
	return nil
}

// shortID is the ID of a checkpoint as messages show it.
func shortID(id string) string { return id[:min(len(id), 8)] }

// rewindRun is the [rewind.Session] of one rewind. Its caller holds mu.
type rewindRun struct {
	*Session
	begun time.Time // when the begin was put on record; zero before
}

func (s *rewindRun) Before(ctx context.Context, r *session.Rewinding, target *checkpoint.Entry) (*checkpoint.Entry, error) {
	return s.checkpoint(ctx, checkpoint.BeforeRewind, r.Task, target.Number)
}

func (s *rewindRun) Begin(ctx context.Context, r *session.Rewinding) error {
	begun, undo := time.Now(), s.mark.Load().Undo
	if err := s.note(ctx, actors.Entry{Rewind: r}); err != nil {
		return err
	}
	s.begun = begun
	s.log.Info().Str("checkpoint", r.To).Str("before", r.Before).Str("task", r.Task).Bool("undo", undo == r.To).
		Bool("files", r.Files).Bool("state", r.State).Bool("force", r.Force).Bool("contested", r.Contested).Int("paths", len(r.Paths)).Msg("rewind begins")
	return nil
}

func (s *rewindRun) After(ctx context.Context, r *session.Rewinding, target, before *checkpoint.Entry) (*checkpoint.Entry, error) {
	k := &s.files
	k.last = before // the session's line continues through it
	after, err := s.checkpoint(ctx, checkpoint.AfterRewind, r.Task, target.Number)
	if err != nil {
		return nil, err
	}
	k.last = after
	k.tree, k.seen, k.saved = k.store.Tree(after.Root), k.store.Seen(), k.store.Seen()
	return after, nil
}

func (s *rewindRun) End(ctx context.Context, r *session.Rewinding, st *session.State, changes []checkpoint.Change) error {
	if st != nil { // it is accepted, and committed together with the end
		if err := s.Update(func(*session.State) (*session.State, error) { return st, nil }); err != nil {
			return err
		}
	}
	if err := s.append(commit.RewindEnded(r, changes)); err != nil {
		return err
	}
	return s.Flush(ctx)
}

func (s *rewindRun) GiveUp(ctx context.Context, r *session.Rewinding, undo string) error {
	return s.note(ctx, commit.RewindGivenUp(r, undo))
}

// note makes an entry durable.
func (s *Session) note(ctx context.Context, e actors.Entry) error {
	if err := s.append(e); err != nil {
		return err
	}
	return s.Sync(ctx)
}
