package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/loop"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/prompt"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan/criteria"
	"github.com/lopen-dev/lopen/writer/documents"
)

func newSectionDrift(a *app) *cobra.Command {
	return a.jsonFlags(&cobra.Command{
		Use:   "drift MODULE",
		Short: "Say what of the specification is no longer what plan and prompts were made of",
		Long: `Say which sections and criteria of the specification are no longer what the module's
plan was made of, and which sections are no longer what the prompts of its newest
session were made of. The exit code is 3 if any is not.

What differs from the plan is taken into it by lopen plan update MODULE.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := session.ValidateModule(args[0]); err != nil {
				return &usageError{err}
			}
			rows, err := a.drifted(args[0])
			if err != nil {
				return err
			}
			if a.out.machine() {
				err = a.printJSON(rows)
			} else {
				a.printDrift(rows)
			}
			if err == nil && len(rows) > 0 {
				err = &problemsError{fmt.Sprintf("drift: %d found", len(rows))}
			}
			return err
		},
	})
}

// A driftRow is a section, or a criterion, that is no longer what it was.
type driftRow struct {
	prompt.Drift
	Criterion string `json:"criterion,omitempty"` // as it is now
	Was       string `json:"was,omitempty"`       // of a criterion that is gone or was reworded
	Line      int    `json:"line,omitempty"`
	Task      string `json:"task,omitempty"` // that the former criterion became
}

func (a *app) printDrift(rows []driftRow) {
	for _, d := range rows {
		switch {
		case d.Criterion+d.Was != "":
			at := shown(d.Path)
			if d.Line > 0 {
				at = fmt.Sprintf("%s:%d", at, d.Line)
			}
			c := criteria.Change{What: string(d.State), Text: d.Criterion, Was: d.Was, Task: d.Task}
			fmt.Fprintf(a.stdout, "%-8s %s  %s\n", d.State, at, loop.CriterionText(c))
		case d.Header == "" && d.State == cache.Gone:
			fmt.Fprintf(a.stdout, "%-8s %s  (the whole file)\n", d.State, shown(d.Path))
		default:
			fmt.Fprintf(a.stdout, "%-8s %s  %s\n", d.State, shown(d.Path), loop.SectionName(d.Header))
		}
	}
	if len(rows) == 0 {
		fmt.Fprintln(a.stderr, "nothing drifted")
	}
}

// drifted compares what the module's plan was made of, and what its newest session remembers,
// with the files.
func (a *app) drifted(module string) ([]driftRow, error) {
	store, err := a.open()
	if err != nil {
		return nil, err
	}
	defer release(store)
	rows := []driftRow{} // [] in JSON
	prompts, err := a.driftedPrompts(store, module)
	for _, d := range prompts {
		rows = append(rows, driftRow{Drift: d})
	}
	p, noPlan := store.Plan(module)
	if err != nil && (noPlan != nil || !errors.Is(err, lifecycle.ErrNotFound)) {
		return nil, err
	}
	if errors.Is(noPlan, fs.ErrNotExist) {
		return rows, nil
	}
	if noPlan != nil {
		return nil, noPlan
	}
	d, err := a.differencesHere(store, module, p, false)
	if err != nil {
		return nil, err
	}
	return append(rows, driftedPlan(d, rows)...), nil
}

// driftedPlan are the rows of what differs from the plan, without what the prompts say already.
func driftedPlan(d *loop.Differences, known []driftRow) (rows []driftRow) {
	sections := d.Sections
	if d.Lost {
		sections = []criteria.Change{{What: criteria.Gone}}
	}
	for _, s := range sections {
		row := driftRow{Drift: prompt.Drift{Path: d.Path, Header: s.Section, State: cache.Drift(s.What)}}
		if !slices.Contains(known, row) {
			rows = append(rows, row)
		}
	}
	for _, c := range d.Criteria {
		rows = append(rows, driftRow{Drift: prompt.Drift{Path: d.Path, Header: c.Section, State: cache.Drift(c.What)},
			Criterion: c.Text, Was: c.Was, Line: c.Line, Task: c.Task})
	}
	return rows
}

// driftedPrompts compares what the module's newest session remembers with the files.
func (a *app) driftedPrompts(store *lifecycle.Store, module string) ([]prompt.Drift, error) {
	_, project, err := a.places()
	if err != nil {
		return nil, err
	}
	id, err := store.Resolve(module)
	if err == nil && id.Module != module {
		err = fmt.Errorf("module %s has no session: %w", module, lifecycle.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	st, _, err := store.Read(id)
	if err != nil {
		return nil, err
	}
	values, err := a.storeSettings(store, nil)
	if err != nil {
		return nil, err
	}
	docs, err := documents.Open(project)
	if err != nil {
		return nil, err
	}
	defer docs.Close()
	c := openSections(a, docs, project, values, true)
	defer c.Close()
	var unread error // of what cannot be read nobody knows whether it drifted
	rows := prompt.Drifted(func(name string) (*cache.Outline, error) {
		o, err := c.Outline(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			unread = err
		}
		return o, err
	}, st.Header().Resources)
	return rows, unread
}
