package main

import (
	"fmt"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/writer/plain"
)

// onlyUnfinished is the module of a run that names none: that of --resume, or the only one
// that is not finished. Where neither an error nor a module is returned there is nothing to
// do, which is printed. store may be nil.
func (r *runCall) onlyUnfinished(project string, store *lifecycle.Store) (string, error) {
	if store == nil {
		return "", noModule(project)
	}
	if r.resume != "" {
		id, err := store.Resolve(r.resume)
		return id.Module, err
	}
	open, done, err := r.unfinished(store)
	switch {
	case err != nil:
		return "", err
	case len(open) == 1:
		fmt.Fprintf(r.stderr, "module %s, %s\n", open[0].Module, open[0].far())
		return open[0].Module, nil
	case len(open) > 1:
		msg := "several modules are not finished: name one, lopen run MODULE"
		for _, m := range open {
			msg += fmt.Sprintf("\n  lopen run %s  (%s)", m.Module, m.far())
		}
		return "", usagef("%s", msg)
	case len(done) > 0:
		fmt.Fprintf(r.stderr, "nothing is left to do: %s\n  one more task: lopen plan add %s TEXT\n", strings.Join(done, ", "), plain.Quote(done[0]))
		return "", nil
	}
	return "", noModule(project)
}

func noModule(project string) error {
	return usagef("no module has a plan here\n%s", howToPlan(project, "MODULE"))
}

// unfinished returns the modules whose plan has something to do or whose newest session is
// not complete, and the names of those that are done.
func (r *runCall) unfinished(store *lifecycle.Store) (open []moduleRow, done []string, err error) {
	rows, err := r.modulesOf(store)
	for _, r := range rows {
		switch {
		case r.Status == moduleDone:
			done = append(done, r.Module)
		case r.Total > 0 || r.Session != "" || r.Error != "":
			open = append(open, r)
		}
	}
	return open, done, err
}

// far says how far a module is.
func (r *moduleRow) far() string {
	if r.Error != "" {
		return "its plan cannot be read" // the run says why
	}
	if r.Uncovered > 0 {
		return fmt.Sprintf("%d/%d tasks done, criteria without a task: %d", r.Done, r.Total, r.Uncovered)
	}
	return fmt.Sprintf("%d/%d tasks done", r.Done, r.Total)
}
