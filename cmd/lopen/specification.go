package main

import (
	"fmt"
	"io/fs"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer/documents"
)

// differences are how a module's specification differs from what its plan was made of. What is
// remembered of it and damaged is warned of. store may be nil.
func (a *app) differences(store *lifecycle.Store, docs fs.FS, module, spec string, p *plan.Plan, planIsNew bool) (*loop.Differences, error) {
	var plans loop.Plans
	if store != nil {
		plans = store
	}
	d, err := loop.CompareSpecification(plans, docs, module, spec, p, planIsNew)
	if err == nil && d.Damaged != nil {
		fmt.Fprintf(a.stderr, "warning: what was remembered of %s is lost: %v\n", spec, d.Damaged)
	}
	return d, err
}

// differencesHere are the differences of a module, with the documents of the work tree in which the
// command is.
func (a *app) differencesHere(store *lifecycle.Store, module string, p *plan.Plan, planIsNew bool) (*loop.Differences, error) {
	_, here, err := a.places()
	if err != nil {
		return nil, err
	}
	values, err := a.storeSettings(store, nil)
	if err != nil {
		return nil, err
	}
	docs, err := documents.Open(here)
	if err != nil {
		return nil, err
	}
	defer docs.Close()
	return a.differences(store, docs, module, specPath(values, module), p, planIsNew)
}

// printLeft names what of a specification is no task, a line each.
func (a *app) printLeft(d *loop.Differences) {
	for _, line := range d.LeftLines() {
		fmt.Fprintln(a.stderr, line)
	}
}

// printDifferences names how the specification differs, and returns the Exit of a run that has
// nothing left to do. What cannot be compared is warned of: it keeps no run from its tasks.
func (r *runCall) printDifferences(store *lifecycle.Store, p *plan.Plan) error {
	d, err := r.differences(store, r.docs.FS, r.module, r.docs.Spec, p, false)
	if err != nil {
		fmt.Fprintf(r.stderr, "warning: the specification is not compared with the plan: %v\n", err)
		return nil
	}
	exit, begin := d.Exit(r.module, "lopen run "+r.module+" -- CMD"), ""
	if exit != nil {
		begin = "warning: "
	}
	for _, line := range d.Lines(r.module) {
		fmt.Fprintln(r.stderr, begin+line)
		begin = ""
	}
	if exit == nil {
		return nil
	}
	return exit
}

// uncovered is the number of criteria of a module that no task covers, 0 where nobody knows.
func (a *app) uncovered(store *lifecycle.Store, module string, p *plan.Plan) int {
	d, err := a.differencesHere(store, module, p, false)
	if err != nil {
		return 0
	}
	return d.Uncovered()
}
