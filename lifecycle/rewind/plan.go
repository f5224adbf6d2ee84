package rewind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer"
)

// Options say what a rewind changes.
type Options struct {
	Files, State bool
	Paths        []string // only these files and folders; nil means all, or those of the checkpoint's own list
	Contested    bool     // also files that changed while this session and others were at work
	Force        bool     // also files that others changed or have open; changes that the system does not allow are left out
	DryRun       bool     // nothing is changed
}

// A Result is what a rewind did, or would do.
type Result struct {
	To       *checkpoint.Entry
	Before   *checkpoint.Entry // the checkpoint that undo returns to; nil if nothing was changed
	Changes  []checkpoint.Change
	Retained []checkpoint.Retained
	Taken    []checkpoint.Retained // with Options.Force: what is replaced or removed although somebody has it open for writing
	Tasks    []session.Task        // tasks whose state changes, as they are afterwards
	Later    bool                  // the repository's HEAD or branch differs from that at To

	others []string // tasks of other sessions that are being worked on, each with its session
}

// Nothing reports whether the rewind changes nothing.
func (r *Result) Nothing() bool { return len(r.Changes)+len(r.Tasks) == 0 }

// forget takes the number of a checkpoint that was not made out of what is said of paths.
func (r *Result) forget(number uint64) {
	for i := range r.Changes {
		if r.Changes[i].At == number {
			r.Changes[i].At = 0
		}
	}
	for i := range r.Retained {
		if r.Retained[i].At == number {
			r.Retained[i].At = 0
		}
	}
}

// keep takes paths that were left as they are out of the changes.
func (r *Result) keep(applied checkpoint.Applied) {
	kept := map[string]bool{}
	for _, k := range applied.Retained {
		kept[k.Path] = true
	}
	r.Taken = applied.Taken
	r.Changes = slices.DeleteFunc(slices.Clone(r.Changes), func(c checkpoint.Change) bool { return kept[c.Path] })
	r.Retained = append(slices.Clip(r.Retained), applied.Retained...)
}

// Sessions reads sessions without a lock.
type Sessions interface {
	// WholeIncarnation returns the incarnation of a session. It fails if the session cannot be
	// read whole.
	WholeIncarnation(id session.ID) (string, error)
	// ReadAt returns the State of a record.
	ReadAt(id session.ID, seq uint64) (*session.State, error)
	// Log calls fn with each record above a number, in order.
	Log(id session.ID, above uint64, fn func(record.Record) error) error
}

// A Planner plans rewinds of a session, and executes them through a [Session].
type Planner struct {
	ID    session.ID
	State func() *session.State // returns the newest State
	Mark  session.Mark          // of the newest record
	Chain *checkpoint.Store
	Last  *checkpoint.Entry                         // the session's newest checkpoint, or nil
	Meta  func(ctx context.Context) checkpoint.Meta // describes a new checkpoint of the session, without the reason
	// Permitted sets [checkpoint.RewindOptions] Permitted for every rewind.
	Permitted bool
	Now       func() time.Time // the clock
	Sessions  Sessions
	Plans     Plans
}

// Undo returns the checkpoint that undo of a session returns to. The error wraps
// [folder.ErrNotFound] if there was no rewind.
func Undo(id session.ID, at session.Mark) (checkpoint.ID, error) {
	if at.Undo == "" {
		return checkpoint.ID{}, fmt.Errorf("undo in session %s: no rewind was made: %w", id, folder.ErrNotFound)
	}
	return checkpoint.ParseID(at.Undo)
}

// Preview plans a rewind of the files as they are now. It makes no checkpoint: the number of one is 0 where only the
// one that a rewind makes first would have what is there now.
func (p *Planner) Preview(ctx context.Context, to checkpoint.ID, opts Options) (*session.Rewinding, Result, error) {
	return p.preview(ctx, to, opts, "")
}

// preview is Preview of the rewind for a failed task, or, without one, that of a person.
func (p *Planner) preview(ctx context.Context, to checkpoint.ID, opts Options, task string) (*session.Rewinding, Result, error) {
	if !opts.Files && !opts.State {
		return nil, Result{}, errNothing
	}
	target, err := p.find(to.String(), false)
	if err != nil {
		return nil, Result{}, err
	}
	if opts.Paths, err = target.Among(opts.Paths); err != nil {
		return nil, Result{}, err
	}
	r := &session.Rewinding{To: to.String(), Files: opts.Files, State: opts.State, Force: opts.Force, Contested: opts.Contested, Task: task}
	for _, path := range opts.Paths {
		r.Paths = append(r.Paths, []byte(path))
	}
	meta := p.Meta(ctx)
	meta.Reason, meta.Target = checkpoint.BeforeRewind, target.Number
	now, tree, err := p.Chain.Look(ctx, meta)
	if err != nil {
		return nil, Result{}, err
	}
	plan, would, err := p.plan(ctx, r, target, now, tree)
	if err == nil && plan != nil {
		var used checkpoint.Applied
		used, err = p.Chain.Ask(ctx, plan)
		would.keep(used)
		err = p.advised(r, err)
	}
	would.forget(now.Number)
	for _, a := range now.Active {
		if a.Session != now.Session {
			would.others = append(would.others, a.Session+" "+a.Task)
		}
	}
	return r, would, err
}

// errNothing is the error of a rewind that is to bring nothing back.
var errNothing = &writer.Error{Op: "rewind", Class: writer.ClassInvalid, Err: errors.New("say what it brings back: the files, the state or both")}

// find returns a checkpoint of the project's chain, or of one that was imported, by its full ID.
func (p *Planner) find(name string, removed bool) (*checkpoint.Entry, error) {
	e, err := p.Chain.Lookup(name)
	if errors.Is(err, checkpoint.ErrNotFound) {
		if found, ferr := p.Chain.FindOther(name); ferr != nil || found != nil {
			e, err = found, ferr
		}
	}
	if err == nil && e.Removed != "" && !removed {
		return nil, fmt.Errorf("checkpoint %s: %w", e.ID.Short(), checkpoint.ErrNotFound)
	}
	return e, err
}

// plan plans what a rewind does to files and tasks. now is the entry that was made before it,
// or the one that Look returned. The plan depends only on the chain and the logs, so that it
// can be made again after a crash.
func (p *Planner) plan(ctx context.Context, r *session.Rewinding, target, now *checkpoint.Entry, tree *checkpoint.Tree) (*checkpoint.Plan, Result, error) {
	done := Result{To: target}
	opts := checkpoint.RewindOptions{Contested: r.Contested, Force: r.Force, Permitted: p.tolerates(r)}
	for _, path := range r.Paths {
		opts.Paths = append(opts.Paths, string(path))
	}
	var plan *checkpoint.Plan
	if r.Files {
		var err error
		if plan, err = p.Chain.Plan(ctx, target, now, tree, now.Parent, opts); err != nil {
			return nil, done, err
		}
		done.Changes, done.Retained, done.Later = plan.Changes, plan.Retained, plan.Later
	}
	if r.State {
		st, err := p.stateBefore(target)
		if err != nil {
			return nil, done, err
		}
		changed := map[string]bool{}
		session.Diff(p.State(), st, func(id string, was, is *session.Task) bool {
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

// tolerates reports whether a rewind leaves paths as they are that may not be changed. Setting
// back does: nobody is there to see to the path, and the other tasks go on.
func (p *Planner) tolerates(r *session.Rewinding) bool {
	return r.Force || p.Permitted || r.Task != ""
}

// recordOf returns the record of a session that has the State of a checkpoint: that of the rewind's end, for one behind a rewind.
func (p *Planner) recordOf(made session.ID, target *checkpoint.Entry) (seq uint64, err error) {
	if seq = target.Seq; target.Reason != checkpoint.AfterRewind {
		return seq, nil
	}
	err = p.Sessions.Log(made, seq, func(r record.Record) error {
		if EndsAt(r, target) {
			seq = r.Seq
		}
		return nil
	})
	return seq, err
}

// stateBefore returns the State that a rewind ends with, except for the plan's boxes. It is made
// from the State of the session that made the checkpoint, which must be on this session's line.
func (p *Planner) stateBefore(target *checkpoint.Entry) (*session.State, error) {
	if target.FilesAlone() {
		return nil, &writer.Error{Op: "tasks of checkpoint", Path: target.ID.Short(), Class: writer.ClassInvalid,
			Err: errors.New("it is one of a list, or from before any session, and has none to go back to: bring back the files alone, with --scope files")}
	}
	made, err := session.ParseID(target.Session)
	if err != nil {
		return nil, err
	}
	incarnation := p.Mark.Incarnation
	if incarnation != "" && incarnation == target.Incarnation {
		made = p.ID // it was imported, and had another ID where it made the checkpoint
	}
	if made != p.ID {
		own := map[uint64]bool{}
		if p.Last != nil {
			if own, err = p.Chain.Line(p.Last.Number); err != nil {
				return nil, err
			}
		}
		if !own[target.Number] {
			return nil, filesAlone(target, "and session %s does not come from that one", p.ID)
		}
		if incarnation, err = p.Sessions.WholeIncarnation(made); err != nil {
			return nil, filesAlone(target, "which cannot be read: %v", err)
		}
	}
	if incarnation != target.Incarnation {
		return nil, filesAlone(target, "whose folder was removed since and made again")
	}
	seq, err := p.recordOf(made, target)
	if err != nil {
		return nil, err
	}
	earlier, err := p.Sessions.ReadAt(made, seq)
	if err != nil {
		return nil, err
	}
	if earlier, err = earlier.As(p.ID); err != nil {
		return nil, err
	}
	return p.State().RewindTo(earlier, p.Now())
}

// EndsAt reports whether a record is the end of the rewind after which a checkpoint was made.
func EndsAt(r record.Record, e *checkpoint.Entry) bool {
	return r.Rewind != nil && r.Rewind.After == e.ID.String()
}

// filesAlone returns the error that the tasks of a checkpoint cannot be brought back.
func filesAlone(e *checkpoint.Entry, format string, args ...any) error {
	return fmt.Errorf("the tasks at checkpoint %s are in the log of session %s, %s: bring back the files alone, with --scope files: %w",
		e.ID.Short(), e.Session, fmt.Sprintf(format, args...), folder.ErrNotFound)
}

// Failed returns the error of a rewind, with its session and checkpoint. It wraps
// [folder.ErrNotFound] if the checkpoint is missing.
func Failed(id session.ID, to checkpoint.ID, err error) error {
	if errors.Is(err, checkpoint.ErrNotFound) && !errors.Is(err, folder.ErrNotFound) {
		err = fmt.Errorf("%w: %w", err, folder.ErrNotFound)
	}
	return fmt.Errorf("rewind session %s to checkpoint %s: %w", id, to.Short(), err)
}
