package plan

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/lopen-dev/lopen/plan/markdown"
)

// ErrNoTasks says that there is nothing in a file that a plan could be made of.
var ErrNoTasks = errors.New("nothing to make a plan of")

// Kiro's marks of a task that somebody works on, and of one that is optional. No
// Markdown parser takes either for a checkbox.
var (
	inProgress = regexp.MustCompile(`(?m)^([ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[)-(\]\*?[ \t])`)
	optional   = regexp.MustCompile(`(?m)^([ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[[ xX]\])(\*[ \t])`)
)

// withoutMarks has a checkbox for each of Kiro's tasks.
func withoutMarks(src []byte) []byte {
	return optional.ReplaceAll(inProgress.ReplaceAll(src, []byte("$1 $2")), []byte("$1 $2"))
}

// Dropped returns the numbers of the lines that look like tasks and of which
// FromMarkdown makes none.
func Dropped(src []byte) []int { return Parse(withoutMarks(src)).Lookalikes() }

// FromMarkdown makes the content of a new plan of the headings and checkboxes of
// any Markdown: a TODO list, the tasks.md of Spec Kit or Kiro. Nesting, states, the
// lines indented under an item, headings and prose stay, the old title as a line of
// text; prose that would be read as something else in the plan is dropped, and headings
// with no checkbox below them with it. A task that Kiro has in progress, `[-]`, is
// open. Without any checkbox the error wraps ErrNoTasks.
func FromMarkdown(title string, src []byte) ([]byte, error) {
	if err := withoutNUL(src); err != nil {
		return nil, fmt.Errorf("make plan: %w", err)
	}
	src = withoutMarks(src)
	doc := markdown.Parse(src)
	if err := whole(doc.Over()); err != nil {
		return nil, fmt.Errorf("make plan: %w", err)
	}
	headings, items := doc.Headings(), doc.Items()
	if len(items) == 0 {
		return nil, fmt.Errorf("make plan: %w: no checkbox such as `- [ ] task` below %s", ErrNoTasks, count(len(headings), "heading"))
	}
	keep := make([]bool, len(headings))
	for _, it := range items {
		for h := it.Heading; h >= 0 && !keep[h]; h = headings[h].Parent {
			keep[h] = true
		}
	}
	if t := doc.Title(); t >= 0 {
		keep[t] = false
	}
	bare, err := newPlan(title, headings, keep, items)
	if err != nil {
		return nil, err
	}
	for i := range keep {
		keep[i] = i != doc.Title()
	}
	if whole := write(title, headings, keep, items, prose(src, doc), true); sameTasks(bare, whole) {
		return whole, nil
	}
	return bare, nil
}

// FromCriteria makes the content of a new plan of a specification's sections
// called Acceptance Criteria (numbered or not): one task for each checkbox in
// them, ticked ones ticked, or for each outermost list item where a section has
// no checkbox. The heading around such a section is their component, if it is not
// the specification's title. Without any criterion the error wraps ErrNoTasks.
func FromCriteria(title string, spec []byte) ([]byte, error) {
	if err := withoutNUL(spec); err != nil {
		return nil, fmt.Errorf("make plan: %w", err)
	}
	doc := markdown.Parse(spec)
	if err := whole(doc.Over()); err != nil {
		return nil, fmt.Errorf("make plan: %w", err)
	}
	headings := doc.Headings()
	var criteria []markdown.Item
	keep := make([]bool, len(headings))
	boxes, bullets := doc.Items(), doc.Bullets()
	found, end := 0, 0
	for _, h := range headings {
		if !isCriteria(h.Text) || h.Start < end {
			continue
		}
		found++
		end = h.End
		first, in := within(boxes, h)
		if len(in) == 0 {
			first, in = within(bullets, h)
		}
		moved := len(criteria) - first
		for _, c := range in {
			if c.Parent >= 0 {
				c.Parent += moved // a parent is in the same section
			}
			criteria = append(criteria, c)
			for a := c.Heading; a >= 0; a = headings[a].Parent {
				keep[a] = !isCriteria(headings[a].Text)
			}
		}
	}
	if found == 0 {
		return nil, fmt.Errorf("make plan: %w: none of %s is called Acceptance Criteria", ErrNoTasks, count(len(headings), "heading"))
	}
	if len(criteria) == 0 {
		return nil, fmt.Errorf("make plan: %w: no list item under Acceptance Criteria", ErrNoTasks)
	}
	if t := doc.Title(); t >= 0 {
		keep[t] = false
	}
	return newPlan(title, headings, keep, criteria)
}

// within returns the items in a heading's section and the index of the first.
func within(items []markdown.Item, h markdown.Heading) (int, []markdown.Item) {
	from := sort.Search(len(items), func(i int) bool { return items[i].Start >= h.Start })
	to := sort.Search(len(items), func(i int) bool { return items[i].Start >= h.End })
	return from, items[from:to]
}

func isCriteria(text string) bool { return markdown.Name(text) == markdown.Criteria }

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// newPlan writes a plan of the items, under the headings that stay. An error names
// the line.
func newPlan(title string, headings []markdown.Heading, keep []bool, items []markdown.Item) ([]byte, error) {
	for i, h := range headings {
		if err := fits(h.Line, h.Text); keep[i] && err != nil {
			return nil, fmt.Errorf("make plan: %w", err)
		}
	}
	for i := range items {
		if err := fits(items[i].Line, items[i].Text); err != nil {
			return nil, fmt.Errorf("make plan: %w", err)
		}
	}
	content := write(title, headings, keep, items, nil, true)
	// Details are put before nested items, wherever they stood. Should that
	// make other items of them (a fence left open swallows what follows), the
	// tasks matter more than their details.
	same := func(a, b markdown.Item) bool { return a.Checked == b.Checked && a.Parent == b.Parent }
	if !slices.EqualFunc(markdown.Parse(content).Items(), items, same) {
		content = write(title, headings, keep, items, nil, false)
	}
	return content, nil
}

// deeper is by how much headings are to be deeper: the plan's title is to stay the only
// one of level 1.
func deeper(headings []markdown.Heading, keep []bool) int {
	for i, h := range headings {
		if keep[i] && h.Level == 1 {
			return 1
		}
	}
	return 0
}

// write writes headings and items in file order, and before each of them the prose that
// stands before it, by offset; what has the offset -1 stands at the end.
func write(title string, headings []markdown.Heading, keep []bool, items []markdown.Item, prose map[int]string, details bool) []byte {
	shift := deeper(headings, keep)
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Plan: %s\n", strings.Join(strings.Fields(title), " "))
	depth := make([]int, len(items))
	next, heading, apart := 0, -2, false
	text := func(at int) {
		if prose[at] != "" {
			b.WriteString("\n" + prose[at] + "\n")
			apart = true
		}
	}
	head := func(before int) {
		for ; next < len(headings) && headings[next].Start < before; next++ {
			text(headings[next].Start)
			if keep[next] {
				fmt.Fprintf(&b, "\n%s %s\n", strings.Repeat("#", min(headings[next].Level+shift, 6)), headings[next].Raw)
			} else if prose != nil {
				fmt.Fprintf(&b, "\n%s\n", headings[next].Raw) // the old title
			}
		}
	}
	for i, it := range items {
		head(it.Start)
		if text(it.Start); it.Heading != heading || apart {
			b.WriteByte('\n')
			heading, apart = it.Heading, false
		}
		if it.Parent >= 0 {
			depth[i] = depth[it.Parent] + 1
		}
		indent := strings.Repeat("  ", depth[i])
		state := ' '
		if it.Checked {
			state = 'x'
		}
		b.WriteString(strings.TrimRight(fmt.Sprintf("%s- [%c] %s", indent, state, it.Raw), " ") + "\n")
		if details && it.Details != "" {
			writeDetails(&b, indent+"  ", it.Details)
		}
	}
	if prose != nil {
		head(math.MaxInt)
	}
	text(-1)
	return b.Bytes()
}

// prose is what stands between the headings and the outermost items of a document, by
// the offset of what it stands before.
func prose(src []byte, doc *markdown.Document) map[int]string {
	all := map[int]string{}
	_, at := markdown.FrontMatter(src)
	if at == 0 && bytes.HasPrefix(src, bom) {
		at = len(bom)
	}
	inList := false
	headings, items := doc.Headings(), doc.Items()
	items = slices.DeleteFunc(items, func(it markdown.Item) bool { return it.Parent >= 0 })
	gap := func(to, before int) {
		text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(src[at:max(at, to)]))
		lines := strings.Split(strings.ToValidUTF8(text, "\uFFFD"), "\n")
		for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
			lines = lines[1:]
		}
		if inList && len(lines) > 0 { // it is the text of a list item without a box, or of none
			indent := lines[0][:len(lines[0])-len(strings.TrimLeft(lines[0], " \t"))]
			for i := range lines {
				lines[i] = strings.TrimPrefix(lines[i], indent)
			}
		}
		if text = strings.TrimRight(strings.Join(lines, "\n"), " \t\n"); text != "" {
			all[before] = text
		}
	}
	for len(headings)+len(items) > 0 {
		if len(items) == 0 || len(headings) > 0 && headings[0].Start < items[0].Start {
			gap(headings[0].Start, headings[0].Start)
			at, inList, headings = headings[0].ContentStart, false, headings[1:]
			continue
		}
		gap(items[0].Start, items[0].Start)
		at, inList, items = max(at, items[0].End), true, items[1:]
	}
	gap(len(src), -1)
	return all
}

// sameTasks says whether two plans have the same tasks with the same details under the
// same headings.
func sameTasks(a, b []byte) bool {
	x, y := Parse(a), Parse(b)
	return slices.EqualFunc(x.Tasks(), y.Tasks(), func(s, t Task) bool {
		return s.ID == t.ID && s.Name == t.Name && s.Checked == t.Checked && s.Details == t.Details && s.Mark == t.Mark && slices.Equal(s.After, t.After)
	})
}

// continues matches lines that may stand directly under an item's text without
// making something else of it, as an underline or a table's would.
var continues = regexp.MustCompile(`^(?:[-*+] +)?[\pL\d_"'(]`)

func writeDetails(b *bytes.Buffer, indent, details string) {
	if !continues.MatchString(details) {
		b.WriteByte('\n')
	}
	for line := range strings.Lines(details + "\n") {
		if line = strings.TrimRight(line, "\n"); line != "" {
			b.WriteString(indent + line)
		}
		b.WriteByte('\n')
	}
}
