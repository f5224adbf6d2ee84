package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
)

func timeNow() time.Time { return time.Now() }

func quoted(argv []string) string { return trust.Quote(argv) }

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
	infos, err := store.List()
	if err != nil {
		return err
	}
	var info *lifecycle.Info
	for i := range infos {
		if infos[i].Err == nil {
			info = &infos[i]
			break
		}
	}
	if info == nil {
		fmt.Fprintf(a.stdout, "no session yet in %s\ntype:  lopen run MODULE -- CMD\n", store.Path())
		return nil
	}
	st, _, err := store.Read(info.ID)
	if note := readOnly(st, err); note != "" {
		fmt.Fprintf(a.stderr, "warning: session %s: %s\n", info.ID, note)
		err = nil
	}
	if err != nil {
		return err
	}
	if p, err := store.Plan(info.Module); err == nil {
		if res, err := tasks.Reconcile(st, p, tasks.Between); err == nil {
			st = res.State
		}
	}
	a.fiveLines(store, info, st)
	return nil
}

func (a *app) fiveLines(store *lifecycle.Store, info *lifecycle.Info, st *session.State) {
	owner, _ := store.Holder(info.ID)
	what := string(info.Status)
	switch {
	case owner != nil:
		what = fmt.Sprintf("running (pid %d)", owner.PID)
		if t, ok := st.Task(st.ActiveTask()); ok {
			what = fmt.Sprintf("running %q (pid %d)", t.Name, owner.PID)
		}
	case info.Status == session.StatusActive:
		what = "not running: its last run was killed"
	}
	p := st.Progress()
	fmt.Fprintf(a.stdout, "session  %s: %s, active %s\n", info.ID, what, ago(time.Since(info.UpdatedAt)))
	fmt.Fprintf(a.stdout, "tasks    %d/%d done\n", p.Done, p.Total)
	ready, waiting := tasks.Order(st)
	ready = slices.DeleteFunc(ready, func(id string) bool { t, _ := st.Task(id); return t.State == session.TaskInProgress })
	switch {
	case len(ready) > 0:
		t, _ := st.Task(ready[0])
		fmt.Fprintf(a.stdout, "next     %s\n", printable(t.Name))
	case len(waiting) > 0:
		fmt.Fprintf(a.stdout, "next     nothing: %d tasks are blocked\n", len(waiting))
	default:
		fmt.Fprintln(a.stdout, "next     nothing is left")
	}
	failed := "nothing"
	for t := range st.All() {
		if t.State == session.TaskFailed && len(t.Children) == 0 {
			failed = printable(fmt.Sprintf("%s (%s)", t.Name, t.LastError))
			if p.Failed > 1 {
				failed += fmt.Sprintf(" and %d more", p.Failed-1)
			}
			break
		}
	}
	fmt.Fprintf(a.stdout, "failed   %s\n", failed)
	hint := "lopen run " + info.Module
	switch {
	case owner != nil:
		hint = "lopen session pause " + info.Module
	case info.Status == session.StatusComplete && p.Done+p.Skipped == p.Total:
		hint = "lopen session show " + info.ID.String()
	case len(st.Header().Settings.Command) == 0:
		hint += " -- CMD"
	}
	fmt.Fprintf(a.stdout, "type     %s\n", hint)
}
