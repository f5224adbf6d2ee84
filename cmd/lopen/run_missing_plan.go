package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer/documents"
)

// findPlan returns the module's plan, or what to do when there is none or none
// can be made: before anything is made for the run.
func (r *runCall) findPlan(project string, store *lifecycle.Store, docs fs.FS, spec string) (*plan.Plan, error) {
	var plans loop.Plans
	if store != nil {
		plans = store
	}
	p, _, err := loop.PlanFor(plans, docs, r.module, spec)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, r.missingPlan(project, spec, store)
	}
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, remembered(store, r.module))
	}
	if len(p.Tasks()) == 0 {
		err = &loop.Exit{Code: loop.ExitUser, Reason: fmt.Sprintf(
			"the plan %s has no task: write some as list items like \"- [ ] do this\" and run again%s", lifecycle.PlanPath(r.module), remembered(store, r.module))}
	}
	return p, err
}

func (r *runCall) missingPlan(project, spec string, store *lifecycle.Store) error {
	msg := fmt.Sprintf("no plan for %s, and no specification at %s\n", r.module, spec)
	if child.Look([]string{r.module}, project, r.environ) == nil {
		msg += fmt.Sprintf("  if it is the command, put -- before it: lopen run -- %s\n", r.module)
	}
	return errors.New(msg + howToPlan(project, r.module) + remembered(store, r.module))
}

// howToPlan says how a module comes to a plan.
func howToPlan(project, module string) string {
	msg := fmt.Sprintf("  make a plan from a list:  lopen plan create %s --from FILE\n  or write a specification: lopen init %s", module, module)
	if files := openBoxes(project); len(files) > 0 {
		msg += "\nfiles here with unticked boxes:"
		for _, f := range files {
			msg += fmt.Sprintf("\n  %s (%d)", f.path, f.open)
		}
	}
	return msg
}

// boxFile is a Markdown file with open boxes.
type boxFile struct {
	path string
	open int
}

// openBoxes looks for Markdown files that a plan could be made from. It is a
// help in an error message, so it is bounded, also in time: a mount that does not
// answer must not hold the message back.
func openBoxes(project string) []boxFile {
	found := make(chan []boxFile, 1)
	go func() { found <- findBoxes(project) }()
	select {
	case all := <-found:
		return all
	case <-time.After(2 * time.Second):
		return nil
	}
}

// findBoxes says nothing of what it cannot read.
func findBoxes(project string) []boxFile {
	const maxFiles, maxSize, maxFound = 2000, 1 << 20, 10
	var found []boxFile
	seen := 0
	_ = filepath.WalkDir(project, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		name := d.Name()
		if d.IsDir() {
			if path != project && (name[0] == '.' || slices.Contains([]string{"node_modules", "vendor", "testdata"}, name)) {
				return fs.SkipDir
			}
			return nil
		}
		if ext := filepath.Ext(name); ext != ".md" && ext != ".markdown" {
			return nil
		}
		if seen++; seen > maxFiles || len(found) >= maxFound {
			return fs.SkipAll
		}
		if info, err := d.Info(); err != nil || !info.Mode().IsRegular() || info.Size() > maxSize {
			return nil //nolint:nilerr // see above
		}
		src, err := documents.ReadFile(path, maxSize)
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		if done, total := plan.Parse(src).Progress(); total > done {
			rel, _ := filepath.Rel(project, path)
			found = append(found, boxFile{rel, total - done})
		}
		return nil
	})
	return found
}
