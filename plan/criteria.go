package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/plan/markdown"
)

// A Criterion is one of a specification's acceptance criteria: the task that a plan
// made of them has, and where that belongs.
type Criterion struct {
	markdown.Item     // its Parent is the index of the criterion around it
	Component     int // the heading that is its component in a plan, -1 for none
}

// A Remark is what there is to say of a line.
type Remark struct {
	Line int // from 1
	Text string
}

// Criteria returns the acceptance criteria of a specification, in file order, and what else stands where
// acceptance criteria or scenarios are: each line there is part of a Criterion, or of what a Remark names.
//
// They are below headings of that name, whatever else these say, below a paragraph or list item of that name, and in
// tables with such a column. A criterion is a checkbox, or an outermost list item where a section has none; a row of
// a table; a scenario of Gherkin, in code or not; a paragraph that begins with a number of its own such as AC-1; and a
// heading below which nothing else is one.
func Criteria(src []byte, doc *markdown.Document) ([]Criterion, []Remark) {
	r := &criteriaReader{src: src, lines: markdown.LineStarts(src), headings: doc.Headings(), direct: map[int][]markdown.Block{}}
	r.read()
	for h := -1; h < len(r.headings); h++ {
		switch {
		case h < 0 || !r.in[h]:
			r.blocks(r.direct[h], place{heading: h, parent: -1})
			if h >= 0 && strings.HasPrefix(markdown.Name(r.headings[h].Text), "success-criteri") {
				r.leave(r.headings[h].Line, "success criteria are for who judges the whole, and no tasks")
			}
		case r.headings[h].Parent < 0 || !r.in[r.headings[h].Parent]:
			r.section(h)
		}
	}
	title := doc.Title()
	all := make([]Criterion, len(r.all))
	for i, f := range r.all {
		c := f.Heading
		for c >= 0 && (c == title || isStructural(r.headings[c].Text)) {
			c = r.headings[c].Parent
		}
		all[i] = Criterion{f.Item, c}
	}
	slices.SortStableFunc(r.left, func(a, b Remark) int { return a.Line - b.Line })
	return all, r.left
}

// A criteriaReader finds the criteria of a specification.
type criteriaReader struct {
	src      []byte
	lines    []int // where each begins
	headings []markdown.Heading
	in       []bool                   // of each heading, whether its section is of criteria
	direct   map[int][]markdown.Block // by heading, -1 above the first, the blocks that count or may
	inner    []int                    // offsets of what is called criteria
	all      []found
	left     []Remark
}

// A found is a criterion with what it was made of.
type found struct {
	markdown.Item
	of form
}

type form int

const (
	ofBlock    form = iota // an item or a paragraph
	ofBox                  // a checkbox
	ofScenario             // of Gherkin, in code, a row of a table, or a heading with a number
	ofSteps                // Given, When and Then
	ofHeading              // any other
	ofNothing
)

// A place is where blocks stand.
type place struct {
	heading, parent int  // parent is the index of the criterion around them, -1 for none
	counts          bool // they are criteria
	whole           bool // because of a heading: no paragraph ends that
	named           bool // what does not count is named
}

func (r *criteriaReader) leave(line int, text string) {
	if n := len(r.left); n == 0 || r.left[n-1].Line != line {
		r.left = append(r.left, Remark{line, text})
	}
}

// read divides the blocks by headings.
func (r *criteriaReader) read() {
	r.in = make([]bool, len(r.headings))
	for i, h := range r.headings {
		named := markdown.HasCriteria(h.Text)
		if r.in[i] = named || h.Parent >= 0 && r.in[h.Parent]; named {
			r.inner = append(r.inner, h.Start)
		}
	}
	h, seen := -1, false
	for b := range markdown.Blocks(r.src) {
		if b.Kind == markdown.KindHeading {
			h, seen = h+1, false
			continue
		}
		if h >= len(r.headings) {
			return
		}
		if calls(b) {
			seen = true
			r.inner = append(r.inner, b.Start)
		}
		if seen || h >= 0 && r.in[h] {
			r.direct[h] = append(r.direct[h], b)
		}
	}
	slices.Sort(r.inner)
}

// section reads a section within one of criteria, or that of such a heading.
func (r *criteriaReader) section(h int) {
	head := r.headings[h]
	p := place{heading: h, parent: -1, counts: true, whole: true, named: true}
	if !markdown.IsCriteria(head.Text) { // what is called criteria within it says what counts, if anything is
		i, _ := slices.BinarySearch(r.inner, head.ContentStart)
		p.counts = i == len(r.inner) || r.inner[i] >= head.End
		p.whole = p.counts
	}
	r.blocks(r.direct[h], p)
	for i := h + 1; i < len(r.headings) && r.headings[i].Start < head.End; i++ {
		if r.headings[i].Parent == h {
			r.below(i)
		}
	}
}

// below reads a section within one of criteria: what is in it, or else its heading, is what counts.
func (r *criteriaReader) below(h int) {
	head := r.headings[h]
	if isOther(head.Text) {
		r.leave(head.Line, fmt.Sprintf("%q and what is below it are no criteria", head.Text))
		return
	}
	were, left := len(r.all), len(r.left)
	r.section(h)
	made := r.all[were:]
	has := func(o form) bool { return slices.ContainsFunc(made, func(f found) bool { return f.of == o }) }
	single, of := numbered().MatchString(head.Text), ofHeading
	itself := len(made) == 0 || len(made) == 1 && (single || made[0].of == ofSteps) || single && !has(ofScenario)
	switch {
	case markdown.HasCriteria(head.Text), has(ofBox), !itself:
		return
	case single:
		of = ofScenario
	case strings.TrimSpace(string(r.src[head.ContentStart:head.End])) == "":
		r.leave(head.Line, "nothing stands below it")
		return
	}
	r.all, r.left = r.all[:were], r.left[:left]
	it := markdown.Item{Line: head.Line, Raw: head.Raw, Text: head.Text, Heading: head.Parent, Parent: -1, Box: -1,
		Start: head.Start, End: head.End, Details: markdown.Text(r.src, head.ContentStart, head.End, 0)}
	r.all = append(r.all, found{it, of})
}
