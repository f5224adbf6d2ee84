package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
)

// settle takes what was decided about a module's tasks into its session, where the boxes cannot
// say it or nobody could tell who changed them. While a run has the module, the run takes it,
// and settle says so. edit is the command that was carried out, or nil.
func (a *app) settle(ctx context.Context, store *lifecycle.Store, module string, edit *planEdit) error {
	for last := uint64(0); ; {
		noted, err := store.Decisions(module)
		if err == nil && len(noted) == 0 && last == 0 { // the plan says it all
			a.sayTaken(store.ModuleFree(module), edit)
		}
		if err != nil || len(noted) == 0 || noted[len(noted)-1].Seq == last {
			return err
		}
		last = noted[len(noted)-1].Seq
		lock, err := store.LockModule(module)
		if errors.Is(err, lifecycle.ErrBusy) {
			a.sayTaken(err, edit)
			return nil
		}
		if err != nil {
			return err
		}
		if err := errors.Join(a.settleLocked(ctx, store, module), lock.Unlock()); err != nil {
			return fmt.Errorf("it is noted, and the next run takes it: %w", err)
		}
		// Another command that noted something meanwhile found the module locked, and left it to
		// this one.
	}
}

// heldByPlan reports whether a command that edits a plan holds a lock.
func heldByPlan(err error) bool {
	var busy *lifecycle.BusyError
	return errors.As(err, &busy) && strings.HasPrefix(busy.Owner.Command, "lopen plan ")
}

// sayTaken says who takes an edit of the plan, if err says that somebody has the module.
func (a *app) sayTaken(err error, edit *planEdit) {
	var busy *lifecycle.BusyError
	switch {
	case !errors.As(err, &busy) || edit == nil:
		return
	case heldByPlan(err) || edit.st == nil:
		fmt.Fprintf(a.stderr, "taken by %s\n", busy.Owner)
		return
	}
	fmt.Fprintf(a.stderr, "taken by the run in progress (session %s) before its next task\n", edit.st.ID())
	active := edit.st.ActiveTask()
	if edit.wants[active] == session.TaskPending {
		fmt.Fprintf(a.stderr, "%s is being worked on: its attempt decides; to have it run once more, untick it when that is over\n", active)
	} else if active != "" && edit.task.ID != "" && (isUnder(edit.st, active, edit.task.ID) || isUnder(edit.st, edit.task.ID, active)) {
		fmt.Fprintf(a.stderr, "%s is being worked on: the attempt goes on, and this counts after it\n", active)
	}
}

// isUnder reports whether a task is another one or is beneath it.
func isUnder(st *session.State, id, other string) bool {
	for id != "" && id != other {
		t, _ := st.Task(id)
		id = t.Parent
	}
	return id == other
}

// settleLocked is settle while the module is locked. It reads anew what is noted: a run may have
// taken it meanwhile, and what came after that would be overruled.
func (a *app) settleLocked(ctx context.Context, store *lifecycle.Store, module string) error {
	st, err := moduleState(store, module)
	if err != nil {
		return err
	}
	p, err := store.Plan(module)
	if err != nil {
		return err
	}
	noted, err := store.Decisions(module)
	if err != nil {
		return err
	}
	decided := tasks.Newest(noted)
	if err := carryOut(store, module, p, st, decided); err != nil {
		return err
	}
	var unknown []string // to the session: only the run can take these
	if st != nil {
		if unknown, err = a.decide(ctx, store, st, p, decided); err != nil {
			return err
		}
		for t := range p.All() {
			if _, ok := decided[t.ID]; ok {
				if _, known := st.Task(t.ID); !known {
					unknown = append(unknown, t.ID)
				}
			}
		}
	}
	return store.ForgetDecisions(module, noted, unknown)
}

// carryOut writes into the plan what was decided, where a crash kept the command from it.
func carryOut(store *lifecycle.Store, module string, p *plan.Plan, st *session.State, decided tasks.Decided) error {
	boxes, marks := map[string]bool{}, map[string]plan.Mark{}
	for t := range p.All() {
		d, ok := decided[t.ID]
		if !ok {
			continue
		}
		if st != nil {
			if is, known := st.Task(t.ID); known && !d.Apply(&is) {
				continue // it was taken; what the plan says was changed since
			}
		}
		if ticked := d.State == session.TaskComplete; t.Checked != ticked {
			boxes[t.ID] = ticked
		}
		skipped := d.State == session.TaskSkipped
		if len(t.Children) == 0 && skipped != (t.Mark.State == plan.MarkSkipped) {
			if marks[t.ID] = (plan.Mark{}); skipped {
				marks[t.ID] = plan.Mark{State: plan.MarkSkipped}
			}
		}
	}
	if len(boxes)+len(marks) == 0 {
		return nil
	}
	_, err := store.EditPlan(module, p, boxesAndMarks(boxes, marks))
	return err
}

// boxesAndMarks sets boxes and marks in one edit.
func boxesAndMarks(boxes map[string]bool, marks map[string]plan.Mark) plan.Change {
	return func(base, now *plan.Plan) (*plan.Plan, error) {
		next, err := plan.Boxes(boxes)(base, now)
		if err != nil || len(marks) == 0 {
			return next, err
		}
		return plan.Marks(marks)(next, next)
	}
}

// decide puts a person's decisions into the session where the plan's boxes cannot express them:
// the box of a task that was skipped or failed is open already, that of one that a fork is to
// do again is ticked, and after a kill the next run does not know whether a person or the
// command edited the plan. It returns when that is durable. The caller holds the module's
// lock. A session that was complete and has an open task is paused afterwards, so that the next
// run resumes it.
//
// It returns the tasks that are left to the next run: those in progress while their command
// outlives its run. It may write into the plan, and the next run must know that.
func (a *app) decide(ctx context.Context, store *lifecycle.Store, st *session.State, p *plan.Plan, all tasks.Decided) (left []string, err error) {
	orphan, err := store.Orphan(st.ID())
	if err != nil {
		return nil, err
	}
	var ids []string
	for t := range p.All() {
		d, ok := all[t.ID]
		is, known := st.Task(t.ID)
		switch {
		case !ok || !known || !needsState(st, is, d.State):
		case orphan != nil && is.State == session.TaskInProgress:
			fmt.Fprintf(a.stderr, "%s: its command outlived the run and still works; the next run ends it, and this counts then\n", t.ID)
			left = append(left, t.ID)
		default:
			ids = append(ids, t.ID)
		}
	}
	return left, a.decideIn(ctx, store, st, p, ids, all)
}

// decideIn applies decisions about some tasks to the session of a State, durably. p is the plan
// as it is now.
func (a *app) decideIn(ctx context.Context, store *lifecycle.Store, st *session.State, p *plan.Plan, ids []string, all tasks.Decided) error {
	if len(ids) == 0 {
		return nil
	}
	if slices.ContainsFunc(ids, func(id string) bool { return isInProgress(st, id) }) {
		if err := a.setBack(store, st, p, all); err != nil {
			return err
		}
	}
	sess, err := a.openSession(store, st.ID())
	if err != nil {
		return err
	}
	err = sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error { applyAll(e, ids, all); return nil })
	if err == nil {
		err = sess.Flush(ctx)
	}
	if err = errors.Join(err, sess.Close(ctx)); err != nil {
		return err
	}
	for _, id := range ids {
		was, _ := st.Task(id)
		is, _ := sess.State().Task(id)
		if len(is.Children) == 0 {
			fmt.Fprintf(a.stdout, "[%s] %s: %s in session %s, %s now\n", tick(is.State == session.TaskComplete), id, was.State, st.ID(), is.State)
		}
	}
	return nil
}

func isInProgress(st *session.State, id string) bool {
	t, _ := st.Task(id)
	return t.State == session.TaskInProgress
}

// setBack takes back what changed in the plan's boxes and marks while a command worked whose run
// was killed, but what was decided. It comes before the session loses its task in progress: the
// next run would take all of it as a person's.
func (a *app) setBack(store *lifecycle.Store, st *session.State, p *plan.Plan, decided tasks.Decided) error {
	if st.ActiveTask() == "" {
		return nil
	}
	res, err := decided.Reconcile(st, p, tasks.Cut)
	if err != nil {
		return err
	}
	boxes, marks := map[string]bool{}, map[string]plan.Mark{}
	for _, n := range res.Notes {
		t, _ := p.Task(n.Task)
		if n.Kind != tasks.TakenBack || len(t.Children) > 0 { // a parent's box decides nothing
			continue
		}
		fmt.Fprintf(a.stderr, "plan: %s\n", n)
		if ticked, ok := res.Boxes[t.ID]; ok {
			boxes[t.ID] = ticked
		}
		if skipped, ok := res.Marks[t.ID]; ok && !skipped {
			marks[t.ID] = plan.Mark{}
		}
	}
	if len(boxes)+len(marks) == 0 {
		return nil
	}
	_, err = store.EditPlan(st.ID().Module, p, boxesAndMarks(boxes, marks))
	return err
}

// applyAll applies decisions about tasks to the State of a session that no run has.
func applyAll(e *session.Edit, ids []string, all tasks.Decided) {
	again := false
	for _, id := range ids {
		d := all[id]
		tasks.Set(e, id, func(is *session.Task) {
			if d.Apply(is); d.State == session.TaskPending && len(is.Children) == 0 { // no command runs
				is.State, is.Attempts = session.TaskPending, 0
			}
		})
		again = again || d.State == session.TaskPending
	}
	h := e.Header()
	if t, _ := e.Task(h.ActiveTask); t.State != session.TaskInProgress {
		h.ActiveTask = ""
	}
	if again && h.Status == session.StatusComplete {
		h.Status, h.ExitReason, h.Phase, h.CompletedAt = session.StatusPaused, session.ExitPaused, session.PhaseBuilding, time.Time{}
	}
}

// needsState reports whether the next run would not take a decision about a task from the plan.
func needsState(st *session.State, is session.Task, to session.TaskState) bool {
	cut := st.ActiveTask() != ""
	if len(is.Children) > 0 {
		return cut
	}
	passed := slices.Contains([]session.TaskState{session.TaskSkipped, session.TaskFailed}, is.State)
	switch {
	case is.State == to:
		return false
	case to == session.TaskComplete:
		return cut || passed || is.Box == session.BoxTicked
	case to == session.TaskPending:
		return cut && (is.State == session.TaskComplete || is.State == session.TaskInProgress) || passed
	}
	return true
}
