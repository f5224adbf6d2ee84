package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A rewindPlanner says what a rewind of a session would do. It only reads.
type rewindPlanner struct {
	store *Store
	id    session.ID
	state *session.State // the newest
	mark  session.Mark
	cps   *Checkpoints
	last  *checkpoint.Entry // the session's newest; nil when there is none
}

func (s *Session) planner() *rewindPlanner {
	return &rewindPlanner{s.store, s.id, s.State(), *s.mark.Load(), s.kept.store, s.kept.last}
}

// PlanRewind says what [Session.Rewind] would do, or, where to is zero, [Session.Undo],
// without a lock and without changing anything, whoever holds the session.
func (s *Store) PlanRewind(ctx context.Context, id session.ID, to checkpoint.ID, opts RewindOptions) (Rewound, error) {
	ld, err := s.readWhole(id)
	if err != nil {
		return Rewound{}, err
	}
	defer ld.dir.Close()
	if to.IsZero() {
		if to, err = undoOf(id, ld.at); err != nil {
			return Rewound{}, err
		}
	}
	cps, err := s.Checkpoints()
	if err != nil {
		return Rewound{}, err
	}
	defer cps.Close()
	p := &rewindPlanner{store: s, id: id, state: ld.state, mark: ld.at, cps: cps}
	if name := ld.at.Checkpoint; name != "" {
		if p.last, err = cps.entry(name); err != nil && !errors.Is(err, checkpoint.ErrNotFound) {
			return Rewound{}, err
		}
	}
	_, would, err := p.preview(ctx, to, opts)
	if err != nil {
		return would, rewinding(id, to, err)
	}
	return would, nil
}

// rewinding is the error of a rewind that was asked for.
func rewinding(id session.ID, to checkpoint.ID, err error) error {
	if errors.Is(err, checkpoint.ErrNotFound) && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("%w: %w", err, ErrNotFound)
	}
	return fmt.Errorf("rewind session %s to checkpoint %s: %w", id, to.Short(), err)
}

// undoOf is the checkpoint that undo goes back to.
func undoOf(id session.ID, at session.Mark) (checkpoint.ID, error) {
	if at.Undo == "" {
		return checkpoint.ID{}, fmt.Errorf("undo in session %s: no rewind was made: %w", id, ErrNotFound)
	}
	return checkpoint.ParseID(at.Undo)
}

// preview plans a rewind of the files as they are now.
func (p *rewindPlanner) preview(ctx context.Context, to checkpoint.ID, opts RewindOptions) (*session.Rewinding, Rewound, error) {
	target, err := p.cps.Find(to)
	if err != nil {
		return nil, Rewound{}, err
	}
	r := &session.Rewinding{To: to.String(), Files: opts.Files, State: opts.State, Force: opts.Force, Contested: opts.Contested}
	for _, path := range opts.Paths {
		r.Paths = append(r.Paths, []byte(path))
	}
	meta := p.store.meta(p.id, p.state, p.mark, p.last)
	meta.Reason, meta.Target = checkpoint.BeforeRewind, target.Number
	now, tree, err := p.cps.Look(ctx, meta)
	if err != nil {
		return nil, Rewound{}, err
	}
	_, would, err := p.plan(ctx, r, target, now, tree)
	for _, a := range now.Active {
		if a.Session != now.Session {
			would.others = append(would.others, a.Session+" "+a.Task)
		}
	}
	return r, would, err
}

// plan says what a rewind does to files and tasks, now being the entry that was made for
// it, or what Look returned. It follows from the chain and the journals alone, so that it
// can be made again after a crash.
func (p *rewindPlanner) plan(ctx context.Context, r *session.Rewinding, target, now *checkpoint.Entry, tree *checkpoint.Tree) (*checkpoint.Plan, Rewound, error) {
	done := Rewound{To: target}
	opts := checkpoint.RewindOptions{Contested: r.Contested, Force: r.Force, Permitted: r.Force || p.store.opts.Policy.RewindPermitted}
	for _, path := range r.Paths {
		opts.Paths = append(opts.Paths, string(path))
	}
	var plan *checkpoint.Plan
	if r.Files {
		var err error
		if plan, err = p.cps.Plan(ctx, target, now, tree, now.Parent, opts); err != nil {
			return nil, done, err
		}
		done.Changes, done.Kept, done.Later = plan.Changes, plan.Kept, plan.Later
	}
	if r.State {
		st, err := p.stateBefore(target)
		if err != nil {
			return nil, done, err
		}
		changed := map[string]bool{}
		session.Diff(p.state, st, func(id string, was, is *session.Task) bool {
			changed[id] = is != nil && (was == nil || was.State != is.State)
			return true
		})
		for t := range st.All() { // in the plan's order, which a trie does not have
			if changed[t.ID] {
				done.Tasks = append(done.Tasks, t)
			}
		}
	}
	return plan, done, nil
}

// stateBefore is the State that a rewind ends with, but for the plan's boxes: that of the
// session that made the checkpoint, which must be on this session's line.
func (p *rewindPlanner) stateBefore(target *checkpoint.Entry) (*session.State, error) {
	made, err := session.ParseID(target.Session)
	if err != nil {
		return nil, err
	}
	incarnation := p.mark.Incarnation
	if made != p.id {
		own := map[uint64]bool{}
		if p.last != nil {
			if own, err = p.cps.Line(p.last.Number); err != nil {
				return nil, err
			}
		}
		if !own[target.Number] {
			return nil, filesAlone(target, "and session %s does not come from that one", p.id)
		}
		ld, err := p.store.readWhole(made)
		if err != nil {
			return nil, filesAlone(target, "which cannot be read: %v", err)
		}
		incarnation = ld.at.Incarnation
		_ = ld.dir.Close() // nothing was written
	}
	if incarnation != target.Incarnation {
		return nil, filesAlone(target, "whose folder was removed since and made again")
	}
	seq := target.Seq
	if target.Reason == checkpoint.AfterRewind { // its State is that of the rewind's end
		err := p.store.Log(made, seq, func(r session.Record) error {
			if endsWith(r, target) {
				seq = r.Seq
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	earlier, err := p.store.ReadAt(made, seq)
	if err != nil {
		return nil, err
	}
	if earlier, err = earlier.As(p.id); err != nil {
		return nil, err
	}
	return p.state.RewindTo(earlier, p.store.opts.Now())
}

// filesAlone says why the tasks of a checkpoint cannot be brought back.
func filesAlone(e *checkpoint.Entry, format string, args ...any) error {
	return fmt.Errorf("the tasks at checkpoint %d are in the log of session %s, %s: bring back the files alone, with --scope files: %w",
		e.Number, e.Session, fmt.Sprintf(format, args...), ErrNotFound)
}
