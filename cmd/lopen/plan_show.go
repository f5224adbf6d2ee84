package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer/plain"
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
	Details   string     `json:"details,omitempty"`
	DependsOn []string   `json:"dependsOn,omitempty"`
	Children  []planTask `json:"children,omitempty"`
}

func newPlanShow(a *app) *cobra.Command {
	return a.jsonFlags(&cobra.Command{
		Use:   "show MODULE",
		Short: "Show a module's plan as a tree, and what is next",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			store, p, err := a.openPlan(args[0])
			if err != nil {
				return err
			}
			defer release(store)
			a.warnPlan(lifecycle.PlanPath(args[0]), p)
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
			return a.printPlan(st, view)
		},
	})
}

func planTree(p *plan.Plan, st *session.State, ids []string) []planTask {
	tree := make([]planTask, 0, len(ids))
	for _, id := range ids {
		pt, _ := p.Task(id)
		t, _ := st.Task(id)
		tree = append(tree, planTask{ID: id, Kind: string(t.Kind), Name: t.Name, State: string(t.State), Line: pt.Line, Details: pt.Details,
			DependsOn: t.DependsOn, Children: planTree(p, st, pt.Children)})
	}
	return tree
}

// A planPrinter prints a plan's tree for a person.
type planPrinter struct {
	w       *bufio.Writer
	st      *session.State
	waiting map[string][]string // what a leaf waits for
	colored bool
}

// printPlan prints the tree, and below it how far the plan is and what is next.
func (a *app) printPlan(st *session.State, view planView) error {
	_, waiting := tasks.Order(st)
	p := planPrinter{w: bufio.NewWriter(a.stdout.Colored()), st: st, waiting: make(map[string][]string, len(waiting)), colored: a.colored(a.stdout)}
	for _, w := range waiting {
		p.waiting[w.Task] = w.For
	}
	p.tree(st.Roots(), 0)
	n := view.Progress
	fmt.Fprintf(p.w, "\n%d/%d done", n.Done, n.Total)
	for _, c := range []struct {
		n    int
		what string
	}{{n.Failed, "failed"}, {n.Skipped, "skipped"}, {len(waiting), "waiting"}} {
		if c.n > 0 {
			fmt.Fprintf(p.w, ", %d %s", c.n, c.what)
		}
	}
	if view.Next != "" {
		fmt.Fprintf(p.w, ", next: %s", plain.Line(view.Next))
	}
	fmt.Fprintln(p.w)
	return p.w.Flush()
}

// tree prints tasks and what is beneath them.
func (p *planPrinter) tree(ids []string, depth int) {
	for _, id := range ids {
		t, _ := p.st.Task(id)
		line := fmt.Sprintf("%s %s", glyph(t.State), t.Name)
		switch {
		case len(t.Children) > 0:
			done, total := p.count(t)
			line += fmt.Sprintf("  %d/%d", done, total)
		case t.LastError != "" && t.State != session.TaskComplete:
			line += fmt.Sprintf("  (%s)", t.LastError)
		case len(p.waiting[id]) > 0:
			line += fmt.Sprintf("  (waits for %s)", strings.Join(p.waiting[id], ", "))
		}
		fmt.Fprintf(p.w, "%*s%s\n", 2*depth, "", paint(line, t.State, p.colored))
		p.tree(t.Children, depth+1)
	}
}

// count counts the leaves beneath a task.
func (p *planPrinter) count(t session.Task) (done, total int) {
	for _, id := range t.Children {
		c, _ := p.st.Task(id)
		if len(c.Children) > 0 {
			d, n := p.count(c)
			done, total = done+d, total+n
			continue
		}
		total++
		if c.State == session.TaskComplete {
			done++
		}
	}
	return done, total
}
