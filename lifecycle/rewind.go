package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
)

// RewindOptions say what a rewind changes.
type RewindOptions struct {
	Files, State bool
	Paths        []string // of the files these and what is beneath them; nil is everything
	Contested    bool     // also what changed while this session and others were at work
	Force        bool     // also what somebody else changed; what the system does not allow is left as it is
	DryRun       bool     // nothing: it is only said
}

// A Rewound is what a rewind did, or would do.
type Rewound struct {
	To      *checkpoint.Entry
	Before  *checkpoint.Entry // what [Session.Undo] goes back to; nil of one that changed nothing
	Changes []checkpoint.Change
	Kept    []checkpoint.Kept
	Tasks   []session.Task // whose state changes, as they are afterwards
	Later   bool           // the repository's HEAD or branch is another one than at To
	others  []string       // tasks of other sessions that are at work, each with its session
}

// Rewind brings the project's files, the State, or both back to a checkpoint. It makes
// a checkpoint first, to which Undo goes back. Of the files only what this session's own
// tasks changed since is brought back; the rest is kept and reported. The begin is
// on record before the first file is changed, and the end with the State after the
// last: a rewind that is cut off is finished by the next Open. What the plan's boxes
// say follows the State.
func (s *Session) Rewind(ctx context.Context, to checkpoint.ID, opts RewindOptions) (Rewound, error) {
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	done, err := s.rewind(ctx, to, opts)
	if err != nil {
		return done, rewinding(s.id, to, err)
	}
	return done, nil
}

// Undo takes the last rewind back: files and State are as they were before it, but
// for what was changed since. An Undo can be undone as well. ErrNotFound says that there
// was no rewind.
func (s *Session) Undo(ctx context.Context, opts RewindOptions) (Rewound, error) {
	id, err := undoOf(s.id, *s.mark.Load())
	if err != nil {
		return Rewound{}, err
	}
	return s.Rewind(ctx, id, opts)
}

func (s *Session) rewind(ctx context.Context, to checkpoint.ID, opts RewindOptions) (Rewound, error) {
	if err := s.openCheckpoints(); err != nil {
		return Rewound{}, err
	}
	r, would, err := s.planner().preview(ctx, to, opts)
	if err != nil || opts.DryRun || len(would.Changes)+len(would.Tasks) == 0 {
		return would, err // one that changes nothing must not take the place of what undo goes back to
	}
	return s.carryOut(ctx, r, would)
}

// carryOut does what was planned. The caller holds mu.
func (s *Session) carryOut(ctx context.Context, r *session.Rewinding, would Rewound) (Rewound, error) {
	before, err := s.checkpoint(ctx, checkpoint.BeforeRewind, r.Task, would.To.Number)
	if err != nil {
		return Rewound{}, err
	}
	if _, err := s.kept.store.Find(would.To.ID); err != nil { // it was removed meanwhile
		return Rewound{}, fmt.Errorf("%w: %w", checkpoint.ErrUnchanged, err)
	}
	r.Before = before.ID.String()
	begun, undo := time.Now(), s.mark.Load().Undo
	if err := s.note(ctx, actors.Entry{Rewind: r}); err != nil {
		// The begin is accepted and may become durable later, when nobody wants it any more.
		_ = s.append(rewindGivenUp(r, undo))
		return Rewound{}, err
	}
	s.log.Info().Str("checkpoint", r.To).Str("before", r.Before).Str("task", r.Task).Bool("undo", undo == r.To).
		Bool("files", r.Files).Bool("state", r.State).Bool("force", r.Force).Bool("contested", r.Contested).Int("paths", len(r.Paths)).Msg("rewind begins")
	done, err := s.finishRewind(ctx, r)
	if err != nil {
		actors.Cause(s.log.Warn(), err).Str("checkpoint", r.To).Dur("duration_ms", time.Since(begun)).Msg("rewind failed")
		return done, s.giveUp(ctx, r, undo, err)
	}
	s.log.Info().Str("checkpoint", r.To).Int("changed", len(done.Changes)).Int("kept", len(done.Kept)).Int("tasks", len(done.Tasks)).
		Dur("duration_ms", time.Since(begun)).Msg("rewind ends")
	s.thin(ctx)
	return done, nil
}

// giveUp ends a rewind that failed before it changed anything: it holds nobody up, and
// undo goes back to where it went before. One that may have changed something stays
// begun, and the next holder finishes it.
func (s *Session) giveUp(ctx context.Context, r *session.Rewinding, undo string, cause error) error {
	if !errors.Is(cause, checkpoint.ErrUnchanged) {
		return fmt.Errorf("%w; %s", cause, howToFinish(r))
	}
	if err := s.note(ctx, rewindGivenUp(r, undo)); err != nil {
		return errors.Join(cause, err) // the next holder tries it again
	}
	return cause
}

// howToFinish says what to do about a rewind that has begun and cannot be ended.
func howToFinish(r *session.Rewinding) string {
	return fmt.Sprintf("see to the path, and whatever opens the session next finishes the rewind; to leave what may not be written as it is: lopen checkpoint rewind %s --force --yes", short(r.To))
}

// short is the ID of a checkpoint as messages show it.
func short(id string) string { return id[:min(len(id), 8)] }

// note makes an entry durable.
func (s *Session) note(ctx context.Context, e actors.Entry) error {
	if err := s.append(e); err != nil {
		return err
	}
	return s.Sync(ctx)
}

// finishRewind does what the begin on record says and puts the end on record, with
// the State that belongs to it. It may be done again from the begin on.
func (s *Session) finishRewind(ctx context.Context, r *session.Rewinding) (Rewound, error) {
	k := &s.kept
	target, err := k.store.entry(r.To)
	if err != nil {
		return Rewound{}, err
	}
	before, err := k.store.entry(r.Before)
	if err != nil {
		return Rewound{}, err
	}
	plan, done, err := s.planner().plan(ctx, r, target, before, k.store.Tree(before.Root))
	if err != nil {
		return done, err
	}
	done.Before = before
	ended := *r
	if r.Files {
		applied, err := k.store.Apply(ctx, plan)
		done.Kept = append(done.Kept, applied.Kept...)
		if err != nil {
			return done, err
		}
		k.last = before // the session's line continues through it
		after, err := s.checkpoint(ctx, checkpoint.AfterRewind, r.Task, target.Number)
		if err != nil {
			return done, err
		}
		k.last = after
		k.tree, k.seen, k.saved = k.store.Tree(k.last.Root), k.store.Seen(), k.store.Seen()
		ended.After = k.last.ID.String()
	}
	if r.State {
		st, err := s.planner().stateBefore(target)
		if err == nil {
			st, err = s.followBoxes(st)
		}
		if err != nil {
			return done, err
		}
		// Accepted, and committed together with the end.
		if err := s.Update(func(*session.State) (*session.State, error) { return st, nil }); err != nil {
			return done, err
		}
	}
	if err := s.append(rewindEnded(&ended, done.Changes)); err != nil {
		return done, err
	}
	return done, s.Flush(ctx)
}

// followBoxes makes the plan's boxes those of a State, and the State know of them.
// A plan that is not there or does not let itself be written is left as it is: the
// next run follows what it says.
func (s *Session) followBoxes(st *session.State) (*session.State, error) {
	p, err := s.store.Plan(s.id.Module)
	if errors.Is(err, fs.ErrNotExist) {
		return st, nil
	}
	if err != nil {
		return nil, err
	}
	want := map[string]bool{}
	for t := range st.All() {
		if box, ok := p.Task(t.ID); ok && t.Box != session.BoxNone && box.Checked != (t.State == session.TaskComplete) {
			want[t.ID] = !box.Checked
		}
	}
	if len(want) > 0 {
		if p, err = s.store.EditPlan(s.id.Module, p, plan.Boxes(want)); err != nil {
			return nil, err
		}
	}
	e := st.Edit()
	for t := range st.All() {
		box, ok := p.Task(t.ID)
		if !ok || t.Box == session.BoxNone {
			continue
		}
		is := session.BoxOpen
		if box.Checked {
			is = session.BoxTicked
		}
		if t.Box != is {
			t.Box = is
			e.Put(t)
		}
	}
	return e.State()
}
