package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
)

// planView is what `plan show --json` prints.
type planView struct {
	Module   string           `json:"module"`
	Path     string           `json:"path"`
	Title    string           `json:"title,omitempty"`
	Progress session.Progress `json:"progress"`
	Next     string           `json:"next,omitempty"`
	Tasks    []planTask       `json:"tasks"`
}

type planTask struct {
	ID        string     `json:"id"`
	Kind      string     `json:"kind"`
	Name      string     `json:"name"`
	State     string     `json:"state"`
	Line      int        `json:"line"`
	DependsOn []string   `json:"dependsOn,omitempty"`
	Children  []planTask `json:"children,omitempty"`
}

func newPlanShow(a *app) *cobra.Command {
	return a.reads(&cobra.Command{
		Use:   "show MODULE",
		Short: "Show a module's plan as a tree, and what is next",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			store, p, err := a.openPlan(args[0])
			if err != nil {
				return err
			}
			defer release(store)
			st, err := planState(store, args[0], p)
			if err != nil {
				return err
			}
			view := planView{Module: args[0], Path: lifecycle.PlanPath(args[0]), Title: p.Title(), Progress: st.Progress(), Tasks: planTree(p, st, p.Roots())}
			if ready, _ := tasks.Order(st); len(ready) > 0 {
				view.Next = ready[0]
			}
			if a.out.machine() {
				return a.printJSON(view)
			}
			a.printTree(a.stdout, st, st.Roots(), 0)
			fmt.Fprintf(a.stdout, "\n%d/%d done", view.Progress.Done, view.Progress.Total)
			if view.Next != "" {
				fmt.Fprintf(a.stdout, ", next: %s", view.Next)
			}
			_, err = fmt.Fprintln(a.stdout)
			return err
		},
	})
}

// openPlan opens the store and a module's plan. The caller closes the store.
func (a *app) openPlan(module string) (*lifecycle.Store, *plan.Plan, error) {
	if err := session.ValidateModule(module); err != nil {
		return nil, nil, &usageError{err}
	}
	store, err := a.open()
	if err != nil {
		return nil, nil, err
	}
	p, err := store.Plan(module)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("no plan for module %s at %s: make one with lopen plan create %s --from FILE: %w",
			module, lifecycle.PlanPath(module), module, lifecycle.ErrNotFound)
	}
	if err != nil {
		return nil, nil, errors.Join(err, closeStore(store))
	}
	return store, p, nil
}

// planState is the plan's tasks with what the module's newest session knows of
// them beyond their boxes: which failed, which one is being worked on.
func planState(store *lifecycle.Store, module string, p *plan.Plan) (*session.State, error) {
	var st *session.State
	if info, ok, err := store.Unfinished(module); err != nil {
		return nil, err
	} else if ok {
		st, _, _ = store.Read(info.ID) // a damaged session must not hide the plan
	}
	if st == nil {
		id, err := session.NewID(module, timeNow(), 1)
		if err != nil {
			return nil, err
		}
		if st, err = session.New(id, timeNow()); err != nil {
			return nil, err
		}
	}
	res, err := tasks.Reconcile(st, p, tasks.Between)
	return res.State, err
}

func planTree(p *plan.Plan, st *session.State, ids []string) []planTask {
	tree := make([]planTask, 0, len(ids))
	for _, id := range ids {
		pt, _ := p.Task(id)
		t, _ := st.Task(id)
		tree = append(tree, planTask{ID: id, Kind: string(t.Kind), Name: t.Name, State: string(t.State), Line: pt.Line,
			DependsOn: t.DependsOn, Children: planTree(p, st, pt.Children)})
	}
	return tree
}

func newPlanCreate(a *app) *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "create MODULE --from FILE",
		Short: "Make a plan from the headings and checkboxes of any Markdown",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) (err error) {
			if err := session.ValidateModule(args[0]); err != nil {
				return &usageError{err}
			}
			if from == "" {
				return usagef("--from FILE is missing: a Markdown file with checkboxes, such as TODO.md or tasks.md")
			}
			content, err := a.planFrom(args[0], from)
			if err != nil {
				return err
			}
			project, err := a.project()
			if err != nil {
				return err
			}
			store, err := a.create(project)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, closeStore(store)) }()
			if err := a.refuseInside(store); err != nil {
				return err
			}
			err = store.CreatePlan(args[0], content)
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("module %s has a plan already, which was left alone: %s", args[0], lifecycle.PlanPath(args[0]))
			}
			if err != nil {
				return err
			}
			done, total := plan.Parse(content).Progress()
			fmt.Fprintf(a.stdout, "%s\n", lifecycle.PlanPath(args[0]))
			fmt.Fprintf(a.stderr, "%d tasks, %d of them done; next: lopen run %s -- CMD\n", total, done, args[0])
			return nil
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the Markdown `FILE`")
	return cmd
}

func (a *app) planFrom(module, from string) ([]byte, error) {
	start, err := a.start()
	if err != nil {
		return nil, err
	}
	path := from
	if !filepath.IsAbs(path) {
		path = filepath.Join(start, path)
	}
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", from, err)
	}
	defer dir.Close()
	src, err := loop.ReadSpec(dir.FS(), filepath.Base(path))
	if err != nil {
		return nil, err
	}
	content, err := plan.FromMarkdown(module, src)
	if err != nil {
		return nil, fmt.Errorf("make a plan from %s: %w", from, err)
	}
	return content, nil
}

func newPlanTick(a *app, ticked bool) *cobra.Command {
	use, short := "tick MODULE TASK", "Tick a task's box; a parent's ticks all beneath it"
	if !ticked {
		use, short = "untick MODULE TASK", "Untick a task's box: it runs again"
	}
	return &cobra.Command{
		Use:   use,
		Short: short,
		Long:  short + ".\n\nTASK is an ID, a unique part of the text, or :LINE.",
		Args:  cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) (err error) {
			store, p, err := a.openPlan(args[0])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, closeStore(store)) }()
			if err := a.refuseInside(store); err != nil {
				return err
			}
			t, err := p.Find(args[1])
			if err != nil {
				return &usageError{err}
			}
			lock, err := store.LockModule(args[0])
			if err != nil {
				return fmt.Errorf("its run would take the box back: pause it first, lopen session pause %s: %w", args[0], err)
			}
			defer func() { err = errors.Join(err, lock.Unlock()) }()
			boxes := plan.Closure(p, t.ID, ticked)
			if _, err := store.SetBoxes(args[0], p, boxes); err != nil {
				return err
			}
			for _, pt := range p.Tasks() {
				if want, ok := boxes[pt.ID]; ok && want != pt.Checked {
					fmt.Fprintf(a.stdout, "[%s] %s\n", map[bool]string{true: "x", false: " "}[want], pt.ID)
				}
			}
			return nil
		},
	}
}
