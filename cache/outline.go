package cache

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
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

// An Outline is a file and its sections. Immutable.
type Outline struct {
	src      []byte
	sections []Section
	full     []string // of each section, the path with the title, lower case
}

// NewOutline divides a Markdown file. It takes any bytes.
func NewOutline(src []byte) *Outline {
	o := &Outline{src: bytes.Clone(src)}
	doc := markdown.ParseHeadings(src)
	headings, title := doc.Headings(), doc.Title()
	for _, h := range headings {
		s := Section{Header: h.Text, Path: h.Text, Level: h.Level, Anchor: h.Anchor,
			FirstLine: h.Line, LastLine: doc.Lines(), Start: h.Start, End: h.End}
		// Where a section ends before the file does, a heading begins.
		if next := sort.Search(len(headings), func(j int) bool { return headings[j].Start >= h.End }); next < len(headings) {
			s.LastLine = headings[next].Line - 1
		}
		full := strings.ToLower(h.Text)
		if h.Parent >= 0 {
			full = o.full[h.Parent] + "/" + full
			if h.Parent != title {
				s.Path = o.sections[h.Parent].Path + "/" + s.Path
			}
		}
		o.sections = append(o.sections, s)
		o.full = append(o.full, full)
	}
	return o
}

// Sections returns the sections in file order, each before those in it.
func (o *Outline) Sections() []Section { return slices.Clone(o.sections) }

// Bytes returns a section as it is in the file.
func (o *Outline) Bytes(s Section) []byte { return bytes.Clone(o.src[s.Start:s.End]) }

// Preamble returns the text before the first heading of level 2, the title
// included: the whole file where there is none.
func (o *Outline) Preamble() []byte { return bytes.Clone(o.src[:o.preambleEnd()]) }

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
	q := strings.ToLower(strings.Join(strings.Fields(query), " "))
	anchor, byAnchor := strings.CutPrefix(q, "#")
	var whole, ends []Section
	for i, s := range o.sections {
		switch {
		case byAnchor && s.Anchor == anchor:
			return s, nil
		case strings.ToLower(s.Path) == q:
			whole = append(whole, s)
		case o.full[i] == q || strings.HasSuffix(o.full[i], "/"+q):
			ends = append(ends, s)
		}
	}
	found := whole
	if len(found) == 0 {
		found = ends
	}
	switch {
	case q == "" || len(found) == 0:
		return Section{}, fmt.Errorf("find section: %w: %q", ErrNoSection, query)
	case len(found) > 1:
		return Section{}, &AmbiguousError{Query: query, Candidates: found}
	}
	return found[0], nil
}
