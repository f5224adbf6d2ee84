package loop

import (
	"fmt"
	"path"
	"slices"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/plan"
)

// A Part is a part of a prompt: how large it is, and where its text is from.
type Part struct {
	Name   string
	Bytes  int
	Origin string
	Cut    bool // there is more of it at the origin
}

// gathered is what a prompt is written from.
type gathered struct {
	p         Prompt
	plan      *plan.Plan
	parts     []Part
	resources []session.Resource
}

func (g *gathered) part(name string, size int, cut bool, origin string) {
	if size > 0 || cut {
		g.parts = append(g.parts, Part{Name: name, Bytes: size, Origin: origin, Cut: cut})
	}
}

// lines is a place in the plan.
func (g *gathered) lines(from, to int) string {
	if from == to {
		return fmt.Sprintf("%s:%d", g.p.Plan.Path, from)
	}
	return fmt.Sprintf("%s:%d-%d", g.p.Plan.Path, from, to)
}

// tasks gathers the tasks of a unit and returns their links.
func (g *gathered) tasks(unit string, leaves []string) (links []string) {
	g.p.Plan = PlanFile{Path: lifecycle.PlanPath(g.p.Module), Title: oneLine(g.plan.Title(), maxName), From: oneLine(g.plan.Origin(), maxPath)}
	if g.p.Plan.Title == "Plan: "+g.p.Module {
		g.p.Plan.Title = "" // as lopen titles each
	}
	g.resources = append(g.resources, session.Resource{Kind: "plan", Path: g.p.Plan.Path})
	left := room(maxTasks)
	for _, id := range leaves {
		t, ok := g.plan.Task(id)
		if !ok {
			continue
		}
		links = append(links, t.Links...)
		name := oneLine(t.Name, maxTitle)
		if !left.fits(len(name) + len(id) + maxFrame) {
			g.p.MoreTasks++
			continue
		}
		details, cut := left.take(t.Details)
		g.p.Tasks = append(g.p.Tasks, PlanTask{ID: id, Name: name, Details: details, Line: t.Line, Truncated: cut})
		g.part("task", len(name), false, g.lines(t.Line, t.Line))
		g.part("its details", len(details), cut, g.lines(t.Line, t.Line))
	}
	if g.p.MoreTasks > 0 {
		g.part("task", 0, true, fmt.Sprintf("%s (%d more)", g.p.Plan.Path, g.p.MoreTasks))
	}
	left = maxAbove
	t, _ := g.plan.Task(unit)
	for t.Parent != "" { // the innermost one has room first
		t, _ = g.plan.Task(t.Parent)
		if t.Details != "" && left.fits(maxFrame) {
			details, cut := left.take(t.Details)
			g.p.Above = append(g.p.Above, PlanTask{ID: t.ID, Name: oneLine(t.Name, maxName), Details: details, Line: t.Line, Truncated: cut})
			g.part("details above it", len(details), cut, g.lines(t.Line, t.Line))
		}
	}
	slices.Reverse(g.p.Above)
	return links
}

// prose gathers what the plan says around a unit and above its first task.
func (g *gathered) prose(unit string) {
	around := g.plan.Around(unit)
	left := room(maxAround)
	for _, a := range slices.Backward(around) { // the innermost heading has room first
		if !left.fits(maxFrame) {
			break
		}
		g.p.Around = append(g.p.Around, g.passage("around it in the plan", a, &left))
	}
	slices.Reverse(g.p.Around)
	if intro := g.plan.Intro(); intro.Text != "" {
		left = maxIntro
		g.p.Intro = []Passage{g.passage("introduction of the plan", intro, &left)}
	}
}

func (g *gathered) passage(name string, a plan.Passage, left *room) Passage {
	text, cut := left.take(a.Text)
	g.part(name, len(text), cut, g.lines(a.Line, a.End))
	return Passage{Line: a.Line, End: a.End, Text: text, Truncated: cut}
}

// siblings gathers the tasks at the same place of the plan, the nearest ones.
func (g *gathered) siblings(st *session.State, t session.Task) {
	var all []Sibling
	at := 0
	for s := range st.All() {
		switch {
		case s.ID == t.ID:
			at = len(all)
		case s.Parent == t.Parent:
			all = append(all, Sibling{ID: s.ID, Name: oneLine(s.Name, maxName), State: stateText(s.State)})
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
	g.p.Siblings, g.p.MoreSiblings = all[from:to], len(all)-(to-from)
	g.part("siblings", size, g.p.MoreSiblings > 0, "state of the session")
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
func (g *gathered) specification(given []cache.Given) {
	left := room(maxHeaders)
	for i, s := range given {
		name, header := oneLine(s.Path, maxPath), oneLine(s.Header, maxName)
		if !left.fits(len(name) + len(header) + maxFrame) {
			g.part("specification", 0, true, fmt.Sprintf("%s (%d more sections)", name, len(given)-i))
			break
		}
		g.p.Sections = append(g.p.Sections, Section{Path: name, Header: header, Text: valid(string(s.Content)), Truncated: s.Truncated})
		g.resources = append(g.resources, session.Resource{Kind: "specification", Path: s.Path, Header: s.Header, SHA256: s.SHA256, Bytes: len(s.Content)})
		origin := name + "#" + header
		if s.LastLine > 0 {
			origin = fmt.Sprintf("%s:%d-%d#%s", name, s.FirstLine, s.LastLine, header)
		}
		g.part("specification", len(s.Content), s.Truncated, origin)
	}
}

// done gathers the tasks that are done, the last ones of the plan.
func (g *gathered) done(st *session.State) {
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
		g.p.Done, size = append(g.p.Done, name), size+len(name)
	}
	slices.Reverse(g.p.Done)
	g.p.MoreDone = len(all) - len(g.p.Done)
	g.part("done already", size, g.p.MoreDone > 0, "state of the session")
}

// failures gathers how the last attempts failed.
func (g *gathered) failures(last lastOutput) {
	if last.failure == "" {
		return
	}
	most := tailInPrompt
	for n, f := range append([]lastOutput{last}, last.earlier...) {
		if n > 0 {
			most = tailOfEarlier
		}
		out := LastOutput{Attempt: f.attempt, Failure: oneLine(f.failure, maxFailure)}
		var cut [2]bool
		out.Output, cut[0] = tail(f.output, most)
		out.Check, cut[1] = tail(f.check, most)
		g.p.Failures = append(g.p.Failures, out)
		g.part(fmt.Sprintf("failure of attempt %d", f.attempt), len(out.Failure)+len(out.Output)+len(out.Check),
			cut[0] || cut[1], "lopen session log --task "+path.Base(g.p.TaskID))
	}
	g.p.Last = &g.p.Failures[0]
}

// check gathers how the task is judged.
func (g *gathered) check(command string) {
	left := room(maxCheck)
	text, cut := left.take(command)
	if g.p.Check = text; cut {
		g.p.Check += " ... (cut)"
	}
	g.part("check", len(text), cut, "setting check")
}
