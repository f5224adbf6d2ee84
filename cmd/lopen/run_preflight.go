package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/git"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/writer/plain"
)

// busyInside refuses a run of the module whose run this command is part of.
func (r *runCall) busyInside(project string) error {
	if r.getenv("LOPEN_MODULE") != r.module {
		return nil
	}
	for _, e := range r.above() {
		if e.in(project) && e.agent == "" {
			return &loop.Exit{Code: loop.ExitBusy, Reason: fmt.Sprintf("module %s is being run by session %s, which this command is part of", r.module, e.session)}
		}
	}
	return nil
}

// warnPreflight warns of what may stop a run later, a disk that is nearly full, for one, and of what
// git would replace. A work does that for all.
func (r *runCall) warnPreflight(ctx context.Context, store *lifecycle.Store) {
	if r.crew == nil {
		r.warnOf(ctx, store)
	}
}

func (a *app) warnOf(ctx context.Context, store *lifecycle.Store) {
	if where := a.sendsTo(store.Project().Name()); where != "" {
		fmt.Fprintf(a.stderr, "fleet: %s gets the sessions, plans and files\n", where)
	}
	for _, f := range append(store.Preflight(), a.trackedStore(ctx, store)...) {
		fmt.Fprintf(a.stderr, "warning: %s: %s: %s; %s\n", store.Path(), f.Name, f.Found, f.Mend)
	}
}

// trackedStore says which files of .lopen git tracks: a checkout, a merge or a pull replaces them, ignored or not,
// without a word. What git does not say is nothing.
func (a *app) trackedStore(ctx context.Context, store *lifecycle.Store) []repair.Check {
	names, err := git.Tracked(ctx, store.Project().Name(), lifecycle.Dir, a.environ)
	if err != nil {
		a.logger.Info().Err(err).Msg("it is not known what git tracks of the store")
	}
	if len(names) == 0 {
		return nil
	}
	return []repair.Check{{
		Name:  "git",
		Found: fmt.Sprintf("%s of %s tracked by git: %s", plain.Some(len(names), "file"), lifecycle.Dir, some(names)),
		Mend:  "a checkout or a pull replaces them, and git add takes what lopen writes there; to stop that: git rm -r --cached " + quoted([]string{lifecycle.Dir}),
	}}
}

// some names the first of a list.
func some(names []string) string {
	const most = 5
	if len(names) <= most {
		return plain.Line(strings.Join(names, ", "))
	}
	return fmt.Sprintf("%s and %d more", plain.Line(strings.Join(names[:most], ", ")), len(names)-most)
}

// sayReplaced says what of a module's plan is not as its last session left it, before a new one takes its
// tasks from there: a checkout may have replaced the plan.
func (r *runCall) sayReplaced(store *lifecycle.Store) {
	st, err := moduleState(store, r.module)
	if err != nil || st == nil {
		return
	}
	p, err := store.Plan(r.module)
	if err != nil {
		return // the run reports what is wrong with the plan
	}
	res, err := tasks.Reconcile(st, p, tasks.Between)
	if err != nil {
		return
	}
	of := map[tasks.NoteKind][]string{}
	for _, n := range res.Notes {
		t, _ := p.Task(n.Task)
		if n.Kind == tasks.New && (len(t.Children) > 0 || !t.Checked) || n.Kind == tasks.Reworded && !t.Checked {
			continue
		}
		of[n.Kind] = append(of[n.Kind], n.Task)
	}
	for _, kind := range []struct {
		kind tasks.NoteKind
		text string
	}{{tasks.Unticked, "open again"}, {tasks.Ticked, "ticked"}, {tasks.New, "new and ticked, and never run"}, {tasks.Reworded, "reworded and ticked"}, {tasks.Gone, "no longer there"}} {
		if names := of[kind.kind]; len(names) > 0 {
			fmt.Fprintf(r.stderr, "plan: since session %s %s: %s\n", st.ID(), kind.text, some(names))
		}
	}
}
