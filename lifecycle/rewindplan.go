package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A rewindPlanner says what a rewind would do. It only reads.
type rewindPlanner struct {
	store *Store
	id    session.ID
	state *session.State // the newest
	cps   *Checkpoints
}

func (s *Session) planner() *rewindPlanner {
	return &rewindPlanner{s.store, s.id, s.State(), s.kept.store}
}

// PlanRewind says what [Session.Rewind] would do, or, where to is 0, [Session.Undo],
// without a lock and without changing anything, whoever holds the session.
func (s *Store) PlanRewind(ctx context.Context, id session.ID, to checkpoint.ID, opts RewindOptions) (Rewound, error) {
	dir, ld, err := s.readWhole(id)
	if err != nil {
		return Rewound{}, err
	}
	defer dir.Close()
	cps, err := s.Checkpoints(id)
	if err != nil {
		return Rewound{}, err
	}
	defer cps.Close()
	if to == 0 {
		if to, err = undoOf(id, ld.at); err != nil {
			return Rewound{}, err
		}
	}
	p := &rewindPlanner{s, id, ld.state, cps}
	var last *checkpoint.Manifest
	if name := ld.at.Checkpoint; name != "" {
		if last, err = p.load(name); err != nil && !errors.Is(err, checkpoint.ErrNotFound) && !errors.Is(err, ErrCorrupt) {
			return Rewound{}, err
		}
	}
	_, would, err := p.look(ctx, to, last, opts)
	if err != nil {
		return would, fmt.Errorf("rewind session %s to %s: %w", id, to, err)
	}
	return would, nil
}

// undoOf is the checkpoint that undo goes back to.
func undoOf(id session.ID, at session.Mark) (checkpoint.ID, error) {
	if at.Undo == "" {
		return 0, fmt.Errorf("undo in session %s: no rewind was made: %w", id, ErrNotFound)
	}
	return checkpoint.ParseID(at.Undo)
}

func (p *rewindPlanner) load(name string) (*checkpoint.Manifest, error) {
	id, err := checkpoint.ParseID(name)
	if err != nil {
		return nil, err
	}
	return p.cps.Load(id)
}

// look plans a rewind of the files as they are now. last is what the loop last knew
// of them, nil where nobody knows.
func (p *rewindPlanner) look(ctx context.Context, to checkpoint.ID, last *checkpoint.Manifest, opts RewindOptions) (*session.Rewinding, Rewound, error) {
	target, err := p.cps.Load(to)
	if err != nil {
		return nil, Rewound{}, err
	}
	r := &session.Rewinding{To: to.String(), From: to.String(), Seq: target.Seq, Files: opts.Files, State: opts.State, Force: opts.Force}
	if last != nil {
		r.From = last.ID.String()
	}
	now, err := p.cps.Look(ctx, last, nil)
	if err != nil {
		return nil, Rewound{}, err
	}
	_, would, err := p.plan(r, target, now)
	return r, would, err
}

// plan says what a rewind does to files and tasks. It follows from checkpoints and the
// journal alone, so that it can be made again after a crash.
func (p *rewindPlanner) plan(r *session.Rewinding, target *checkpoint.Manifest, now *files.Snapshot) (*checkpoint.Plan, Rewound, error) {
	done := Rewound{To: target.ID}
	last, err := p.load(r.From)
	if err != nil {
		return nil, done, err
	}
	loops, err := p.loopsWork(target, last)
	if err != nil {
		return nil, done, err
	}
	plan := checkpoint.NewPlan(target.Files, loops, now, r.Force)
	if r.Files {
		done.Changes, done.Kept = plan.Changes, plan.Kept
	}
	if r.State {
		st, err := p.stateBefore(r)
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

// stateBefore is the State that a rewind ends with, but for the plan's boxes.
func (p *rewindPlanner) stateBefore(r *session.Rewinding) (*session.State, error) {
	to, err := checkpoint.ParseID(r.To)
	if err != nil {
		return nil, err
	}
	made, err := p.madeIn(to)
	if err != nil {
		return nil, err
	}
	earlier, err := p.store.ReadAt(made, r.Seq)
	if err != nil {
		return nil, err
	}
	if earlier, err = earlier.As(p.id); err != nil {
		return nil, err
	}
	return p.state.RewindTo(earlier, p.store.opts.Now())
}
