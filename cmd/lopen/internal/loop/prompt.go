package loop

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
)

//go:embed prompt.tmpl
var defaultPrompt string

// PromptHelp is what `lopen help prompt` says: the parts of a prompt, each field of
// Prompt, and each variable of the command and of the check.
//
//go:embed prompt.txt
var PromptHelp string

// Prompt is what a template of --prompt is executed with. Texts of files and of earlier
// output are bounded; what Truncated says of them holds for the More numbers as well.
type Prompt struct {
	Module, Component, TaskID, Task, Unit string
	Attempt                               int
	Path                                  []string   // the names of the items above the task, outermost first
	Plan                                  PlanFile   // where the tasks are from
	Tasks                                 []PlanTask // what is to be done: one, or a unit's open leaves
	MoreTasks                             int
	Above                                 []PlanTask // the items above the task that have details, outermost first
	Around                                []Passage  // headings and prose of the plan around the task
	Intro                                 []Passage  // the text above the plan's first task: one, or none
	Siblings                              []Sibling  // the nearest tasks at the same place of the plan, in its order
	MoreSiblings                          int
	Sections                              []Section  // of the specification
	Research                              []Document // linked ones with their text, then others of the module
	Done                                  []string   // names of the tasks that are done, the last ones of the plan
	MoreDone                              int
	Check                                 string       // the command that judges; "" for none
	Last                                  *LastOutput  // from the second attempt on
	Failures                              []LastOutput // Last and the two before it, the newest first
}

// A PlanFile is a plan and what it was made from, as paths in the project.
type PlanFile struct{ Path, Title, From string }

// A PlanTask is one task to be done.
type PlanTask struct {
	ID, Name, Details string
	Line              int // in the plan
	Truncated         bool
}

// A Passage is a part of the plan that belongs to no task.
type Passage struct {
	Line, End int // its first and its last line in the plan, the part that was cut off included
	Text      string
	Truncated bool
}

// A Sibling is a task beside the one that is to be done. State is open, done, failed,
// skipped or in progress.
type Sibling struct{ ID, Name, State string }

// A Section is a part of a document that belongs to the task.
type Section struct {
	Path, Header, Text string
	Truncated          bool
}

// LastOutput is how an earlier attempt ended.
type LastOutput struct {
	Failure, Output, Check string
	Attempt                int // its number; 0 where it is not known
}

// ParsePrompt parses the template of --prompt; the empty text is the default one.
func ParsePrompt(text string) (*template.Template, error) {
	if text == "" {
		text = defaultPrompt
	}
	return template.New("prompt").Funcs(template.FuncMap{"indent": indent, "fence": fence, "join": strings.Join}).Option("missingkey=error").Parse(text)
}

// compose writes the prompt for a unit of st and says which sections it holds.
func (r *Runner) compose(st *session.State, unit string, leaves []string, n int) ([]byte, []session.Resource, error) {
	g, err := r.gather(st, unit, leaves, n)
	if err != nil {
		return nil, nil, err
	}
	text, err := g.write(r.cfg.Prompt)
	return text, g.resources, err
}

func (g *gathered) write(t *template.Template) ([]byte, error) {
	var b bytes.Buffer
	if err := t.Execute(&b, g.p); err != nil {
		return nil, fmt.Errorf("write prompt: %w", err)
	}
	return b.Bytes(), nil
}

// gather collects what the prompt for a unit of st holds.
func (r *Runner) gather(st *session.State, unit string, leaves []string, n int) (*gathered, error) {
	t, _ := st.Task(unit)
	g := &gathered{p: Prompt{Module: r.cfg.Module, TaskID: unit, Task: oneLine(t.Name, maxTitle), Unit: r.cfg.Unit, Attempt: n}, plan: r.plan}
	names, links := []string{t.Name}, g.tasks(unit, leaves)
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
			g.p.Path = append(g.p.Path, name)
		}
	}
	slices.Reverse(g.p.Path)
	if c, ok := st.Task(tasks.Component(st, unit)); ok {
		g.p.Component = oneLine(c.Name, maxName)
	}
	g.prose(unit)
	g.siblings(st, t)
	given, err := r.sections(links, names)
	if err != nil {
		return nil, err
	}
	g.specification(given)
	r.research(g, links, given)
	g.done(st)
	g.failures(r.last[unit])
	g.check(r.cfg.Check)
	return g, nil
}

// sections finds what the specification says of a task. Without a specification
// the plan alone has to do; one that cannot be read is said once.
func (r *Runner) sections(links, names []string) ([]cache.Given, error) {
	if _, err := r.cfg.Outlines(r.cfg.Spec); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		r.once("no-spec", fmt.Sprintf("no specification is given along: %v", err))
		return nil, nil
	}
	dir := path.Dir(r.cfg.Spec)
	given, err := cache.ForTask(func(name string) (*cache.Outline, error) { return r.cfg.Outlines(path.Join(dir, name)) },
		path.Base(r.cfg.Spec), links, names)
	for i := range given {
		given[i].Path = path.Join(dir, given[i].Path) // as the agent, who works in the project, finds it
	}
	return given, err
}

func round(d time.Duration) time.Duration {
	if d < time.Minute {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}
