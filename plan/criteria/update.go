package criteria

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/plan/markdown"
)

// A Progress is what is known of a task beyond its box.
type Progress uint8

// What may be known. Each is more than the one before.
const (
	Untouched Progress = iota
	Tried              // it was attempted, or is in progress
	Settled            // it is done, or a person skipped it
)

// A Step is what an update does about one criterion.
type Step struct {
	What string // StepAdded, StepReworded, StepRemoved or StepKept
	Task string // ID; that of a removed task is the one that it had
	Was  string // of a reworded task, the ID before
	Text string // of the criterion, the former one of what is gone
	Why  string // what else there is to know, "" for nothing
}

// What an update does to a task.
const (
	StepAdded    = "added"
	StepReworded = "reworded"
	StepRemoved  = "removed"
	StepKept     = "kept"
)

// Update takes the differences into a plan, and returns the record of what that then covers, and
// what was done. What is done or was tried stays, and so does what a person
// changed. p is the plan that the Diff was made with; it is returned itself if nothing of it
// changes. A Diff can be used for one Update only.
func (d *Diff) Update(p *plan.Plan, progress func(id string) Progress) (*plan.Plan, *Record, []Step, error) {
	e := &editor{Diff: d, p: p, progress: progress}
	for i := range d.link {
		e.track(&d.link[i])
	}
	for i := range d.task {
		e.track(&d.task[i])
	}
	e.steps = make([]Step, len(d.Criteria))
	for n, c := range d.Criteria {
		s, i := &e.steps[n], d.todo[n]
		if *s = (Step{What: StepKept, Text: cmp.Or(c.Text, c.Was)}); c.What == Gone {
			continue
		}
		e.track(&s.Task)
		if err := e.cover(s, i); err != nil {
			return nil, nil, nil, fmt.Errorf("line %d: %w", e.now.criteria[i].Line, err)
		}
		d.link[i] = s.Task
	}
	for n := range slices.Backward(d.Criteria) { // what is nested goes before what it is in
		if d.Criteria[n].What == Gone {
			e.drop(&e.steps[n], d.todo[n])
			if e.steps[n].What == StepKept {
				e.track(&e.steps[n].Task)
			}
		}
	}
	return e.p, d.Accepted(), e.steps, nil
}

// Accepted returns the record of the specification as it is, with the plan as it is: what differs
// counts as covered.
func (d *Diff) Accepted() *Record {
	r := d.now.record(d.link)
	for i, was := range d.mate {
		if was >= 0 && d.link[i] == "" {
			r.Criteria[i].Task = d.task[was]
		}
	}
	return r
}

// An editor makes the steps of an update one by one.
type editor struct {
	*Diff
	p        *plan.Plan
	progress func(id string) Progress
	steps    []Step
	ids      []*string // of tasks; they change with what is edited
}

func (e *editor) track(id *string) { e.ids = append(e.ids, id) }

// edit makes a change. at is the ID of a task that it removes, "" for none.
func (e *editor) edit(change plan.Change, at string) error {
	next, err := change(e.p, e.p)
	if err != nil {
		return err
	}
	was, is := items(e.p), items(next)
	first, shift := len(was), len(is)-len(was)
	switch {
	case shift < 0:
		first = slices.IndexFunc(was, func(t plan.Task) bool { return t.ID == at })
	case shift > 0:
		first = firstNew(was, is)
	}
	renamed := map[string]string{}
	for i, t := range was {
		switch {
		case i < first:
			renamed[t.ID] = is[i].ID
		case shift > 0 || i >= first-shift:
			renamed[t.ID] = is[i+shift].ID
		default:
			renamed[t.ID] = ""
		}
	}
	for _, id := range e.ids {
		if *id != "" {
			*id = renamed[*id]
		}
	}
	e.p = next
	return nil
}

// items are the tasks of a plan that have a box.
func items(p *plan.Plan) []plan.Task {
	return slices.DeleteFunc(p.Tasks(), func(t plan.Task) bool { return t.Box < 0 })
}

// firstNew returns the index of the one task that is new.
func firstNew(was, is []plan.Task) int {
	for i, t := range was {
		if t.Name != is[i].Name || t.Depth != is[i].Depth || t.Checked != is[i].Checked || t.Details != is[i].Details {
			return i
		}
	}
	return len(was)
}

// cover has a task do what a criterion asks for.
func (e *editor) cover(s *Step, i int) error {
	was := e.mate[i]
	if was < 0 {
		return e.add(s, i, "")
	}
	id := e.task[was]
	if id == "" {
		s.Why = "it was reworded, and had no task of its own"
		return e.add(s, i, "")
	}
	if e.settled(id) {
		if err := e.add(s, i, id); err != nil {
			return err
		}
		s.Why = "it was reworded; what was done stays as it is: " + e.task[was]
		return nil
	}
	return e.reword(s, i, was)
}

// reword gives an open task the new words of its criterion.
func (e *editor) reword(s *Step, i, was int) error {
	c := &e.now.criteria[i]
	s.What, s.Was, s.Task = StepReworded, e.task[was], e.task[was]
	t, _ := e.p.Task(s.Task)
	same := normal(t.Details) == normal(c.Details)
	if !same && e.asMade(t, was) && e.tried(t.ID) == Untouched {
		if err := e.insert(&s.Task, c, plan.Place{After: t.ID}); err == nil {
			return e.edit(plan.Remove(e.task[was]), e.task[was])
		}
	}
	if normal(t.Name) != normal(c.Text) {
		if err := e.edit(plan.Rename(t.ID, written(c)), ""); err != nil {
			return err
		}
	} else {
		s.What = StepKept
	}
	if !same {
		s.Why = "its details in the plan stay as they are"
	}
	return nil
}

// asMade says that a task has nothing beneath it and says what its criterion said.
func (e *editor) asMade(t plan.Task, was int) bool {
	return len(t.Children)+len(t.After) == 0 && sum(t.Name, t.Details) == e.was.Criteria[was].Sum
}

// settled says that nothing is left to do of a task.
func (e *editor) settled(id string) bool {
	t, _ := e.p.Task(id)
	return t.Checked || t.Mark.State == plan.MarkSkipped || e.progress(id) == Settled
}

// tried returns the most that is known of a task or of one beneath it.
func (e *editor) tried(id string) Progress {
	t, _ := e.p.Task(id)
	most := e.progress(id)
	switch {
	case t.Checked || t.Mark.State == plan.MarkSkipped:
		most = Settled
	case t.Mark != plan.Mark{}:
		most = max(most, Tried)
	}
	for _, c := range t.Children {
		most = max(most, e.tried(c))
	}
	return most
}

// drop takes the task of a criterion that is gone out of the plan, if nobody did anything with it.
func (e *editor) drop(s *Step, was int) {
	s.Task = e.task[was]
	if s.Task == "" {
		s.Why = "it had no task of its own"
		return
	}
	t, _ := e.p.Task(s.Task)
	switch {
	case e.tried(t.ID) == Settled:
		s.Why = "it is done, or was skipped"
	case e.tried(t.ID) == Tried:
		s.Why = "it was attempted"
	case len(t.Children) > 0:
		s.Why = "other tasks are beneath it"
	case !e.asMade(t, was):
		s.Why = "a person changed it"
	default:
		if err := e.edit(plan.Remove(t.ID), t.ID); err != nil {
			s.Why = err.Error()
			return
		}
		s.What, s.Task = StepRemoved, t.ID
	}
}

// add makes the task of a criterion: behind next, or where it belongs.
func (e *editor) add(s *Step, i int, next string) error {
	c := &e.now.criteria[i]
	s.What = StepAdded
	err := plan.ErrTangled
	if next != "" {
		err = e.insert(&s.Task, c, plan.Place{After: next})
	}
	if at, ok := e.place(i); errors.Is(err, plan.ErrTangled) && ok {
		err = e.insert(&s.Task, c, at)
	} else if errors.Is(err, plan.ErrTangled) && c.component != "" {
		err = e.component(&s.Task, c)
	}
	if errors.Is(err, plan.ErrTangled) {
		err = e.insert(&s.Task, c, plan.Place{})
	}
	if err != nil {
		return err
	}
	want := map[string]bool{}
	if c.Checked {
		want[s.Task] = true
	}
	for t, _ := e.p.Task(s.Task); t.Parent != "" && !c.Checked; { // it has something open beneath it
		if t, _ = e.p.Task(t.Parent); t.Checked {
			want[t.ID] = false
		}
	}
	if len(want) == 0 {
		return nil
	}
	return e.edit(plan.Boxes(want), "")
}

// place returns where the task of a criterion belongs: behind that of the criterion before it,
// or before that of the one behind it, or at the end of what is around it.
func (e *editor) place(i int) (plan.Place, bool) {
	c := &e.now.criteria[i]
	beside := func(j int) bool {
		o := &e.now.criteria[j]
		return o.Heading == c.Heading && o.Parent == c.Parent && e.link[j] != ""
	}
	for j := i - 1; j >= 0 && e.now.criteria[j].Heading == c.Heading; j-- {
		if beside(j) {
			return plan.Place{After: e.link[j]}, true
		}
	}
	for j := i + 1; j < len(e.link) && e.now.criteria[j].Heading == c.Heading; j++ {
		if beside(j) {
			return plan.Place{Before: e.link[j]}, true
		}
	}
	if c.Parent >= 0 && e.link[c.Parent] != "" {
		return plan.Place{Under: e.link[c.Parent]}, true
	}
	for t := range e.p.All() {
		if t.Kind == plan.KindComponent && t.Name == c.name {
			return plan.Place{Under: t.ID}, true
		}
	}
	return plan.Place{}, c.name == ""
}

// insert adds a task at a place and sets id to its ID. Where its details would be read as
// something else, they are left out: the specification has them.
func (e *editor) insert(id *string, c *criterion, at plan.Place) error {
	return e.added(id, func(details string) plan.Change { return plan.AddDetailed(c.Raw, details, at) }, c.Details)
}

// component is insert beneath a new heading.
func (e *editor) component(id *string, c *criterion) error {
	return e.added(id, func(details string) plan.Change { return plan.AddComponent(c.component, c.Raw, details) }, c.Details)
}

func (e *editor) added(id *string, change func(details string) plan.Change, details string) error {
	before := items(e.p)
	err := e.edit(change(details), "")
	if errors.Is(err, plan.ErrTangled) && details != "" {
		err = e.edit(change(""), "")
	}
	if err != nil {
		return err
	}
	after := items(e.p)
	*id = after[firstNew(before, after)].ID
	return nil
}

// written is the text of a criterion as it is written, without the comments at its end.
func written(c *criterion) string {
	text, _, _ := strings.Cut(c.Raw, "<!--")
	if items := markdown.Parse([]byte("- [ ] " + text)).Items(); len(items) == 1 && items[0].Text == c.Text {
		return strings.TrimSpace(text)
	}
	return c.Text
}
