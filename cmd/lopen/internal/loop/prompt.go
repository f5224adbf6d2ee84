package loop

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"text/template"
	"time"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/child"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/tasks"
)

//go:embed prompt.tmpl
var defaultPrompt string

// tailInPrompt is how much of the last attempt's output the next prompt quotes.
const tailInPrompt = 4 << 10

// Prompt is what a template of --prompt is executed with.
type Prompt struct {
	Module, Component, TaskID, Task, Unit string
	Attempt                               int
	Path                                  []string    // the names of the items above the task, outermost first
	Tasks                                 []PlanTask  // what is to be done: one, or a unit's open leaves
	Sections                              []Section   // of the specification
	Research                              []Document  // of the module
	Done                                  []string    // names of the tasks that are done
	Check                                 string      // the command that judges; "" for none
	Last                                  *LastOutput // from the second attempt on
}

// A PlanTask is one task to be done.
type PlanTask struct{ ID, Name, Details string }

// A Section is a part of a document that belongs to the task.
type Section struct {
	Path, Header, Text string
	Truncated          bool
}

// LastOutput is how the attempt before this one ended.
type LastOutput struct{ Failure, Output, Check string }

// ParsePrompt parses the template of --prompt; the empty text is the default one.
func ParsePrompt(text string) (*template.Template, error) {
	if text == "" {
		text = defaultPrompt
	}
	return template.New("prompt").Funcs(template.FuncMap{"indent": indent, "join": strings.Join}).Option("missingkey=error").Parse(text)
}

// compose writes the prompt for a unit of st and says which sections it holds.
func (r *Runner) compose(st *session.State, unit string, leaves []string, n int) ([]byte, []session.Resource, error) {
	t, _ := st.Task(unit)
	p := Prompt{Module: r.cfg.Module, TaskID: unit, Task: t.Name, Unit: r.cfg.Unit, Attempt: n, Check: r.cfg.Check}
	for id := t.Parent; id != ""; {
		parent, ok := st.Task(id)
		if !ok {
			break
		}
		p.Path = append([]string{parent.Name}, p.Path...)
		id = parent.Parent
	}
	names, links := []string{t.Name}, []string{}
	for _, id := range leaves {
		pt, ok := r.plan.Task(id)
		if !ok {
			continue
		}
		p.Tasks = append(p.Tasks, PlanTask{ID: id, Name: pt.Name, Details: pt.Details})
		links = append(links, pt.Links...)
	}
	for i := len(p.Path) - 1; i >= 0; i-- {
		names = append(names, p.Path[i])
	}
	if c, ok := st.Task(tasks.Component(st, unit)); ok {
		p.Component = c.Name
	}
	for task := range st.All() {
		if len(task.Children) == 0 && task.State == session.TaskComplete {
			p.Done = append(p.Done, task.Name)
		}
	}
	given, err := r.sections(links, names)
	if err != nil {
		return nil, nil, err
	}
	resources := []session.Resource{{Kind: "plan", Path: lifecycle.PlanPath(r.cfg.Module)}}
	for _, g := range given {
		g.Path = path.Join(path.Dir(r.cfg.Spec), g.Path) // as the agent, who works in the project, finds it
		p.Sections = append(p.Sections, Section{Path: g.Path, Header: g.Header, Text: string(g.Content), Truncated: g.Truncated})
		resources = append(resources, session.Resource{Kind: "specification", Path: g.Path, Header: g.Header, SHA256: g.SHA256, Bytes: len(g.Content)})
	}
	docs, researched := r.research()
	p.Research = docs
	resources = append(resources, researched...)
	if last, ok := r.last[unit]; ok {
		p.Last = &LastOutput{Failure: last.failure, Output: tail(last.output), Check: tail(last.check)}
	}
	var b bytes.Buffer
	if err := r.cfg.Prompt.Execute(&b, p); err != nil {
		return nil, nil, fmt.Errorf("write prompt: %w", err)
	}
	return b.Bytes(), resources, nil
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
	return cache.ForTask(func(name string) (*cache.Outline, error) { return r.cfg.Outlines(path.Join(dir, name)) },
		path.Base(r.cfg.Spec), links, names)
}

func tail(text string) string {
	return strings.ToValidUTF8(string(child.LastLines([]byte(text), tailInPrompt)), "\uFFFD")
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}

func round(d time.Duration) time.Duration {
	if d < time.Minute {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}
