package convert

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/plan/markdown"
)

// ErrNoTasks says that there is nothing in a file that a plan could be made of.
var ErrNoTasks = errors.New("nothing to make a plan of")

// A Result is the plan that was made of a list. Each of its boxes is a task of the plan or
// one of Left.
type Result struct {
	Content  []byte
	Kind     string        // of the list: Spec Kit, Kiro, OpenSpec, ralphex, GitHub issues, prd.json, Task Master or Markdown
	Markdown bool          // and not JSON
	Boxes    int           // lines with a box; of JSON, its stories or issues as well
	Tasks    int           // boxes of the plan
	Parents  int           // those of them with others beneath them, which run in their place
	Left     []plan.Remark // what is no task, in the order of the lines
	Notes    []plan.Remark // what else the plan does not say
}

// Plan makes the content of a new plan of a list: any Markdown with checkboxes, the tasks.md
// of Spec Kit, Kiro and OpenSpec, a plan of ralphex, a prd.json, issues as gh prints them
// with --json. What it is follows from what it has. Without any task the error wraps
// ErrNoTasks; the Result has what was left out.
func Plan(title string, src []byte) (Result, error) {
	read := readMarkdown
	if isJSON(src) {
		read = readJSON
	}
	l, err := read(src)
	if err != nil {
		return Result{}, fmt.Errorf("make plan: %w", err)
	}
	res := Result{Kind: l.kind, Markdown: !isJSON(src), Boxes: l.boxes, Left: l.left}
	slices.SortStableFunc(res.Left, func(a, b plan.Remark) int { return a.Line - b.Line })
	if len(l.items) == 0 {
		if res.Boxes > 0 {
			return res, fmt.Errorf("make plan: %w: of %s none is a task", ErrNoTasks, count(res.Boxes, "box"))
		}
		return res, fmt.Errorf("make plan: %w: no checkbox such as `- [ ] task` below %s", ErrNoTasks, count(len(l.headings), "heading"))
	}
	res.Content, res.Notes = l.plan(title)
	p := plan.Parse(res.Content)
	if err := p.Usable(); err != nil {
		return Result{}, fmt.Errorf("make plan: the plan that would be made: %w", err)
	}
	for t := range p.All() {
		if t.Box >= 0 {
			res.Tasks++
			res.Parents += min(len(t.Children), 1)
		}
	}
	return res, nil
}

// plan writes the plan of a list.
func (l *list) plan(title string) (content []byte, notes []plan.Remark) {
	notes = l.notes
	bare := make([]bool, len(l.headings))
	for _, it := range l.items {
		for h := it.Heading; h >= 0 && !bare[h]; h = l.headings[h].Parent {
			bare[h] = l.keep[h]
		}
	}
	content, kept := newPlan(title, l.headings, bare, l.items)
	if !kept {
		notes = append(notes, plan.Remark{Line: 1, Text: "the lines below the tasks would have become tasks, and are left out"})
	}
	if slices.ContainsFunc(l.waits, func(w []ref) bool { return len(w) > 0 }) {
		notes = append(notes, l.order(plan.Parse(content))...)
		content, _ = newPlan(title, l.headings, bare, l.items)
	}
	whole, kept := withProse(content, title, l.headings, l.keep, l.items, l.prose)
	if !kept {
		notes = append(notes, plan.Remark{Line: 1, Text: "the text between the tasks would have changed them, and is left out"})
	}
	return whole, notes
}

// usable says why a list cannot be read.
func usable(src []byte, doc *markdown.Document) error {
	if doc.Over() == 0 && bytes.IndexByte(src, 0) < 0 {
		long := func(it markdown.Item) bool { return len(it.Text) > maxText }
		if !slices.ContainsFunc(doc.Items(), long) {
			return nil
		}
	}
	return plan.Parse(src).Usable()
}

// maxBoxes bounds the boxes of a list: a plan of as many tasks is what can be worked with.
const maxBoxes = 100_000

// tooMany says that a list has more than maxBoxes.
func tooMany(line int) error {
	return fmt.Errorf("line %d: more than %d boxes or entries: divide it", line, maxBoxes)
}

// maxText is a length of a task's text up to which plan need not be asked.
const maxText = 1 << 10

// A list is what a plan is written of. Offsets only say what stands before what.
type list struct {
	kind     string
	headings []markdown.Heading
	keep     []bool // headings that the plan has as headings
	items    []markdown.Item
	labels   [][]string     // of each item, the numbers that its tool calls it by
	waits    [][]ref        // of each item, what it says that it depends on
	prose    map[int]string // by the offset of what it stands before, -1 for the end
	boxes    int
	left     []plan.Remark
	notes    []plan.Remark
}

// leave notes boxes that are no tasks.
func (l *list) leave(line int, text string) {
	l.left = append(l.left, plan.Remark{Line: line, Text: text})
}
