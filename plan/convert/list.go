package convert

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/plan/markdown"
)

// A reading is a Markdown list whose boxes are judged.
type reading struct {
	kind     string
	src      []byte // with each box as the parser knows it
	boxes    []found
	at       map[int]int // line to box
	headings []markdown.Heading
	items    []markdown.Item
	out      []verdict    // of each item
	parent   map[int]bool // items below which something is no task
}

// readMarkdown reads the list in a Markdown file.
func readMarkdown(src []byte) (*list, error) {
	src = opened(src)
	r := reading{src: bytes.Clone(src), boxes: scan(src), at: map[int]int{}, parent: map[int]bool{}}
	if len(r.boxes) > maxBoxes {
		return nil, tooMany(r.boxes[maxBoxes].line)
	}
	for i, f := range r.boxes {
		r.at[f.line] = i
		if f.bullet && f.spaced(src) {
			plain(r.src[f.at:f.end])
		}
	}
	doc := markdown.Parse(r.src)
	if err := usable(r.src, doc); err != nil {
		return nil, err
	}
	r.headings, r.items = doc.Headings(), doc.Items()
	r.kind = kindOf(src, r.boxes, r.headings)
	r.nest(r.items)
	if r.judge() {
		r.src = r.words()
		doc = markdown.Parse(r.src)
	}
	l := r.list(doc)
	if _, end := markdown.FrontMatter(src); end > 0 {
		lines := strings.Count(lineFeeds.Replace(string(src[:end])), "\n")
		l.notes = append(l.notes, plan.Remark{Line: 1, Text: fmt.Sprintf("lines 1 to %d are front matter, and are left out", lines)})
	}
	return l, nil
}

// opened returns a list without the line of dashes at its beginning, where that would hide
// boxes as front matter, and what it hides is no YAML: somebody drew a line above the list
// and one below it.
func opened(src []byte) []byte {
	start, end := markdown.FrontMatter(src)
	if end == 0 || len(scan(src[start:end])) == 0 {
		return src
	}
	if _, err := markdown.Meta(src); err == nil {
		return src
	}
	src = bytes.Clone(src)
	copy(src[start:], "   ")
	return src
}

// plain makes a box one that the parser knows, of the same length.
func plain(box []byte) {
	mark := byte(' ')
	if box[1]|0x20 == 'x' {
		mark = box[1]
	}
	copy(box, "[ ]")
	box[1] = mark
	for i := range box[3:] {
		box[3+i] = ' '
	}
}

// judge decides which items are tasks, and says whether one is none.
func (r *reading) judge() bool {
	r.out = make([]verdict, len(r.items))
	children := make([]int, len(r.items))
	for i, it := range r.items {
		if it.Parent >= 0 {
			children[it.Parent]++
		}
		if b, ok := r.at[it.Line]; ok {
			r.out[i] = r.boxes[b].meaning(r.kind)
		}
		if r.in(i) && r.kind == kindRalphex && !it.Checked && describes().MatchString(it.Text) {
			r.out[i] = format
		}
	}
	r.judgeBelow(children)
	r.judgeSections()
	r.judgeParents(children)
	return slices.ContainsFunc(r.out, func(v verdict) bool { return v != verdict{} })
}

// judgeBelow leaves out what has no text, and what is part of an item that is no task.
func (r *reading) judgeBelow(children []int) {
	for i, it := range r.items {
		if r.in(i) && it.Text == "" && it.Details == "" && children[i] == 0 {
			r.out[i] = empty
		}
		if p := it.Parent; p >= 0 && !r.in(p) && r.in(i) {
			r.out[i] = verdict{r.out[p].word, fmt.Sprintf("it is part of line %d, which is no task", r.items[p].Line)}
		}
	}
}

// in says whether an item is a task as far as it was judged.
func (r *reading) in(i int) bool { return r.out[i] == verdict{} }

// judgeParents leaves out the parents that say nothing but what their children do, if none
// of these is a task.
func (r *reading) judgeParents(children []int) {
	for i := len(r.items) - 1; i >= 0; i-- {
		it := &r.items[i]
		// children counts those that are left.
		if r.in(i) && children[i] == 0 && r.parent[i] && !it.Checked && it.Details == "" {
			r.out[i] = nothing
		}
		if !r.in(i) && it.Parent >= 0 {
			children[it.Parent]--
			r.parent[it.Parent] = true
		}
	}
}

// nest puts items below each other as their numbers say, 1.2 below 1, where they stand beside
// each other: so Kiro's users write, and some of its relatives. It says which it moved.
func (r *reading) nest(items []markdown.Item) []bool {
	moved := make([]bool, len(items))
	if r.kind != kindKiro && r.kind != kindOpenSpec {
		return moved
	}
	type place struct {
		heading, parent int
		label           string
	}
	at := map[place]int{}
	for i := range items {
		it := &items[i]
		label := labelOf(it.Text)
		if label == "" || label[0] < '0' || label[0] > '9' {
			continue
		}
		beside := it.Parent
		at[place{it.Heading, beside, label}] = i
		if dot := strings.LastIndexByte(label, '.'); dot > 0 {
			up, ok := at[place{it.Heading, beside, label[:dot]}]
			if ok && within(items, up, i-1) {
				it.Parent, moved[i] = up, true
			}
		}
	}
	return moved
}

// maxNested bounds how deep numbers nest items.
const maxNested = 16

// within says whether an item is another one or nested in it, not too deep.
func within(items []markdown.Item, up, i int) bool {
	for range maxNested {
		if i == up || i < 0 {
			return i == up
		}
		i = items[i].Parent
	}
	return false
}

// describes matches a text that names a box.
var describes = pattern(`\[[ xX]\]`)

// judgeSections leaves out what stands below headings where no tasks are, unless all
// that would be left stands there.
func (r *reading) judgeSections() {
	below := make([]verdict, len(r.headings))
	for i, h := range r.headings {
		if h.Parent >= 0 {
			below[i] = below[h.Parent]
		} else if r.kind == kindRalphex {
			below[i] = outside
		}
		switch {
		case criteriaName(h.Text):
			below[i] = criterion
		case taskName().MatchString(h.Text):
			below[i] = verdict{}
		}
	}
	of := func(it markdown.Item) verdict {
		switch {
		case it.Heading >= 0:
			return below[it.Heading]
		case r.kind == kindRalphex:
			return outside
		}
		return verdict{}
	}
	inside := false
	for i, it := range r.items {
		inside = inside || r.in(i) && of(it) == (verdict{})
	}
	for i, it := range r.items {
		if inside && r.in(i) {
			r.out[i] = of(it)
		}
	}
}

// words returns the source with a word in place of each box that is no task: a list item
// without a box, which stays where it is.
func (r *reading) words() []byte {
	var b bytes.Buffer
	at := 0
	for i, it := range r.items {
		if r.in(i) {
			continue
		}
		f := r.boxes[r.at[it.Line]]
		b.Write(r.src[at:f.at])
		b.WriteString("(" + r.out[i].word)
		if it.Checked {
			b.WriteString(", done")
		}
		b.WriteString(")")
		at = f.end
	}
	b.Write(r.src[at:])
	return b.Bytes()
}

// list makes the list of what is left of the document.
func (r *reading) list(doc *markdown.Document) *list {
	l := &list{kind: r.kind, headings: doc.Headings(), prose: prose(r.src, doc), boxes: len(r.boxes)}
	why := map[int]string{}
	for i, it := range r.items {
		why[it.Line] = r.out[i].reason
	}
	tasks := map[int]bool{}
	items := doc.Items()
	moved := r.nest(items)
	for i, it := range items {
		tasks[it.Line] = true
		f := found{}
		if b, ok := r.at[it.Line]; ok {
			f = r.boxes[b]
		}
		l.add(it, f)
		if text := l.prose[it.Start]; moved[i] && text != "" {
			// What stands above it would end the list that it is nested in now.
			up := &l.items[it.Parent]
			up.Details = below(up.Details, text)
			delete(l.prose, it.Start)
		}
	}
	for _, f := range r.boxes {
		if text := why[f.line]; !tasks[f.line] {
			if text == "" {
				text = f.where
			}
			l.leave(f.line, text)
		}
	}
	l.keep = make([]bool, len(l.headings))
	title := doc.Title()
	for i, h := range l.headings {
		if l.keep[i] = i != title; i == title {
			l.prose[h.Start] = strings.TrimLeft(l.prose[h.Start]+"\n\n"+h.Raw, "\n")
		}
	}
	return l
}

// tokens are what Spec Kit writes around the number of a task: [P], [US1].
var tokens = pattern(`^((?:\[[^\]\[]{1,24}\][ \t]*)*)(\**T\d{3,4}[a-z]?\**[.:]?\**)[ \t]*((?:\[[^\]\[]{1,24}\][ \t]*)*)([^(\[ \t].*)$`)

// userStory is a token for the story that a task belongs to.
var userStory = pattern(`US\d+(?:\.\d+)?`)

// add adds an item. What is a tool's own and no part of the text goes below it.
func (l *list) add(it markdown.Item, f found) {
	var notes, labels []string
	if m := tokens().FindStringSubmatch(it.Raw); m != nil && l.kind == kindSpecKit && m[1]+m[3] != "" {
		notes = append(notes, "Spec Kit: "+strings.Join(strings.Fields(m[1]+" "+m[3]), " "))
		labels = userStory().FindAllString(m[1]+m[3], -1)
		it.Raw, it.Text = m[2]+" "+m[4], ""
	}
	if f.star {
		notes = append(notes, "Kiro: optional")
	}
	it.Details = below(it.Details, notes...)
	if it.Comment != "" && !strings.HasSuffix(it.Raw, "-->") {
		it.Details = below(it.Details, "<!-- "+it.Comment+" -->")
	}
	l.items = append(l.items, it)
	if label := labelOf(it.Raw); label != "" {
		labels = append(labels, label)
	} else if f.number != "" && it.Parent < 0 {
		labels = append(labels, f.number)
	}
	l.labels = append(l.labels, labels)
	l.waits = append(l.waits, refs(it.Line, it.Raw+"\n"+it.Details))
}

// below adds lines to the details of an item.
func below(details string, lines ...string) string {
	if len(lines) == 0 {
		return details
	}
	return strings.TrimLeft(details+"\n\n"+strings.Join(lines, "\n"), "\n")
}
