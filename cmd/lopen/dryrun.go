package main

import (
	"fmt"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/plain"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
)

// printDryRun lists the tasks that would run, in order, and the first prompt.
// docs is where documents are; store is nil where there is none.
func (r *runCall) printDryRun(store *lifecycle.Store, p *plan.Plan, docs loop.Config, values *settings.Values) error {
	st, err := r.wouldResume(store, p)
	if err != nil {
		return err
	}
	if st != nil {
		if values, err = r.remembered(store, st.Header().Settings); err != nil {
			return err
		}
	}
	cfg := docs
	cfg.Module, cfg.Check, cfg.Unit, cfg.Prompt, cfg.Only = r.module, values.String("check"), values.String("unit"), r.template, r.only
	order, first, err := loop.DryRun(cfg, p, st)
	if err != nil {
		return err
	}
	for i, line := range order {
		fmt.Fprintf(r.stdout, "%3d  %s\n", i+1, plain.Line(line))
	}
	if len(order) == 0 {
		fmt.Fprintln(r.stdout, "nothing would run")
		return nil
	}
	fmt.Fprint(r.stdout, "\nThe first prompt:\n\n")
	_, err = fmt.Fprintf(r.stdout.Content(), "%s", first)
	return err
}

// wouldResume is the State of the session that a run resumes where nobody is asked, nil
// for a new one.
func (r *runCall) wouldResume(store *lifecycle.Store, p *plan.Plan) (*session.State, error) {
	if store == nil || r.noResume || r.noSave {
		return nil, nil
	}
	if r.resume != "" {
		id, err := store.Resolve(r.resume)
		if err != nil {
			return nil, err
		}
		st, _, err := store.Read(id)
		return st, err
	}
	if _, unfinished, err := store.Unfinished(r.module); err != nil {
		return nil, err
	} else if unfinished {
		return moduleState(store, r.module)
	}
	if done, st := over(store, r.module, p); done {
		return st, nil
	}
	return nil, nil
}
