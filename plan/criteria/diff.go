package criteria

import (
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/plan"
)

// What became of a section or a criterion.
const (
	Added    = "added"
	Changed  = "changed" // a section's text
	Reworded = "reworded"
	Gone     = "gone"
)

// A Change is what became of a section, or of the criterion that Text is of.
type Change struct {
	What    string // Added, Changed, Reworded or Gone
	Section string // its path, "" above the first heading
	Line    int    // in the specification, 0 of what is gone, and of sections
	Text    string // first line of the criterion as it is now, "" of what is gone
	Was     string // the former one, at most 200 bytes of it; equal to Text if only the details changed
	Task    string // ID of the task that the former one became, "" for none
}

// A Diff is how a specification differs from a record.
type Diff struct {
	Sections []Change // in file order, those that are gone last
	Criteria []Change // likewise, without what the plan covers already

	*match
	link []string // of each criterion now its task in the plan, "" for none
	task []string // of each criterion in the record likewise
	todo []int    // of each of Criteria its index in the specification, or of what is gone in the record
}

// Compare returns how a specification differs from the record, given the plan as it is now.
func (r *Record) Compare(now *Specification, p *plan.Plan) *Diff {
	d := &Diff{match: newMatch(r, now), Sections: sections(r.Sections, now.sections)}
	t := newTasks(p)
	d.task, d.link = make([]string, len(r.Criteria)), make([]string, len(now.criteria))
	d.former(t)
	for i := range now.criteria {
		c, was := &now.criteria[i], d.mate[i]
		change := Change{What: Added, Section: d.path(i), Line: c.Line, Text: c.Text}
		switch {
		case was >= 0 && r.Criteria[was].Sum == c.sum:
			d.link[i] = d.task[was]
			continue
		case was >= 0 && d.task[was] != "" && t.sum(d.task[was]) == c.sum:
			d.link[i] = d.task[was]
			continue
		case was >= 0:
			change.What, change.Was, change.Task = Reworded, r.Criteria[was].Text, d.task[was]
		}
		if d.link[i] = t.find(now, i); d.link[i] == "" && c.Text != "" {
			d.Criteria, d.todo = append(d.Criteria, change), append(d.todo, i)
		}
	}
	for i, was := range r.Criteria {
		if d.back[i] >= 0 {
			continue
		}
		if d.task[i] == "" { // a person changed it, and it is not that of a criterion that was added
			d.task[i] = t.claim(was.Task)
		}
		if was.Task == "" || d.task[i] != "" {
			d.Criteria = append(d.Criteria, Change{What: Gone, Section: d.pathWas(i), Was: was.Text, Task: d.task[i]})
			d.todo = append(d.todo, i)
		}
	}
	return d
}

// Again compares the same specification and record, given another plan.
func (d *Diff) Again(p *plan.Plan) *Diff { return d.was.Compare(d.now, p) }

// former finds the tasks that the criteria in the record became: first of those that are still
// there, as equal tasks get other numbers when one of them goes.
func (d *Diff) former(t *tasks) {
	for i := range d.task {
		if d.back[i] >= 0 {
			d.task[i] = t.claim(d.was.Criteria[i].Task)
		}
	}
	for i, was := range d.was.Criteria {
		if d.back[i] >= 0 && d.task[i] == "" && was.Task != "" {
			d.task[i] = t.alike(&d.was.Criteria[i])
		}
	}
	for i, was := range d.was.Criteria {
		if d.back[i] < 0 && t.sum(was.Task) == was.Sum {
			d.task[i] = t.claim(was.Task)
		}
	}
}

// Uncovered returns the number of criteria that no task covers: they were added or reworded.
func (d *Diff) Uncovered() (n int) {
	for _, c := range d.Criteria {
		if c.What != Gone {
			n++
		}
	}
	return n
}

// Empty says that nothing differs.
func (d *Diff) Empty() bool { return len(d.Sections)+len(d.Criteria) == 0 }

// sections compares sections by their paths.
func sections(was, now []section) (all []Change) {
	left := map[section]int{}
	paths := map[string]int{}
	for _, s := range was {
		left[s]++
		paths[s.Path]++
	}
	var other []section // those that differ
	for _, s := range now {
		if left[s] > 0 {
			left[s]--
			paths[s.Path]--
		} else {
			other = append(other, s)
		}
	}
	for _, s := range other {
		switch {
		case paths[s.Path] > 0:
			paths[s.Path]--
			all = append(all, Change{What: Changed, Section: s.Path})
		case s.Sum != "": // what is empty has something below it that differs, or says nothing
			all = append(all, Change{What: Added, Section: s.Path})
		}
	}
	for _, s := range was {
		if left[s] > 0 && paths[s.Path] > 0 {
			left[s]--
			paths[s.Path]--
			if s.Sum != "" {
				all = append(all, Change{What: Gone, Section: s.Path})
			}
		}
	}
	return all
}

// maxEqual bounds how many tasks of one text are looked at.
const maxEqual = 100

// tasks are those of a plan, by text.
type tasks struct {
	p       *plan.Plan
	byText  map[string][]string // IDs, in file order
	claimed map[string]bool     // by a criterion
}

func newTasks(p *plan.Plan) *tasks {
	t := &tasks{p: p, byText: map[string][]string{}, claimed: map[string]bool{}}
	for task := range p.All() {
		if task.Box >= 0 {
			t.byText[normal(task.Name)] = append(t.byText[normal(task.Name)], task.ID)
		}
	}
	return t
}

func normal(text string) string { return strings.Join(strings.Fields(text), " ") }

// sum is the hash of a task, as if it were a criterion.
func (t *tasks) sum(id string) string {
	task, _ := t.p.Task(id)
	return sum(task.Name, task.Details)
}

// claim gives a task to a criterion. It returns "" if there is no such task, or another
// criterion has it.
func (t *tasks) claim(id string) string {
	if task, ok := t.p.Task(id); !ok || task.Box < 0 || t.claimed[id] {
		return ""
	}
	t.claimed[id] = true
	return id
}

// alike is claim for a task that has another ID by now, as the heading above it has another
// name or one of several equal tasks is gone: the only one of that text, or one that is as it was made.
func (t *tasks) alike(c *remembered) string {
	free := slices.DeleteFunc(slices.Clone(t.byText[c.Text]), func(id string) bool { return t.claimed[id] })
	if len(free) > maxEqual {
		free = free[:maxEqual]
	}
	for _, id := range free {
		if len(free) == 1 || t.sum(id) == c.Sum {
			return t.claim(id)
		}
	}
	return ""
}

// find returns a task of a criterion's text that no other criterion has: one of the same
// component and parent before any other.
func (t *tasks) find(s *Specification, i int) string {
	c := &s.criteria[i]
	parent := ""
	if c.Parent >= 0 {
		parent = s.criteria[c.Parent].Text
	}
	found, seen := "", 0
	for _, id := range t.byText[normal(c.Text)] {
		if t.claimed[id] {
			continue
		}
		if task, _ := t.p.Task(id); t.name(task.Component) == c.name && (parent == "" || t.name(task.Parent) == parent) {
			found = id
			break
		}
		if seen++; seen == 1 {
			found = id
		}
		if seen == maxEqual {
			break
		}
	}
	t.claimed[found] = found != ""
	return found
}

func (t *tasks) name(id string) string {
	task, _ := t.p.Task(id)
	return task.Name
}
