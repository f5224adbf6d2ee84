package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/repo"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/fleet"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/plain"
)

// askPatience bounds what a run waits for the fleet before it begins. One that does not answer costs
// that once; the run goes on with what is here.
const askPatience = 5 * time.Second

// openFleet opens the fleet that the project has joined, for a run that keeps what it does. Nothing about
// a fleet keeps a run from its work.
func (r *runCall) openFleet(project string, values *settings.Values) (closes func()) {
	if r.noSave || r.dryRun || r.fleet != nil {
		return func() {}
	}
	f, err := r.fleetOf(project)
	if err != nil {
		fmt.Fprintf(r.stderr, "warning: %v\n%s  this run is kept on this machine alone\n", err, hint(err))
	}
	if f == nil {
		if values.Replicate == "task" {
			fmt.Fprintln(r.stderr, "warning: replicate is task, and this project has joined no fleet: a box is ticked when the disk has it")
		}
		return func() {}
	}
	r.fleet = f
	return f.Close
}

// continueElsewhere brings the module's session from the fleet, where another machine was further,
// and has the run resume it. The store is made if there is none and something comes.
func (r *runCall) continueElsewhere(ctx context.Context, project string, store *lifecycle.Store, opts lifecycle.Options, values *settings.Values) (*lifecycle.Store, error) {
	if r.fleet == nil || r.resume != "" || r.noResume {
		return store, nil
	}
	x, rel, err := r.askFleet(ctx, store)
	if err == nil {
		err = r.refuseParted(store, values)
	}
	if err != nil || x == nil {
		return store, fleetError(r.fleet, err)
	}
	switch {
	case x.Held && !(store != nil && r.fleet.Mine(store, x)):
		return store, &loop.Exit{Code: loop.ExitBusy, Reason: fmt.Sprintf("session %s of module %s runs on %s\n  look: lopen session watch --fleet %s\n  a machine that is gone gives it back within %s", x.ID, r.module, plain.Line(x.Host), x.ID, fleet.Lease)}
	case rel == fleet.Same || rel == fleet.Ahead:
		return store, r.newerPlan(ctx, store)
	}
	if yes, err := r.wantsElsewhere(ctx, x, rel, values); err != nil || !yes {
		return store, err
	}
	if store == nil {
		store, err = r.create(project, opts)
	}
	return store, errors.Join(err, r.take(ctx, store, x))
}

// askFleet returns the session of the fleet that the run is to consider, or nil. A fleet that does not
// answer is said, and has none.
func (r *runCall) askFleet(ctx context.Context, store *lifecycle.Store) (*fleet.Found, fleet.Relation, error) {
	asking, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	all, err := r.fleet.List(asking, r.module)
	switch {
	case ctx.Err() != nil:
		return nil, fleet.Absent, context.Cause(ctx)
	case err != nil:
		return nil, fleet.Absent, r.unanswered(err)
	}
	x, rel, err := r.further(asking, store, all)
	if fleet.Foreign(err) && ctx.Err() == nil {
		return nil, fleet.Absent, r.unanswered(err)
	}
	if x == nil && err == nil {
		err = r.newerPlan(ctx, store)
	}
	return x, rel, err
}

// unanswered says that the fleet cannot be asked.
func (r *runCall) unanswered(err error) error {
	_, err = fmt.Fprintf(r.stderr, "warning: the fleet %s cannot be asked: %s\n  going on with what is here; it is sent when the fleet answers\n", r.fleet.Where(), fleet.Explain(err))
	return err
}

// take brings a session from the fleet, with the project's files, and has the run resume it unless it
// is complete.
func (r *runCall) take(ctx context.Context, store *lifecycle.Store, x *fleet.Found) error {
	if store == nil { // it could not be made
		return nil
	}
	id, err := r.pull(ctx, r.fleet, store, x)
	if err != nil {
		return fleetError(r.fleet, r.doubts(err))
	}
	if x.Status == session.StatusComplete {
		fmt.Fprintf(r.stderr, "it was completed on %s; the files here are as they were: commit there and pull, or lopen session pull %s\n", plain.Line(x.Host), x.ID)
		return nil
	}
	r.resume = id.String()
	made, err := r.adopt(ctx, store, id)
	if err != nil {
		return err
	}
	if _, err = r.bringFiles(ctx, store, id, made); err == nil && made {
		r.commitBrought(ctx, store, id, x.Host)
	}
	return err
}

// further returns the session of the fleet that the run is to consider: the one that it would resume
// here, if that was continued elsewhere, else the newest one that is not finished. It is nil if there is
// none. A session whose row cannot be true is none; the one here then goes on with its own records.
func (r *runCall) further(ctx context.Context, store *lifecycle.Store, all []fleet.Found) (*fleet.Found, fleet.Relation, error) {
	if store != nil {
		own, found, err := store.Unfinished(r.module)
		if err != nil {
			return nil, fleet.Absent, err
		}
		i := slices.IndexFunc(all, func(x fleet.Found) bool { return x.ID == own.ID && x.Incarnation == own.Incarnation })
		if found && i >= 0 {
			if err := r.fleet.Believe(ctx, &all[i]); err != nil {
				return nil, fleet.Absent, r.doubts(err)
			}
			rel, _, err := r.fleet.Relate(ctx, store, &all[i])
			if err != nil || rel == fleet.Behind || rel == fleet.Diverged {
				return &all[i], rel, err
			}
		}
	}
	x, err := r.newest(ctx, all)
	if x == nil || err != nil {
		return nil, fleet.Absent, err
	}
	rel := fleet.Absent
	if store != nil {
		rel, _, err = r.fleet.Relate(ctx, store, x)
	}
	return x, rel, err
}

// maxDoubts bounds how many sessions a run looks at whose rows cannot be true.
const maxDoubts = 3

// newest returns the newest session that is not finished, or nil.
func (r *runCall) newest(ctx context.Context, all []fleet.Found) (*fleet.Found, error) {
	doubts := 0
	for i := range all {
		x := &all[i]
		if x.Status == session.StatusComplete || x.Origin != session.OriginRun || x.Records == 0 {
			continue
		}
		err := r.fleet.Believe(ctx, x)
		if err == nil {
			return x, nil
		}
		if err := r.doubts(err); err != nil {
			return nil, err
		}
		if doubts++; doubts == maxDoubts {
			break
		}
	}
	return nil, nil
}

// doubts says that a session of the fleet cannot be used, and returns any other error.
func (r *runCall) doubts(err error) error {
	if doubt := (*fleet.SessionError)(nil); errors.As(err, &doubt) {
		_, err = fmt.Fprintf(r.stderr, "warning: %v; the run goes on with what is here\n", doubt)
	}
	return err
}

// refuseParted refuses to resume, where nobody is asked, what was done here of a session that another
// machine continued: whether that counts is for a person to decide.
func (r *runCall) refuseParted(store *lifecycle.Store, values *settings.Values) error {
	if store == nil || r.interactive() && !values.Unattended {
		return nil
	}
	own, found, err := store.Unfinished(r.module)
	if err != nil || !found {
		return err
	}
	if of := r.fleet.Parted(store, own.ID); of != "" {
		return &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("session %s has what was done here of %s when another machine took that, and a person decides whether it counts\n  go on with it: lopen run %s --resume %s\n  or without it: lopen session delete %s", own.ID, of, r.module, own.ID, own.ID)}
	}
	return nil
}

// newerPlan takes the plan of the fleet where the one here is an older one of it, or missing.
func (r *runCall) newerPlan(ctx context.Context, store *lifecycle.Store) error {
	if store == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	changed, err := r.takePlan(ctx, r.fleet, store, r.module)
	switch conflict := (*fleet.ConflictError)(nil); {
	case errors.As(err, &conflict):
		fmt.Fprintf(r.stderr, "warning: %v, and here as well; the run goes by the one here: lopen plan push %s says how they differ\n", err, r.module)
	case err != nil:
		fmt.Fprintf(r.stderr, "warning: the plan of the fleet is not taken: %s\n", fleet.Explain(err))
	case changed:
		fmt.Fprintf(r.stderr, "plan of %s: as the fleet has it\n", r.module)
	}
	return nil
}

// takePlan makes the plan of the fleet the one of a module here. If the fleet has none, or one that no run can work
// with, which is said, the plan here stays.
func (a *app) takePlan(ctx context.Context, f *fleet.Fleet, store *lifecycle.Store, module string) (changed bool, err error) {
	changed, err = f.PullPlan(ctx, store, module)
	switch unusable := (*fleet.PlanError)(nil); {
	case errors.As(err, &unusable):
		fmt.Fprintf(a.stderr, "warning: the plan of the fleet is not taken: %v\n", unusable)
		return false, nil
	case errors.Is(err, fleet.ErrNotFound):
		return false, nil
	}
	return changed, err
}

// wantsElsewhere asks whether to continue a session of another machine here; auto_resume answers
// where nobody can be asked. That both did something a person has to decide.
func (r *runCall) wantsElsewhere(ctx context.Context, x *fleet.Found, rel fleet.Relation, values *settings.Values) (bool, error) {
	asks := r.interactive() && !values.Unattended
	if rel == fleet.Diverged && !asks {
		return false, &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("session %s was continued on %s, and here as well\n  go on with theirs: lopen session pull %s, which keeps what was done here as a session of its own\n  go on with what is here: lopen run %s --no-resume, or lopen session fork %s first", x.ID, plain.Line(x.Host), x.ID, r.module, x.ID)}
	}
	if !asks {
		return values.AutoResume, nil
	}
	more := ""
	if rel == fleet.Diverged {
		more = " What was done here since is kept as a session of its own."
	}
	return r.agreedOrEnter(ctx, fmt.Sprintf("%s ran on %s until %s (%d/%d).%s Continue here?", x.ID, plain.Line(x.Host), ago(x.Ago), x.Progress.Done, x.Progress.Total, more))
}

// adopt makes a session that came from elsewhere one of this machine: it works in the project's
// folder or, with --worktree, in a work tree of its own, which is made where there is none.
func (r *runCall) adopt(ctx context.Context, store *lifecycle.Store, id session.ID) (made bool, err error) {
	st, _, err := store.Read(id)
	if err != nil {
		return false, err
	}
	was := st.Header().Worktree
	if was == nil && !r.worktree {
		return false, nil
	}
	home := store.Project().Name()
	var now *session.Worktree
	if r.worktree {
		if now, made, err = r.treeHere(ctx, home, id, was); err != nil {
			return false, err
		}
	}
	sess, err := r.openSession(store, id)
	if err != nil {
		return false, err
	}
	err = sess.Change(session.TriggerSwitched, func(e *session.Edit) error {
		e.Header().Worktree = now
		if made || now == nil { // the commits are on a branch of the other machine
			e.Header().Commits = nil
		}
		return nil
	})
	return made, errors.Join(err, closeStore(sess))
}

// commitBrought commits what a session had done elsewhere, in the work tree that was made for it here:
// its own commits are on the other machine. What goes wrong is said: the run goes on with the files as
// they are, and leaves them uncommitted.
func (r *runCall) commitBrought(ctx context.Context, store *lifecycle.Store, id session.ID, host string) {
	err := func() error {
		st, _, err := store.Read(id)
		if err != nil {
			return err
		}
		own, err := r.openRepository(ctx, st.Header().Worktree.Folder(store.Project().Name()))
		if err != nil {
			return err
		}
		paths, err := own.Differing(ctx)
		if err != nil || len(paths) == 0 {
			return err
		}
		head, err := own.Head(ctx)
		if err != nil {
			return err
		}
		done := st.Progress().Done
		_, err = own.CommitFiles(ctx, repo.Commit{Head: head, Paths: paths, Session: id.String(), Task: "brought",
			Message: fmt.Sprintf("%s: %s done on %s", r.module, plain.Some(done, "task"), plain.Line(host))})
		return err
	}()
	if err != nil {
		fmt.Fprintf(r.stderr, "warning: what the session had done is not committed: %v\n", err)
	}
}

// treeHere makes the work tree of a session that had one elsewhere, at the commit at which that one
// began, or at HEAD where this repository does not have it.
func (r *runCall) treeHere(ctx context.Context, home string, id session.ID, was *session.Worktree) (*session.Worktree, bool, error) {
	if err := r.admitWorktree(ctx, home, true); err != nil {
		return nil, false, err
	}
	own, base, err := r.beside(ctx, home)
	if err != nil {
		return nil, false, err
	}
	if was != nil && was.Base != "" {
		if here, err := own.Commit(ctx, was.Base); err == nil && here != "" {
			base = here
		}
	}
	w := session.WorktreeAt(resolved(home), filepath.Join(worktreesOf(own.Top), id.String(), filepath.FromSlash(own.Prefix)))
	w.Branch, w.Base = loop.BranchOf(id), base
	folder := w.Folder(home)
	there := worktreeOf(home, folder) == nil
	if !there {
		err = r.makeTree(ctx, home, folder, &w)
	}
	return &w, !there, err
}

// shipped has the run's session sent to the fleet, and returns what ends that: it gets how the run
// ended, and returns it, or that another machine continued the session.
func (r *runCall) shipped(ctx context.Context, store *lifecycle.Store, sess *lifecycle.Session, cfg *loop.Config, values *settings.Values) (end func(error) error) {
	none := func(err error) error { return err }
	if r.fleet == nil {
		return none
	}
	s, err := r.fleet.Ship(store, sess)
	if err != nil {
		fmt.Fprintf(r.stderr, "warning: the session is not sent to the fleet: %v\n", err)
		return none
	}
	cfg.Session = s
	if values.Replicate == "task" {
		cfg.Replicate = func(ctx context.Context) error {
			if values.ReplicateTimeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, values.ReplicateTimeout)
				defer cancel()
			}
			if err := s.Replicated(ctx); !errors.Is(err, fleet.ErrLeft) { // then the disk is enough
				return err
			}
			return nil
		}
	}
	return func(err error) error { return r.endShipping(context.WithoutCancel(ctx), store, s, err) }
}

// endShipping sends what is left, and says what did not arrive.
func (r *runCall) endShipping(ctx context.Context, store *lifecycle.Store, s *fleet.Session, ended error) error {
	if err := closeStore(s); err != nil {
		r.logger.Debug().Err(err).Msg("the session's end says it as well")
	}
	acked, here := s.Lag()
	err := s.Err()
	var fenced *fleet.FencedError
	switch {
	case errors.As(err, &fenced):
		return r.fenced(ctx, store, fenced)
	case errors.Is(err, fleet.ErrLeft):
		fmt.Fprintf(r.stderr, "the fleet was left while session %s ran: %s were sent before\n", s.ID(), plain.Some(int(acked), "record"))
	case acked < here:
		why := "the fleet was too slow"
		if err != nil {
			why = fleet.Explain(err)
		}
		fmt.Fprintf(r.stderr, "not in the fleet yet: %s of session %s: %s\n  they stay in the log; the next run sends them, or lopen session push %s\n", plain.Some(int(here-acked), "record"), s.ID(), why, s.ID())
	}
	return ended
}

// fenced keeps what was done here of a session that another machine continued, and says how to go on.
func (r *runCall) fenced(ctx context.Context, store *lifecycle.Store, fenced *fleet.FencedError) error {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	fork, err := r.fleet.Part(ctx, store, fenced.ID)
	text := fmt.Sprintf("paused: %v; it is not continued here\n  go on with theirs: lopen session pull %s", fenced, fenced.ID)
	switch {
	case err != nil:
		text += fmt.Sprintf("\n  what was done here stays in session %s until then: %s", fenced.ID, fleet.Explain(err))
	case fork != (session.ID{}):
		text += fmt.Sprintf("\n  what was done here is session %s: lopen session show %s", fork, fork)
	}
	return &loop.Exit{Code: loop.ExitStorage, Reason: text}
}
