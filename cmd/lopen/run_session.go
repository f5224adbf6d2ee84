package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/writer/plain"
)

// choose opens the session that the run is to resume, or a new one. A nil
// session without an error means that there is nothing to do. ready says whether a new
// session could be run; it is asked before the old one is paused and before any is made.
func (r *runCall) choose(ctx context.Context, store *lifecycle.Store, ui *pane, ready func() error) (sess *lifecycle.Session, fresh bool, err error) {
	if r.resume != "" {
		id, err := store.Resolve(r.resume)
		if err != nil {
			return nil, false, err
		}
		if id.Module != r.module {
			return nil, false, usagef("session %s belongs to module %s, not %s", id, id.Module, r.module)
		}
		sess, err := r.openSession(store, id)
		return sess, false, err
	}
	met, err := r.reportOthers(store)
	if err != nil {
		return nil, false, err
	}
	old, found, err := store.Unfinished(r.module)
	if err != nil {
		return nil, false, err
	}
	for _, info := range met {
		if info.ID != old.ID {
			r.warnSession(info.Err)
		}
	}
	if found {
		if sess, err := r.resumeSession(ctx, store, ui, old, ready); sess != nil || err != nil {
			return sess, false, err
		}
	} else {
		r.sayReplaced(store)
		if over, err := r.planDone(store); over || err != nil {
			return nil, false, err
		}
	}
	if err := ready(); err != nil {
		return nil, false, err
	}
	sess, err = r.createSession(ctx, store)
	return sess, true, err
}

// resumeSession opens the session that the module's last run left, or one that is recovered from
// it. A nil session without an error means that a new one is wanted.
func (r *runCall) resumeSession(ctx context.Context, store *lifecycle.Store, ui *pane, old lifecycle.Info, ready func() error) (*lifecycle.Session, error) {
	resume := !r.noResume
	var bad *lifecycle.DamagedError
	if errors.As(old.Err, &bad) && !bad.Moved() && !errors.Is(bad, lifecycle.ErrEdited) {
		old.Err = openError(store, old.ID)
	}
	if old.Err == nil {
		var err error
		if err = r.sameTree(store, old); err != nil {
			return nil, err
		}
		if resume, err = r.wantsResume(ctx, old); err != nil {
			return nil, err
		}
		if !resume {
			if err := r.setBackCut(store, old, ready); err != nil {
				return nil, err
			}
		}
		sess, err := r.openSession(store, old.ID)
		switch {
		case err == nil && resume:
			return sess, nil
		case err == nil:
			return nil, errors.Join(leaveCut(sess), sess.Pause(ctx, session.TriggerSwitched, session.ExitPaused), sess.Close(ctx))
		}
		old.Err = err
	}
	if !resume && (errors.Is(old.Err, lifecycle.ErrCorrupt) || errors.Is(old.Err, lifecycle.ErrFutureVersion)) {
		r.warnSession(old.Err)
		return nil, nil
	}
	return r.offerRecovery(ctx, store, ui, old)
}

// setBackCut is setBack before a new session, which ready says can be run, takes its tasks from
// the plan that a kill left.
func (r *runCall) setBackCut(store *lifecycle.Store, old lifecycle.Info, ready func() error) error {
	if err := ready(); err != nil {
		return err
	}
	if old.Status != session.StatusInterrupted {
		return nil
	}
	st, _, err := store.Read(old.ID)
	if err != nil {
		return nil //nolint:nilerr // it is not resumed
	}
	p, err := store.Plan(r.module)
	if err != nil {
		return nil //nolint:nilerr // the run reports what is wrong with the plan
	}
	noted, err := store.Decisions(r.module)
	if err != nil {
		return err
	}
	return r.setBack(store, st, p, tasks.Newest(noted))
}

// leaveCut ends the attempt that a kill interrupted in a session that is left for a new one. A
// later run that resumes it must take what the new one ticked, and not set it back.
func leaveCut(sess *lifecycle.Session) error {
	if sess.State().ActiveTask() == "" {
		return nil
	}
	return sess.Change(session.TriggerSwitched, func(e *session.Edit) error {
		e.Header().ActiveTask = ""
		for t := range sess.State().All() {
			if len(t.Children) == 0 && t.State == session.TaskInProgress {
				tasks.Set(e, t.ID, func(t *session.Task) { t.State = session.TaskPending })
			}
		}
		return nil
	})
}

// offerRecovery asks what to do instead of resuming a session that cannot be opened, and does
// it; where nobody can be asked, the error says what there is to type.
func (r *runCall) offerRecovery(ctx context.Context, store *lifecycle.Store, ui *pane, old lifecycle.Info) (*lifecycle.Session, error) {
	var bad *lifecycle.DamagedError
	switch {
	case errors.Is(old.Err, lifecycle.ErrFutureVersion):
		return nil, fmt.Errorf("session %s: %w\n  update lopen, or start a new session: lopen run %s --no-resume -- CMD", old.ID, old.Err, r.module)
	case !errors.As(old.Err, &bad) || errors.Is(old.Err, lifecycle.ErrEdited):
		return nil, old.Err
	}
	v, err := r.settings(r.flags)
	if err == nil && v.Unattended && bad.Moved() { // its files are damaged, and nothing else is wrong
		r.damaged = bad
		ui.Warn("%v", bad)
		ui.Say("a new session begins from the plan: what is ticked stays ticked")
		return nil, nil
	}
	if err != nil || !r.interactive() || v.Unattended {
		return nil, errors.Join(err, old.Err)
	}
	key, err := ui.Choose(fmt.Sprintf("session %s is damaged: %v", bad.ID, bad), []loop.Choice{
		{Key: 'r', Text: "recover: make a new session of what can be read, and go on with that"},
		{Key: 'f', Text: "start fresh: a new session, by the boxes of the plan"},
		{Key: 's', Text: "stop"},
	})
	switch {
	case err != nil:
		return nil, err
	case key == 's':
		return nil, old.Err
	case key == 'f':
		return nil, nil
	}
	rec, err := store.Recover(ctx, bad.ID.String(), "", false)
	if err != nil {
		return nil, err
	}
	r.showRecovery(rec, true)
	return store.Open(rec.ID)
}

// lookAt is how a run ends that ended with err: one that began afresh without a person, because its
// session is damaged, needs one, and names the session whatever else it ended with.
func (r *runCall) lookAt(err error) error {
	switch {
	case r.damaged == nil:
		return err
	case err != nil:
		return fmt.Errorf("%w\n%s", err, r.leftOut())
	}
	return &loop.Exit{Code: loop.ExitUser, Reason: r.leftOut()}
}

// leftOut says which damaged session a run left out, and what to do about it.
func (r *runCall) leftOut() string {
	return fmt.Sprintf("session %s is damaged and was left out: it is in %s/%s\n  make a new session of what can be read: lopen session recover %[1]s",
		r.damaged.ID, lifecycle.Dir, plain.Line(r.damaged.Where))
}

// warnSession prints what is wrong with a session that this run does not need, and what to
// type unless that was typed.
func (r *runCall) warnSession(err error) {
	fmt.Fprintf(r.stderr, "warning: %v\n", err)
	if !r.noResume {
		fmt.Fprint(r.stderr, hint(err))
	}
}

// maxOthers is how many other modules' sessions a run names, the newest ones.
const maxOthers = 3

// reportOthers names unfinished sessions of other modules, and those that cannot be read. It
// returns those of this module that cannot be opened: it opens the damaged ones, which moves
// them to quarantine, and leaves alone what a newer lopen wrote.
func (r *runCall) reportOthers(store *lifecycle.Store) (met []lifecycle.Info, err error) {
	infos, err := store.List()
	if err != nil {
		return nil, err
	}
	others := 0
	for _, info := range infos {
		switch own := info.ID.Module == r.module; {
		case own && info.Err == nil:
		case own:
			if !errors.Is(info.Err, lifecycle.ErrFutureVersion) {
				info.Err = openError(store, info.ID)
			}
			if info.Err != nil {
				met = append(met, info)
			}
		case info.Err != nil:
			r.warnSession(fmt.Errorf("session %s cannot be read and is left out: %w", info.ID, info.Err))
		case info.Status != session.StatusComplete && info.Origin == session.OriginRun && r.crew == nil:
			if others++; others <= maxOthers {
				fmt.Fprintf(r.stderr, "unfinished as well: %s (%s)\n", info.ID, progressText(info))
			}
		}
	}
	if others > maxOthers {
		fmt.Fprintf(r.stderr, "unfinished as well: %d more, see lopen session list\n", others-maxOthers)
	}
	return met, nil
}

// openError says why a session cannot be opened. One that is damaged is in corrupted/ then.
func openError(store *lifecycle.Store, id session.ID) error {
	sess, err := store.Open(id)
	if err != nil {
		return err
	}
	return closeStore(sess)
}

// progressText is a session's progress, and that it was interrupted.
func progressText(info lifecycle.Info) string {
	s := fmt.Sprintf("%d/%d tasks", info.Progress.Done, info.Progress.Total)
	if info.Status == session.StatusInterrupted {
		s = "interrupted, " + s
	}
	return s
}

// wantsResume asks whether to resume a session; auto_resume answers where nobody can be
// asked.
func (r *runCall) wantsResume(ctx context.Context, old lifecycle.Info) (bool, error) {
	if r.noResume {
		return false, nil
	}
	v, err := r.settings(r.flags)
	if err != nil {
		return false, err
	}
	if !r.interactive() || v.Unattended {
		return v.AutoResume, nil
	}
	since := "active"
	if old.Status == session.StatusInterrupted {
		since = string(old.Status)
	}
	return r.agreedOrEnter(ctx, fmt.Sprintf("Resume %s (%d/%d tasks, %s %s)?", old.ID, old.Progress.Done, old.Progress.Total, since, ago(time.Since(old.UpdatedAt))))
}

// pruneQuietly tidies up at the start of a run. What cannot be moved now is
// tried again by the next one.
func (a *app) pruneQuietly(ctx context.Context, store *lifecycle.Store, v *settings.Values) {
	gone, err := store.Prune(ctx, retention(v), false)
	if err != nil {
		fmt.Fprintf(a.stderr, "warning: prune: %v\n", err)
	}
	moved := 0
	for _, x := range gone {
		if !x.ForGood {
			moved++
		}
	}
	if moved > 0 {
		fmt.Fprintf(a.stderr, "%d completed sessions moved to the trash; lopen session restore ID brings one back for %d days\n", moved, v.TrashDays)
	}
}

// confirmRecovered asks before a run resumes a session that was recovered and that nobody
// has accepted.
func (r *runCall) confirmRecovered(ctx context.Context, st *session.State) error {
	h := st.Header()
	if !h.RequiresValidation {
		return nil
	}
	what := fmt.Sprintf("session %s was recovered", st.ID())
	if l := h.Lineage; l != nil {
		what += fmt.Sprintf(" from %s at record %d", l.From, l.Seq)
	}
	what += " and nobody has accepted it"
	if !r.interactive() {
		return &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf("%s\n  look at it: lopen session show %s\n  accept it:  lopen session verify %s --accept", what, st.ID(), st.ID())}
	}
	if yes, err := r.agreed(ctx, what+". Go on?"); err != nil || !yes {
		return cmp.Or[error](err, &loop.Exit{Code: loop.ExitUser, Reason: "nothing was run; accept it: lopen session verify " + st.ID().String() + " --accept"})
	}
	return nil
}

// planDone says so where a new session would have nothing to do.
func (r *runCall) planDone(store *lifecycle.Store) (bool, error) {
	p, err := store.Plan(r.module)
	if err != nil || r.noResume {
		return false, nil //nolint:nilerr // the run reports what is wrong with the plan
	}
	done, st := leavesDone(store, r.module, r.selected.Leaves(p))
	if !done {
		return false, nil
	}
	skipped := ""
	if st != nil {
		skipped = loop.Skipped(st, r.selected)
	}
	if err := r.printDifferences(store, p); err != nil && r.selected == (loop.Selection{}) {
		return true, err
	}
	switch n, total := p.Progress(); {
	case r.selected == loop.Selection{}:
		fmt.Fprintf(r.stderr, "nothing is left to do: %d/%d tasks of %s are done\n", n, total, lifecycle.PlanPath(r.module))
		if skipped != "" {
			fmt.Fprintf(r.stderr, "skipped: %s\n", skipped)
		}
	case skipped != "":
		return true, loop.WasSkipped(st, r.selected)
	default:
		fmt.Fprintln(r.stderr, loop.Already(r.module, r.selected))
	}
	return true, nil
}
