package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/report"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/turns"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/writer/plain"
)

// overview is `lopen` alone: in a project with sessions, what runs, what is
// next, what failed, and what to type; elsewhere the help.
func (a *app) overview(cmd *cobra.Command) error {
	store, err := a.open()
	if errors.Is(err, lifecycle.ErrNoStore) {
		return cmd.Help()
	}
	if err != nil {
		return err
	}
	defer release(store)
	infos, err := everySession(store)
	if err != nil {
		return err
	}
	if len(infos) == 0 {
		fmt.Fprintf(a.stdout, "no session yet in %s\ntype:  lopen run MODULE -- CMD, or start claude or codex with its plugin\n", store.Path())
		return nil
	}
	readable := slices.IndexFunc(infos, func(i lifecycle.Info) bool { return i.Err == nil && i.Origin != session.OriginImport })
	if readable < 0 { // as the newest session, an imported one comes after all others
		readable = slices.IndexFunc(infos, func(i lifecycle.Info) bool { return i.Err == nil })
	}
	if readable < 0 {
		a.orphans(store, infos)
		a.unreadable(infos[1:])
		return fmt.Errorf("session %s: %w", infos[0].ID, infos[0].Err)
	}
	info := &infos[readable]
	st, _, err := a.readState(store, info.ID)
	if err != nil {
		return err
	}
	uncovered := 0
	if p, err := store.Plan(info.Module); err == nil {
		uncovered = a.uncovered(store, info.Module, p)
		if res, err := tasks.Reconcile(st, p, tasks.Between); err == nil {
			st = res.State
		}
	}
	a.fiveLines(store, info, st, uncovered)
	if where := a.sendsTo(store.Project().Name()); where != "" {
		fmt.Fprintf(a.stdout, "fleet    %s gets the sessions, plans and files of runs\n", where)
	}
	a.orphans(store, infos)
	a.rewinds(store)
	a.unreadable(infos)
	return nil
}

// orphans names the commands of runs that were killed which still work.
func (a *app) orphans(store *lifecycle.Store, infos []lifecycle.Info) {
	for _, i := range infos {
		if i.Status == session.StatusComplete {
			continue
		}
		if o, err := store.Abandoned(i.ID); err == nil && o != nil {
			fmt.Fprintf(a.stdout, "orphan   of %s: %s\n         %s\n", i.ID, plain.Line(o.String()), repair.HowToEnd(o, i.ID))
		}
	}
}

// rewinds names the rewinds that were cut off, and what finishes them.
func (a *app) rewinds(store *lifecycle.Store) {
	all, err := store.UnfinishedRewinds()
	if err != nil {
		fmt.Fprintf(a.stdout, "rewinds  which were cut off is not known: %s\n", plain.Line(err.Error()))
	}
	for _, id := range slices.SortedFunc(maps.Keys(all), session.ID.Compare) {
		fmt.Fprintf(a.stdout, "rewind   of %s: %s\n         %s\n", id, plain.Line(rewind.Unfinished(all[id])), rewind.HowToFinish(id, all[id]))
	}
}

// unreadable names the sessions that cannot be opened, and what to type.
func (a *app) unreadable(infos []lifecycle.Info) {
	for _, i := range infos {
		switch {
		case errors.Is(i.Err, lifecycle.ErrFutureVersion):
			fmt.Fprintf(a.stdout, "newer    %s: update lopen, which this session is newer than\n", i.ID)
		case i.Err != nil:
			fmt.Fprintf(a.stdout, "damaged  %s: lopen session recover %s\n", i.ID, i.ID)
		}
	}
}

// fiveLines says how a session stands. uncovered criteria are named as soon as nothing else is
// next.
func (a *app) fiveLines(store *lifecycle.Store, info *lifecycle.Info, st *session.State, uncovered int) {
	owner, _ := store.Holder(info.ID)
	if owner != nil && ofHook(*owner) && st.ActiveTask() == "" {
		owner = nil // the turn has ended
	}
	what := string(info.Status)
	if owner != nil {
		what = fmt.Sprintf("running (pid %d)", owner.PID)
		if t, ok := st.Task(st.ActiveTask()); ok {
			what = fmt.Sprintf("running %q (pid %d)", t.Name, owner.PID)
		}
	}
	p := st.Progress()
	if owner != nil || info.Status != session.StatusInterrupted {
		what += ", active"
	}
	fmt.Fprintf(a.stdout, "session  %s: %s %s\n", info.ID, what, ago(time.Since(info.UpdatedAt)))
	done := fmt.Sprintf("%d/%d done", p.Done, p.Total)
	if p.Skipped > 0 {
		done += fmt.Sprintf(", %d %s", p.Skipped, report.Skipped(st.Header().Origin))
	}
	fmt.Fprintf(a.stdout, "tasks    %s\n", done)
	task, command := next(st, owner != nil), nextCommand(info, st, owner != nil)
	if h := st.Header(); h.Origin != session.OriginRun {
		task, command = "what you ask "+plain.Line(h.AgentName), ofAgent(store, info, &h)
	}
	if task == nothingLeft && uncovered > 0 {
		task, command = fmt.Sprintf("nothing: criteria without a task: %d", uncovered), "lopen plan update "+info.Module
	}
	fmt.Fprintf(a.stdout, "next     %s\n", task)
	fmt.Fprintf(a.stdout, "failed   %s\n", firstFailure(st))
	fmt.Fprintf(a.stdout, "type     %s\n", command)
	if owner == nil && p.Failed > 0 {
		fmt.Fprintf(a.stdout, "report   lopen report %s\n", info.ID)
	}
}

// firstFailure names the first task that failed and why, and counts the others.
func firstFailure(st *session.State) string {
	for t := range st.All() {
		if t.State != session.TaskFailed || len(t.Children) > 0 {
			continue
		}
		failed := plain.Line(fmt.Sprintf("%s (%s)", t.Name, t.LastError))
		if n := st.Progress().Failed; n > 1 {
			failed += fmt.Sprintf(" and %d more", n-1)
		}
		return failed
	}
	return "nothing"
}

// nextCommand is what to type next about a session.
func nextCommand(info *lifecycle.Info, st *session.State, running bool) string {
	p := st.Progress()
	switch {
	case running:
		return "lopen session pause " + info.Module
	case info.Status == session.StatusComplete && p.Done+p.Skipped == p.Total:
		return "lopen session show " + info.ID.String()
	case info.Status == session.StatusComplete, len(st.Header().Settings.Command) == 0:
		return "lopen run " + info.Module + " -- CMD" // a new session has no command yet
	case st.Header().RequiresValidation:
		return "lopen session verify " + info.ID.String() + " --accept"
	}
	return "lopen run " + info.Module
}

// ofAgent is what to type about an agent's own session: how to take the last prompt back, or where that
// has no checkpoint, what it changed.
func ofAgent(store *lifecycle.Store, info *lifecycle.Info, h *session.Header) string {
	if h.Origin != session.OriginHook || info.Status == session.StatusActive || h.TurnCount == 0 {
		return "lopen session log " + info.ID.String()
	}
	latest, err := store.Latest("")
	others := err != nil || latest != info.ID // the command has to name the session
	switch kept := keptBefore(store, info.ID, h); {
	case kept && others:
		return fmt.Sprintf("lopen checkpoint rewind prompt:%d --session %s --dry-run", h.TurnCount, info.ID)
	case kept:
		return fmt.Sprintf("lopen checkpoint rewind prompt:%d --dry-run", h.TurnCount)
	case others:
		return fmt.Sprintf("lopen session log %s --task %s", info.ID, plain.Quote(turns.Task(h.TurnCount)))
	}
	return "lopen session log --task " + plain.Quote(turns.Task(h.TurnCount))
}

// keptBefore reports whether the files are kept as they were before the last prompt.
func keptBefore(store *lifecycle.Store, id session.ID, h *session.Header) bool {
	cps, err := store.Checkpoints(h.Worktree)
	if err != nil {
		return false
	}
	defer cps.Close()
	all, _, _ := cps.List() // one that cannot be read is no help
	return slices.ContainsFunc(all, func(e *checkpoint.Entry) bool {
		return e.Session == id.String() && e.Task == turns.Task(h.TurnCount) && e.Reason == checkpoint.BeforeTask && e.Removed == ""
	})
}

const nothingLeft = "nothing is left"

// next is the task that a run begins next, after the one in progress while it runs.
func next(st *session.State, running bool) string {
	ready, waiting := tasks.Order(st)
	n := len(ready)
	if running {
		ready = slices.DeleteFunc(ready, func(id string) bool { t, _ := st.Task(id); return t.State == session.TaskInProgress })
	}
	switch {
	case len(ready) > 0:
		t, _ := st.Task(ready[0])
		if t.State == session.TaskInProgress {
			return plain.Line(t.Name) + " (was in progress, runs again)"
		}
		return plain.Line(t.Name)
	case len(waiting) > 0:
		return fmt.Sprintf("nothing: %d tasks are blocked", len(waiting))
	case n > 0:
		return "nothing after it"
	}
	return nothingLeft
}
