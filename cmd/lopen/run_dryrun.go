package main

import (
	"cmp"
	"fmt"
	"text/tabwriter"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer/plain"
)

// printDryRun lists the tasks that would run, in order, and the first prompt with its parts.
// docs is where documents are; store is nil where there is none.
func (r *runCall) printDryRun(store *lifecycle.Store, p *plan.Plan, docs prompt.Documents) error {
	st, err := r.wouldResume(store, p)
	if err != nil {
		return err
	}
	if r.again {
		if p, st, err = r.redone(p, st); err != nil {
			return err
		}
	}
	past, old := &lifecycle.Past{}, session.Settings{}
	if st != nil {
		old = st.Header().Settings
		if past, err = store.Recorded(st); err != nil {
			return err
		}
	}
	values, _, err := r.remembered(store, old)
	if err != nil {
		return err
	}
	cfg := loop.Config{Documents: docs, Module: r.module, Check: values.Check, Unit: values.Unit, Prompt: r.template, Select: r.selected}
	h, err := loop.DryRun(cfg, p, st, past)
	if err != nil {
		return err
	}
	_ = r.printDifferences(store, p) // whatever would be named at the end of a run
	for i, line := range h.Order {
		fmt.Fprintf(r.stdout, "%3d  %s\n", i+1, plain.Line(line))
	}
	title := "The first prompt:"
	if len(h.Order) == 0 {
		fmt.Fprintln(r.stdout, "nothing would run")
		title = "The prompt, if it ran:"
	}
	if h.Prompt == nil {
		return nil
	}
	fmt.Fprintf(r.stdout, "\n%s\n\n", title)
	if err := r.printParts(h); err != nil {
		return err
	}
	_, err = fmt.Fprintf(r.stdout.Content(), "\n%s", h.Prompt)
	return err
}

// printParts prints how large each part of a prompt is, and where it is from.
func (r *runCall) printParts(h *loop.Rehearsal) error {
	w := tabwriter.NewWriter(r.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PART\tBYTES\tFROM")
	rest := len(h.Prompt)
	for _, p := range h.Parts {
		cut := ""
		if p.Cut {
			cut = " (cut)"
		}
		fmt.Fprintf(w, "%s\t%d\t%s%s\n", p.Name, p.Bytes, plain.Line(p.Origin), cut)
		rest -= p.Bytes
	}
	if rest >= 0 { // else the template does not use them all
		fmt.Fprintf(w, "headings and rules\t%d\t%s\n", rest, plain.Line(cmp.Or(r.prompt, "the built-in template")))
	}
	fmt.Fprintf(w, "the whole prompt\t%d\t\n", len(h.Prompt))
	return w.Flush()
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
	} else if unfinished || r.again {
		return moduleState(store, r.module)
	}
	if done, st := leavesDone(store, r.module, r.selected.Leaves(p)); done {
		return st, nil
	}
	return nil, nil
}
