package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
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
	open, done, err := unfinished(store)
	switch {
	case err != nil:
		return "", err
	case len(open) == 1:
		fmt.Fprintf(r.stderr, "module %s, %s\n", open[0].name, open[0].far)
		return open[0].name, nil
	case len(open) > 1:
		msg := "several modules are not finished: name one, lopen run MODULE"
		for _, m := range open {
			msg += fmt.Sprintf("\n  lopen run %s  (%s)", m.name, m.far)
		}
		return "", usagef("%s", msg)
	case len(done) > 0:
		fmt.Fprintf(r.stderr, "nothing is left to do: %s\n  one more task: lopen plan add %s TEXT\n", strings.Join(done, ", "), done[0])
		return "", nil
	}
	return "", noModule(project)
}

func noModule(project string) error {
	return usagef("no module has a plan here\n%s", howToPlan(project, "MODULE"))
}

// An openModule is one that is not finished, with how far it is.
type openModule struct{ name, far string }

// unfinished returns the modules whose plan has something to do or whose newest session is
// not complete, and those that are done.
func unfinished(store *lifecycle.Store) (open []openModule, done []string, err error) {
	names, err := store.Modules()
	if err != nil {
		return nil, nil, err
	}
	infos, err := store.List()
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		i := slices.IndexFunc(infos, func(i lifecycle.Info) bool { return i.ID.Module == name })
		active := i >= 0 && (infos[i].Err != nil || infos[i].Status != session.StatusComplete)
		p, err := store.Plan(name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !active:
			continue
		case err != nil:
			open = append(open, openModule{name, "its plan cannot be read"}) // the run says why
			continue
		}
		n, total := p.Progress()
		if total == 0 && !active {
			continue
		}
		if finished, _ := leavesDone(store, name, p); finished && !active {
			done = append(done, name)
			continue
		}
		open = append(open, openModule{name, fmt.Sprintf("%d/%d tasks done", n, total)})
	}
	return open, done, nil
}
