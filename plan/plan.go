package plan

import (
	"bytes"
	"iter"
	"slices"

	"github.com/lopen-dev/lopen/plan/markdown"
)

// The kinds of a task.
const (
	KindComponent = "component"
	KindTask      = "task"
	KindSubtask   = "subtask"
)

// A Task is a component or an item of a plan. Its slices must not be changed.
type Task struct {
	ID        string
	Kind      string   // KindComponent, KindTask or KindSubtask
	Name      string   // the text of the heading or the item, without markup
	Line      int      // 1-based
	Box       int      // offset of the byte between the brackets, -1 for components
	Checked   bool     // whether the box is ticked; false for components
	Details   string   // the lines under the item that are no items
	Links     []string // link destinations: its own, its parents', its headings', innermost first, the first 64
	After     []string // IDs that <!-- after: ID, ID --> at the item's end names
	Mark      Mark     // what <!-- lopen: ... --> at the item's end says
	Parent    string   // ID of the item or component that it is directly beneath, "" at the top
	Children  []string // IDs of what is directly beneath it, in file order
	Component string   // ID of the component that it belongs to (its own, for one), or ""
	Depth     int      // how many tasks are above it
}

// A Plan is a parsed plan and its source. Immutable. Whether a task is ticked is
// read from the source, so that plans which differ in boxes alone share the rest.
type Plan struct {
	src      []byte
	title    string
	titled   bool   // the first heading is the title
	tasks    []Task // Checked is not set in these
	spans    []span // of each task, the lines that it lies on
	heads    string // level and text of every heading, one a line
	headings []markdown.Heading
	index    map[string]int // ID to position in tasks
	roots    []string
	over     int // line of a block that is too large to be read, 0 for none
}

// A span is the bytes of whole lines: an item with all that is nested in it,
// nothing for a component.
type span struct{ start, end int }

// Tasks returns all tasks in file order, each component before its items.
func (p *Plan) Tasks() []Task {
	return slices.AppendSeq(make([]Task, 0, len(p.tasks)), p.All())
}

// All yields the tasks in file order, as Tasks has them, without a copy of all.
func (p *Plan) All() iter.Seq[Task] {
	return func(yield func(Task) bool) {
		for i, t := range p.tasks {
			t.Checked = p.checked(i)
			if !yield(t) {
				return
			}
		}
	}
}

// Task returns the task with an ID.
func (p *Plan) Task(id string) (Task, bool) {
	i, ok := p.index[id]
	if !ok {
		return Task{}, false
	}
	t := p.tasks[i]
	t.Checked = p.checked(i)
	return t, true
}

func (p *Plan) checked(i int) bool {
	at := p.tasks[i].Box
	return at >= 0 && p.src[at]|0x20 == 'x'
}

// Roots returns the IDs of the tasks that have no parent, in file order.
func (p *Plan) Roots() []string { return slices.Clone(p.roots) }

// Title returns the text of the title, "" where the plan has none.
func (p *Plan) Title() string { return p.title }

// Source returns a copy of the bytes that were parsed.
func (p *Plan) Source() []byte { return bytes.Clone(p.src) }

// Progress counts the leaves: those that are ticked, and all. A component or a
// parent is neither.
func (p *Plan) Progress() (done, total int) {
	for i := range p.tasks {
		t := &p.tasks[i]
		if len(t.Children) > 0 {
			continue
		}
		total++
		if p.checked(i) {
			done++
		}
	}
	return done, total
}

// withBoxes returns the plan with boxes as given, offsets to ticked. It is the
// plan that parsing its source would give: a box's byte decides nothing but the
// box.
func (p *Plan) withBoxes(boxes map[int]bool) *Plan {
	next := *p
	next.src = Toggle(p.src, boxes)
	return &next
}

// Toggle returns src with the boxes at the given offsets (Task.Box) ticked or
// unticked: one byte changes for each box that is not as wanted. An X that is
// wanted ticked stays an X. An offset at which no box is, is left alone.
func Toggle(src []byte, boxes map[int]bool) []byte {
	out := bytes.Clone(src)
	for at, ticked := range boxes {
		if at < 1 || at+1 >= len(out) || out[at-1] != '[' || out[at+1] != ']' {
			continue
		}
		switch out[at] {
		case ' ', '\t':
			if ticked {
				out[at] = 'x'
			}
		case 'x', 'X':
			if !ticked {
				out[at] = ' '
			}
		}
	}
	return out
}

// isStructural says whether a heading names the kind of what is below it instead
// of a component.
func isStructural(text string) bool {
	switch markdown.Name(text) {
	case "components", "tasks":
		return true
	}
	return markdown.IsCriteria(text)
}
