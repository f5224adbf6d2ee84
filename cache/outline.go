package cache

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/lopen-dev/lopen/plan/markdown"
)

// ErrNoSection says that no section answers to what was asked for.
var ErrNoSection = errors.New("no such section")

// An AmbiguousError says that more than one section answers to what was asked
// for. Each can be had by its anchor.
type AmbiguousError struct {
	Query      string
	Candidates []Section // in file order
}

func (e *AmbiguousError) Error() string {
	var list []string
	for _, s := range e.Candidates {
		list = append(list, fmt.Sprintf("%s (#%s, line %d)", s.Path, s.Anchor, s.FirstLine))
	}
	return fmt.Sprintf("find section: %q could be any of %s", e.Query, strings.Join(list, ", "))
}

// A Section is a heading and what is below it, lower headings included.
type Section struct {
	Header    string // the heading's text without markup
	Path      string // the headers down to it, joined by '/', without the title: "Caching/Section Cache"
	Level     int    // 1 to 6
	Anchor    string // as on GitHub, without '#'
	FirstLine int    // the heading's, 1-based
	LastLine  int    // inclusive
	Start     int    // offset of the first byte
	End       int    // offset behind the last byte
}

// Tokens estimates how many tokens the section is to a language model: four bytes
// each, which is near enough for English and for code.
func (s Section) Tokens() int { return (s.End - s.Start + 3) / 4 }

// An Outline is a file and its sections. Immutable.
//
// Paths are put together when a section is returned: stored, they would take the
// square of a file whose headings are long.
type Outline struct {
	src      string
	title    int       // index of the title, -1 for none
	sections []Section // without Path
	parents  []int     // of each section the one around it, -1 at the top
	lower    []string  // of each section the header in lower case
	last     map[string][]int
	anchors  map[string]int
}

// NewOutline divides a Markdown file. It takes any bytes.
func NewOutline(src []byte) *Outline {
	doc := markdown.ParseHeadings(src)
	headings, lines := doc.Headings(), doc.Lines()
	o := &Outline{src: string(src), title: doc.Title(), sections: make([]Section, 0, len(headings)), parents: make([]int, 0, len(headings))}
	for i, h := range headings {
		s := Section{Header: h.Text, Level: h.Level, Anchor: h.Anchor,
			FirstLine: h.Line, LastLine: lines, Start: h.Start, End: h.End}
		// Where a section ends before the file does, a heading begins.
		if next := i + sort.Search(len(headings)-i, func(j int) bool { return headings[i+j].Start >= h.End }); next < len(headings) {
			s.LastLine = headings[next].Line - 1
		}
		o.sections, o.parents = append(o.sections, s), append(o.parents, h.Parent)
	}
	o.index()
	return o
}

// index derives from the sections what Find looks at: last holds the sections by
// what stands behind the last '/' of their header.
func (o *Outline) index() {
	n := len(o.sections)
	o.lower, o.last, o.anchors = make([]string, n), make(map[string][]int, n), make(map[string]int, n)
	for i, s := range o.sections {
		o.lower[i] = strings.ToLower(s.Header)
		key := afterSlash(o.lower[i])
		o.last[key] = append(o.last[key], i)
		if _, taken := o.anchors[s.Anchor]; !taken {
			o.anchors[s.Anchor] = i
		}
	}
}

func afterSlash(s string) string { return s[strings.LastIndexByte(s, '/')+1:] }

// section returns a section with its path.
func (o *Outline) section(i int) Section {
	s := o.sections[i]
	s.Path = s.Header
	for p := o.parents[i]; p >= 0 && p != o.title; p = o.parents[p] {
		s.Path = o.sections[p].Header + "/" + s.Path
	}
	return s
}

// Sections returns the sections in file order, each before those in it.
func (o *Outline) Sections() []Section {
	all := make([]Section, len(o.sections))
	for i := range all {
		all[i] = o.section(i)
	}
	return all
}

// Text returns a section as it is in the file.
func (o *Outline) Text(s Section) string { return o.src[s.Start:s.End] }

// Count returns the number of sections.
func (o *Outline) Count() int { return len(o.sections) }

// Len returns the length of the file in bytes.
func (o *Outline) Len() int { return len(o.src) }

// Meta returns the entries of the file's front matter; see markdown.Meta. One of
// more than markdown.MaxMeta bytes is taken for none.
func (o *Outline) Meta() ([]markdown.Field, error) {
	return markdown.Meta([]byte(o.src[:min(len(o.src), markdown.MaxMeta)]))
}

// Preamble returns the text before the first heading of level 2, the title
// included: the whole file where there is none.
func (o *Outline) Preamble() string { return o.src[:o.preambleEnd()] }

func (o *Outline) preambleEnd() int {
	for _, s := range o.sections {
		if s.Level == 2 {
			return s.Start
		}
	}
	return len(o.src)
}

// Find returns the section that a query names: by `#anchor`, by path, or by the
// end of its path, its bare header say, where no other section's path ends so.
// Case does not matter. The error is an *AmbiguousError or wraps ErrNoSection.
func (o *Outline) Find(query string) (Section, error) {
	found := o.matches(query)
	switch {
	case len(found) == 0:
		return Section{}, fmt.Errorf("find section: %w: %q", ErrNoSection, query)
	case len(found) > 1:
		err := &AmbiguousError{Query: query}
		for _, i := range found {
			err.Candidates = append(err.Candidates, o.section(i))
		}
		return Section{}, err
	}
	return o.section(found[0]), nil
}

// matches returns the sections that a query could name, by their index.
func (o *Outline) matches(query string) []int {
	q := strings.ToLower(strings.Join(strings.Fields(query), " "))
	if q == "" {
		return nil
	}
	if anchor, ok := strings.CutPrefix(q, "#"); ok {
		if i, ok := o.anchors[anchor]; ok {
			return []int{i}
		}
	}
	var whole, ends []int
	for _, i := range o.last[afterSlash(q)] {
		switch ok, all := o.endsIn(i, q); {
		case all:
			whole = append(whole, i)
		case ok:
			ends = append(ends, i)
		}
	}
	if len(whole) > 0 {
		return whole
	}
	return ends
}

// endsIn says whether a section's path, with the title in front, ends in q at a
// '/', and whether q is all of its Path.
func (o *Outline) endsIn(i int, q string) (ok, all bool) {
	for {
		h := o.lower[i]
		if h == q {
			p := o.parents[i]
			return true, p < 0 || p == o.title
		}
		if strings.HasSuffix(h, q) && h[len(h)-len(q)-1] == '/' {
			return true, false
		}
		rest, ok := strings.CutSuffix(q, h)
		if i = o.parents[i]; !ok || i < 0 || !strings.HasSuffix(rest, "/") {
			return false, false
		}
		q = rest[:len(rest)-1]
	}
}
