package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/settings"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer/documents"
	"github.com/lopen-dev/lopen/writer/plain"
)

// moduleRow is a module as `plan list --json` prints it.
type moduleRow struct {
	Module        string `json:"module"`
	Plan          string `json:"plan,omitempty"`          // its path
	Specification string `json:"specification,omitempty"` // its path, where there is no plan yet
	Status        string `json:"status"`                  // running, open, done, unplanned or unreadable
	Done          int    `json:"done"`
	Total         int    `json:"total"`
	Open          int    `json:"open"`
	Failed        int    `json:"failed"`
	Skipped       int    `json:"skipped"`
	Uncovered     int    `json:"uncovered,omitempty"` // criteria of the specification that no task covers
	Next          string `json:"next,omitempty"`      // the task that a run begins with
	From          string `json:"from,omitempty"`      // the file that the plan was made from
	Session       string `json:"session,omitempty"`   // that runs, or that the next run resumes
	Error         string `json:"error,omitempty"`
}

// The statuses of a module.
const (
	moduleRunning    = "running"
	moduleOpen       = "open" // something is to be done, or a session is not complete
	moduleDone       = "done"
	moduleUnplanned  = "unplanned"
	moduleUnreadable = "unreadable"
)

func newPlanList(a *app) *cobra.Command {
	return a.jsonFlags(&cobra.Command{
		Use:   "list",
		Short: "List the modules: how far each is, what is next, which session goes on",
		Long: `List the modules that have a plan or a specification, by name: how far each is, what is
next, what its plan was made from, and the session that runs or that the next run resumes.
The tasks of a specification without a plan are those that a run would make of it.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.readStore(func(store *lifecycle.Store) error {
				rows, err := a.modulesOf(store)
				if err != nil {
					return err
				}
				values, err := a.storeSettings(store, nil)
				if err != nil {
					return err
				}
				more, err := unplanned(store, values, rows)
				if err != nil {
					return err
				}
				rows = append(rows, more...)
				slices.SortFunc(rows, func(a, b moduleRow) int { return cmp.Compare(a.Module, b.Module) })
				if a.out.machine() {
					return a.printJSON(rows)
				}
				return a.listModules(store.Project().Name(), rows)
			})
		},
	})
}

// modulesOf returns the modules that have a plan, or a session that is not complete, sorted.
func (a *app) modulesOf(store *lifecycle.Store) ([]moduleRow, error) {
	rows := []moduleRow{}
	names, err := store.Modules()
	if err != nil {
		return nil, err
	}
	infos, err := store.List()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		i := slices.IndexFunc(infos, func(i lifecycle.Info) bool { return i.ID.Module == name })
		active := i >= 0 && (infos[i].Err != nil || infos[i].Status != session.StatusComplete)
		if r := a.lookAtModule(store, name, active); r != nil {
			rows = append(rows, *r)
		}
	}
	return rows, nil
}

// lookAtModule returns how a module stands, nil for one that has no plan and is not active: its
// newest session is complete.
func (a *app) lookAtModule(store *lifecycle.Store, name string, active bool) *moduleRow {
	p, err := store.Plan(name)
	if errors.Is(err, fs.ErrNotExist) && !active {
		return nil
	}
	r := &moduleRow{Module: name, Plan: lifecycle.PlanPath(name), Status: moduleOpen}
	running := false
	if going, ok, err := store.Unfinished(name); err == nil && ok {
		r.Session = going.ID.String()
		owner, err := store.Holder(going.ID)
		running = err == nil && owner != nil
	}
	if err == nil {
		err = r.count(store, p)
	}
	if err == nil {
		r.Uncovered = a.uncovered(store, name, p)
	}
	switch {
	case err != nil:
		r.Status, r.Error = moduleUnreadable, err.Error()
	case running:
		r.Status = moduleRunning
	case !active && r.Uncovered == 0 && finished(store, name, p):
		r.Status = moduleDone
	}
	return r
}

// finished says that a plan has tasks and that nothing of it is left to do.
func finished(store *lifecycle.Store, module string, p *plan.Plan) bool {
	done, _ := leavesDone(store, module, loop.Selection{}.Leaves(p))
	return done
}

// count fills in what the plan and the module's session say of the tasks.
func (r *moduleRow) count(store *lifecycle.Store, p *plan.Plan) error {
	st, err := planState(store, r.Module, p)
	if err != nil {
		return err
	}
	n := st.Progress()
	r.Done, r.Total, r.Failed, r.Skipped, r.From = n.Done, n.Total, n.Failed, n.Skipped, p.Origin()
	r.Open = n.Total - n.Done - n.Failed - n.Skipped
	if ready, _ := tasks.Order(st); len(ready) > 0 {
		r.Next = ready[0]
	}
	return nil
}

// unplanned returns the modules that have a specification and are not among rows.
func unplanned(store *lifecycle.Store, values *settings.Values, rows []moduleRow) (more []moduleRow, err error) {
	docs, err := documents.Open(store.Project().Name())
	if err != nil {
		return nil, err
	}
	defer docs.Close()
	entries, err := fs.ReadDir(docs, path.Clean(filepath.ToSlash(values.RequirementsDir)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list specifications: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		planned := slices.ContainsFunc(rows, func(r moduleRow) bool { return r.Module == name })
		if planned || session.ValidateModule(name) != nil {
			continue
		}
		r := moduleRow{Module: name, Specification: specPath(values, name), Status: moduleUnplanned}
		p, _, err := loop.PlanFor(nil, docs, name, r.Specification)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = r.count(store, p)
			r.From = "" // there is no plan yet
		}
		if err != nil {
			r.Status, r.Error = moduleUnreadable, err.Error()
		}
		more = append(more, r)
	}
	return more, nil
}

// listModules prints a table on a terminal and tab-separated text elsewhere.
func (a *app) listModules(project string, rows []moduleRow) error {
	w := io.Writer(a.stdout)
	if a.stdout.Terminal() {
		if len(rows) == 0 {
			_, err := fmt.Fprintf(a.stderr, "no module has a plan here\n%s\n", howToPlan(project, "MODULE"))
			return err
		}
		tw := tabwriter.NewWriter(a.stdout, 0, 4, 2, ' ', 0)
		defer tw.Flush()
		w = tw
	}
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s %s\t%d/%d\t%s\t%s\t%s\t%s\t%s\n", r.Module, moduleGlyph(r.Status), r.Status, r.Done, r.Total, r.rest(),
			plain.Line(r.Next), plain.Line(cmp.Or(r.From, r.Specification)), r.Session, plain.Line(r.Error))
	}
	return nil
}

// rest is what is not done, in words.
func (r *moduleRow) rest() string {
	var parts []string
	for _, c := range []struct {
		n    int
		what string
	}{{r.Open, "open"}, {r.Failed, "failed"}, {r.Skipped, "skipped"}, {r.Uncovered, "criteria without a task"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	return strings.Join(parts, ", ")
}

func moduleGlyph(status string) string {
	switch status {
	case moduleRunning:
		return "▸"
	case moduleDone:
		return "✓"
	case moduleUnreadable:
		return "!"
	}
	return "‖"
}
