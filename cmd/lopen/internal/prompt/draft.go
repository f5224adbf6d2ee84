package prompt

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"text/template"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/writer/plain"
)

// A Source is what the prompts of a run are written from.
type Source struct {
	Documents
	Module string
	Unit   string // leaf, task or component
	Check  string // the command that judges a task; "" for none
	// Warn reports a document that was left out. Two warnings of one key are the same one.
	Warn func(key, text string)
}

// An Attempt is the start of the command that a prompt is for.
type Attempt struct {
	Unit     string    // ID of the task that is worked on
	Leaves   []string  // IDs of the leaves of the unit that are to be done
	Number   int       // of the attempt, from 1
	Failures []Failure // of the attempts before it, the newest first
}

// A Part is a part of a prompt: its size, and where its text is from.
type Part struct {
	Name   string
	Bytes  int
	Origin string
	Cut    bool // there is more of it at the origin
}

// A Draft is what one prompt is written from.
type Draft struct {
	Parts     []Part
	Resources []session.Resource // the sections and documents that the prompt holds or names

	p    data
	plan *plan.Plan
}

// Draft collects what the prompt for an attempt holds. st names the tasks, p has their text.
// A document that cannot be read is left out, with a warning.
func (s *Source) Draft(p *plan.Plan, st *session.State, at Attempt) (*Draft, error) {
	t, _ := st.Task(at.Unit)
	d := &Draft{p: data{Module: s.Module, TaskID: at.Unit, Task: oneLine(t.Name, maxTitle), Unit: s.Unit, Attempt: at.Number}, plan: p}
	names, links := []string{t.Name}, d.tasks(at.Unit, at.Leaves)
	for id := t.Parent; id != ""; {
		parent, ok := st.Task(id)
		if !ok {
			break
		}
		names = append(names, parent.Name)
		id = parent.Parent
	}
	left := room(maxTitle)
	for _, name := range names[1:] {
		if name = oneLine(name, maxName); left.fits(len(name)) {
			d.p.Path = append(d.p.Path, name)
		}
	}
	slices.Reverse(d.p.Path)
	if c, ok := st.Task(tasks.Component(st, at.Unit)); ok {
		d.p.Component = oneLine(c.Name, maxName)
	}
	d.prose(at.Unit)
	d.siblings(st, t)
	given, err := s.sections(links, names)
	if err != nil {
		return nil, err
	}
	d.specification(given)
	s.research(d, links, given)
	d.done(st)
	d.failures(at.Failures)
	d.check(s.Check)
	return d, nil
}

// Write executes a template with the draft.
func (d *Draft) Write(t *template.Template) ([]byte, error) {
	var b bytes.Buffer
	if err := t.Execute(&b, d.p); err != nil {
		return nil, fmt.Errorf("write prompt: %w", err)
	}
	return b.Bytes(), nil
}

// sections finds what the specification says of a task. Without a specification the plan
// alone has to do.
func (s *Source) sections(links, names []string) ([]cache.Given, error) {
	if _, err := s.Outlines(s.Spec); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		s.Warn("no-spec", fmt.Sprintf("no specification is given along: %v", err))
		return nil, nil
	}
	dir := path.Dir(s.Spec)
	given, err := cache.ForTask(func(name string) (*cache.Outline, error) { return s.Outlines(path.Join(dir, name)) },
		path.Base(s.Spec), links, names)
	for i := range given {
		given[i].Path = path.Join(dir, given[i].Path) // as the agent, who works in the project, finds it
	}
	return given, err
}

func (d *Draft) part(name string, size int, cut bool, origin string) {
	if size > 0 || cut {
		d.Parts = append(d.Parts, Part{Name: name, Bytes: size, Origin: origin, Cut: cut})
	}
}

// lines is a place in the plan.
func (d *Draft) lines(from, to int) string {
	if from == to {
		return fmt.Sprintf("%s:%d", d.p.Plan.Path, from)
	}
	return fmt.Sprintf("%s:%d-%d", d.p.Plan.Path, from, to)
}

// tasks gathers the tasks of a unit and returns their links.
func (d *Draft) tasks(unit string, leaves []string) (links []string) {
	d.p.Plan = planFile{Path: lifecycle.PlanPath(d.p.Module), Title: oneLine(d.plan.Title(), maxName), From: oneLine(d.plan.Origin(), maxPath)}
	if d.p.Plan.Title == "Plan: "+d.p.Module {
		d.p.Plan.Title = "" // as lopen titles each
	}
	d.Resources = append(d.Resources, session.Resource{Kind: "plan", Path: d.p.Plan.Path})
	left := room(maxTasks)
	for _, id := range leaves {
		t, ok := d.plan.Task(id)
		if !ok {
			continue
		}
		links = append(links, t.Links...)
		name := oneLine(t.Name, maxTitle)
		if !left.fits(len(name) + len(id) + maxFrame) {
			d.p.MoreTasks++
			continue
		}
		details, cut := left.take(t.Details)
		d.p.Tasks = append(d.p.Tasks, planTask{ID: id, Name: name, Details: details, Line: t.Line, Truncated: cut})
		d.part("task", len(name), false, d.lines(t.Line, t.Line))
		d.part("its details", len(details), cut, d.lines(t.Line, t.Line))
	}
	if d.p.MoreTasks > 0 {
		d.part("task", 0, true, fmt.Sprintf("%s (%d more)", d.p.Plan.Path, d.p.MoreTasks))
	}
	left = maxAbove
	t, _ := d.plan.Task(unit)
	for t.Parent != "" { // the innermost one has room first
		t, _ = d.plan.Task(t.Parent)
		if t.Details != "" && left.fits(maxFrame) {
			details, cut := left.take(t.Details)
			d.p.Above = append(d.p.Above, planTask{ID: t.ID, Name: oneLine(t.Name, maxName), Details: details, Line: t.Line, Truncated: cut})
			d.part("details above it", len(details), cut, d.lines(t.Line, t.Line))
		}
	}
	slices.Reverse(d.p.Above)
	return links
}

// prose gathers what the plan says around a unit and above its first task.
func (d *Draft) prose(unit string) {
	around := d.plan.Around(unit)
	left := room(maxAround)
	for _, a := range slices.Backward(around) { // the innermost heading has room first
		if !left.fits(maxFrame) {
			break
		}
		d.p.Around = append(d.p.Around, d.passage("around it in the plan", a, &left))
	}
	slices.Reverse(d.p.Around)
	if intro := d.plan.Intro(); intro.Text != "" {
		left = maxIntro
		d.p.Intro = []passage{d.passage("introduction of the plan", intro, &left)}
	}
}

func (d *Draft) passage(name string, a plan.Passage, left *room) passage {
	text, cut := left.take(a.Text)
	d.part(name, len(text), cut, d.lines(a.Line, a.End))
	return passage{Line: a.Line, End: a.End, Text: text, Truncated: cut}
}

// siblings gathers the tasks at the same place of the plan, the nearest ones.
func (d *Draft) siblings(st *session.State, t session.Task) {
	var all []sibling
	at := 0
	for s := range st.All() {
		switch {
		case s.ID == t.ID:
			at = len(all)
		case s.Parent == t.Parent:
			all = append(all, sibling{ID: s.ID, Name: oneLine(s.Name, maxName), State: stateText(s.State)})
		}
	}
	left, size := room(maxSiblings), 0
	from, to := at, at
	for from > 0 || to < len(all) {
		next := &all[max(from-1, 0)]
		behind := from == 0 || to < len(all) && to-at <= at-from
		if behind {
			next = &all[to]
		}
		if !left.fits(len(next.Name) + len(next.State) + 8) {
			break
		}
		if size += len(next.Name); behind {
			to++
		} else {
			from--
		}
	}
	d.p.Siblings, d.p.MoreSiblings = all[from:to], len(all)-(to-from)
	d.part("siblings", size, d.p.MoreSiblings > 0, "state of the session")
}

func stateText(s session.TaskState) string {
	switch s {
	case session.TaskComplete:
		return "done"
	case session.TaskFailed:
		return "failed"
	case session.TaskSkipped:
		return "skipped"
	case session.TaskInProgress:
		return "in progress"
	}
	return "open"
}

// specification gathers the sections that were found.
func (d *Draft) specification(given []cache.Given) {
	left := room(maxHeaders)
	for i, s := range given {
		name, header := oneLine(s.Path, maxPath), oneLine(s.Header, maxName)
		if !left.fits(len(name) + len(header) + maxFrame) {
			d.part("specification", 0, true, fmt.Sprintf("%s (%d more sections)", name, len(given)-i))
			break
		}
		d.p.Sections = append(d.p.Sections, section{Path: name, Header: header, Text: valid(string(s.Content)), Truncated: s.Truncated})
		d.Resources = append(d.Resources, session.Resource{Kind: "specification", Path: s.Path, Header: s.Header, SHA256: s.SHA256, Bytes: len(s.Content)})
		origin := name + "#" + header
		if s.LastLine > 0 {
			origin = fmt.Sprintf("%s:%d-%d#%s", name, s.FirstLine, s.LastLine, header)
		}
		d.part("specification", len(s.Content), s.Truncated, origin)
	}
}

// done gathers the tasks that are done, the last ones of the plan.
func (d *Draft) done(st *session.State) {
	var all []string
	for t := range st.All() {
		if len(t.Children) == 0 && t.State == session.TaskComplete {
			all = append(all, oneLine(t.Name, maxName))
		}
	}
	left, size := room(maxDone), 0
	for _, name := range slices.Backward(all) {
		if !left.fits(len(name) + len("- \n")) {
			break
		}
		d.p.Done, size = append(d.p.Done, name), size+len(name)
	}
	slices.Reverse(d.p.Done)
	d.p.MoreDone = len(all) - len(d.p.Done)
	d.part("done already", size, d.p.MoreDone > 0, "state of the session")
}

// failures gathers how the last attempts failed.
func (d *Draft) failures(all []Failure) {
	if len(all) == 0 || all[0].Failure == "" {
		return
	}
	most := tailInPrompt
	for n, f := range all {
		if n > 0 {
			most = tailOfEarlier
		}
		out := Failure{Attempt: f.Attempt, Failure: oneLine(f.Failure, maxFailure)}
		var cut [2]bool
		out.Output, cut[0] = tail(f.Output, most)
		out.Check, cut[1] = tail(f.Check, most)
		d.p.Failures = append(d.p.Failures, out)
		d.part(fmt.Sprintf("failure of attempt %d", f.Attempt), len(out.Failure)+len(out.Output)+len(out.Check),
			cut[0] || cut[1], "lopen session log --task "+plain.Quote(path.Base(d.p.TaskID)))
	}
	d.p.Last = &d.p.Failures[0]
}

// check gathers how the task is judged.
func (d *Draft) check(command string) {
	left := room(maxCheck)
	text, cut := left.take(command)
	if d.p.Check = text; cut {
		d.p.Check += " ... (cut)"
	}
	d.part("check", len(text), cut, "setting check")
}
