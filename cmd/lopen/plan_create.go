package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/plan/convert"
	"github.com/lopen-dev/lopen/writer/documents"
	"github.com/lopen-dev/lopen/writer/plain"
)

func newPlanCreate(a *app) *cobra.Command {
	var from string
	var again bool
	cmd := &cobra.Command{
		Use:   "create MODULE [--from FILE | --remembered]",
		Short: "Make a plan of another list of tasks, or of the specification",
		Long: `Make a plan of a list: any Markdown with checkboxes, tasks.md of Spec Kit, Kiro and OpenSpec,
a plan of ralphex, prd.json, tasks.json of Task Master, or issues from gh issue list --json number,title,body,state,labels.
What it is follows from what it has. Each box or story becomes a task, or is named with its
line and the reason. Headings, prose and the lines below a box stay.

Without --from the plan is made of the specification's Acceptance Criteria. --remembered writes
one that is gone, or that has no task any more, as the module's session remembers the tasks.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := session.ValidateModule(args[0]); err != nil {
				return &usageError{err}
			}
			if again {
				return a.rememberedPlan(args[0])
			}
			if from == "" {
				return a.planOfSpecification(args[0])
			}
			path, err := a.path(from)
			if err != nil {
				return err
			}
			content, err := a.planFrom(args[0], from, path)
			if err != nil {
				return err
			}
			return a.initStore(func(project string, store *lifecycle.Store) error {
				if rel, err := filepath.Rel(project, path); err == nil && filepath.IsLocal(rel) {
					path = rel
				}
				return a.writePlan(store, args[0], plan.WithOrigin(content, filepath.ToSlash(path)))
			})
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the list's `FILE`, such as TODO.md, tasks.md or prd.json")
	cmd.Flags().BoolVar(&again, "remembered", false, "as the module's session remembers the tasks; what is there moves to .lopen/corrupted")
	cmd.MarkFlagsMutuallyExclusive("from", "remembered")
	return cmd
}

func (a *app) planFrom(module, from, path string) ([]byte, error) {
	src, err := documents.ReadFile(path, prompt.MaxDocument)
	if err == nil {
		src, err = documents.Text(src)
	}
	if err != nil {
		return nil, fmt.Errorf("make a plan from %s: %w", from, err)
	}
	made, err := convert.Plan(module, src)
	out := bufio.NewWriter(a.stderr)
	defer func() { _ = out.Flush() }()
	for _, r := range made.Left {
		fmt.Fprintf(out, "%s:%d: no task: %s\n", plain.Line(from), r.Line, plain.Line(r.Text))
	}
	for _, r := range made.Notes {
		fmt.Fprintf(out, "%s:%d: %s\n", plain.Line(from), r.Line, plain.Line(r.Text))
	}
	if err != nil {
		return nil, fmt.Errorf("make a plan from %s: %w", from, err)
	}
	if err := explained(made); err != nil {
		return nil, fmt.Errorf("make a plan from %s: %w", from, err)
	}
	what, how := "boxes", "all in the plan"
	if !made.Markdown {
		what = "entries"
	}
	if len(made.Left) > 0 {
		how = fmt.Sprintf("%d in the plan", made.Tasks)
	}
	if made.Parents > 0 { // else its tasks are fewer without a reason
		how += fmt.Sprintf(" (%d as parents of others)", made.Parents)
	}
	if len(made.Left) > 0 {
		how += fmt.Sprintf(", %d named above", len(made.Left))
	}
	fmt.Fprintf(out, "%s: %s, %d %s: %s\n", plain.Line(from), made.Kind, made.Boxes, what, how)
	return made.Content, nil
}

// explained says whether each box of a list became a task or was named. Nothing is written
// that leaves one out.
func explained(made convert.Result) error {
	if made.Tasks+len(made.Left) != made.Boxes {
		return fmt.Errorf("%d boxes became %d tasks and %d were named: nothing was written; please report it with the file", made.Boxes, made.Tasks, len(made.Left))
	}
	return nil
}

// planOfSpecification makes a plan as a run does where there is none.
func (a *app) planOfSpecification(module string) error {
	_, values, err := a.here()
	if err != nil {
		return err
	}
	_, here, err := a.places()
	if err != nil {
		return err
	}
	docs, err := documents.Open(here)
	if err != nil {
		return err
	}
	defer docs.Close()
	spec := specPath(values, module)
	_, content, err := loop.PlanFor(nil, docs, module, spec)
	if errors.Is(err, fs.ErrNotExist) {
		return usagef("--from FILE is missing: a Markdown file with checkboxes, such as TODO.md or tasks.md; or write a specification at %s: lopen init %s", spec, module)
	}
	if err != nil {
		return err
	}
	return a.initStore(func(_ string, store *lifecycle.Store) error {
		return a.writePlan(store, module, content)
	})
}

// writePlan writes the new plan of a module, and remembers the specification that it covers.
func (a *app) writePlan(store *lifecycle.Store, module string, content []byte) error {
	err := store.CreatePlan(module, content)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("module %s has a plan already, which was left alone: %s; take what is new in its specification into it: lopen plan update %s", module, lifecycle.PlanPath(module), module)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "%s\n", lifecycle.PlanPath(module))
	p := plan.Parse(content)
	a.warnMissing(lifecycle.PlanPath(module), p)
	if err := a.rememberSpecification(store, module, p); err != nil {
		fmt.Fprintf(a.stderr, "warning: specification: %v\n", err)
	}
	done, total := p.Progress()
	fmt.Fprintf(a.stderr, "%d tasks, %d of them done; next: lopen run %s -- CMD\n", total, done, module)
	return nil
}

// rememberSpecification remembers the specification that a new plan covers.
func (a *app) rememberSpecification(store *lifecycle.Store, module string, p *plan.Plan) error {
	d, err := a.differencesHere(store, module, p, true)
	if err != nil {
		return err
	}
	if p.Origin() == d.Path {
		a.printLeft(d)
	}
	return store.RememberSpecification(module, d.New)
}
