package prompt

import (
	_ "embed"
	"strings"
	"text/template"

	"github.com/lopen-dev/lopen/writer/plain"
)

//go:embed prompt.tmpl
var builtIn string

// Help is what `lopen help prompt` prints: the parts of a prompt, each field of a template, and
// each variable of the command and of the check.
//
//go:embed help.txt
var Help string

// data is what a template of --prompt is executed with. Texts of files and of earlier
// output are bounded; Truncated and the More numbers say what was left out.
type data struct {
	Module, Component, TaskID, Task, Unit string
	Attempt                               int
	Path                                  []string   // the names of the items above the task, outermost first
	Plan                                  planFile   // where the tasks are from
	Tasks                                 []planTask // what is to be done: one, or a unit's open leaves
	MoreTasks                             int
	Above                                 []planTask // the items above the task that have details, outermost first
	Around                                []passage  // headings and prose of the plan around the task
	Intro                                 []passage  // the text above the plan's first task: one, or none
	Siblings                              []sibling  // the nearest tasks at the same place of the plan, in its order
	MoreSiblings                          int
	Sections                              []section  // of the specification
	Research                              []document // linked ones with their text, then others of the module
	Done                                  []string   // names of the tasks that are done, the last ones of the plan
	MoreDone                              int
	Check                                 string    // the command that judges; "" for none
	Last                                  *Failure  // from the second attempt on
	Failures                              []Failure // Last and the two before it, the newest first
}

// A planFile is a plan and what it was made from, as paths in the project.
type planFile struct{ Path, Title, From string }

// A planTask is one task to be done.
type planTask struct {
	ID, Name, Details string
	Line              int // in the plan
	Truncated         bool
}

// A passage is a part of the plan that belongs to no task.
type passage struct {
	Line, End int // its first and its last line in the plan, the part that was cut off included
	Text      string
	Truncated bool
}

// A sibling is another task with the same parent. State is open, done, failed,
// skipped or in progress.
type sibling struct{ ID, Name, State string }

// A section is a part of a document that belongs to the task.
type section struct {
	Path, Header, Text string
	Truncated          bool
}

// A Failure is how an attempt failed: why, and the ends of what the command and the check
// printed, without credentials.
type Failure struct {
	Failure, Output, Check string
	Attempt                int // its number; 0 where it is not known
}

// Parse parses the template of --prompt; "" is the built-in one.
func Parse(text string) (*template.Template, error) {
	if text == "" {
		text = builtIn
	}
	return template.New("prompt").Funcs(template.FuncMap{"indent": indent, "fence": func(text string) string { return plain.Fence("", text) }, "join": strings.Join}).Option("missingkey=error").Parse(text)
}
