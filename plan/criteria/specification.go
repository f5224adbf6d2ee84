package criteria

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/lopen-dev/lopen/plan"
	"github.com/lopen-dev/lopen/plan/markdown"
)

const (
	// maxCriteria bounds the criteria that are compared.
	maxCriteria = 5_000
	// maxText bounds what is remembered of a text, in bytes.
	maxText = 200
)

// bom may stand at the very beginning of a file and says nothing.
var bom = []byte("\xef\xbb\xbf")

// ErrTooLarge says that a specification has more than can be compared.
var ErrTooLarge = errors.New("it is too large to be compared with the plan")

// A Specification is what one asks for.
type Specification struct {
	sum      string // of the file
	sections []section
	criteria []criterion
	left     []plan.Remark // what stands among them and is none
}

// A section is a heading with the text directly below it, without criteria.
type section struct {
	Path string `json:"path"`             // as in cache.Section, "" above the first heading
	Sum  string `json:"sha256,omitempty"` // "" of no text
}

// A criterion is one in a specification.
type criterion struct {
	plan.Criterion
	section   int    // in sections
	component string // heading of its component, as written; "" for none
	name      string // of that component
	sum       string
}

// Read reads a specification. An empty one, or none at all, asks for nothing.
func Read(src []byte) (*Specification, error) {
	doc := markdown.Parse(src)
	if line := doc.Over(); line > 0 {
		return nil, fmt.Errorf("line %d: a list item or block of more than %d lines, or more than %d headings: %w", line, markdown.MaxUnits, markdown.MaxHeadings, ErrTooLarge)
	}
	found, left := plan.Criteria(src, doc)
	if len(found) > maxCriteria {
		return nil, fmt.Errorf("%d criteria, more than %d: %w", len(found), maxCriteria, ErrTooLarge)
	}
	headings, title := doc.Headings(), doc.Title()
	s := &Specification{left: left, sum: sumOf(src), criteria: make([]criterion, 0, len(found))}
	for i := range found {
		c := criterion{Criterion: found[i], section: found[i].Heading + 1, sum: sum(found[i].Text, found[i].Details)}
		if h := c.Component; h >= 0 {
			c.component, c.name = headings[h].Raw, headings[h].Text
		}
		s.criteria = append(s.criteria, c)
	}
	at, end := 0, len(src)
	if bytes.HasPrefix(src, bom) {
		at = len(bom)
	}
	if len(headings) > 0 {
		end = headings[0].Start
	}
	s.sections = append(s.sections, section{Sum: s.text(src, at, end)})
	next, within := 0, 0 // within is the end of what is a criterion
	for i, h := range headings {
		path := h.Text
		for p := h.Parent; p >= 0 && p != title; p = headings[p].Parent {
			path = headings[p].Text + "/" + path
		}
		at, end = h.ContentStart, len(src)
		if i+1 < len(headings) {
			end = headings[i+1].Start
		}
		for ; next < len(found) && found[next].Start <= h.Start; next++ {
			within = max(within, found[next].End)
		}
		text := ""
		if h.Start >= within { // else it is a criterion, or a part of one
			text = s.text(src, at, end)
		}
		s.sections = append(s.sections, section{clip(path), text})
	}
	return s, nil
}

// Left names what stands where the criteria are and is none.
func (s *Specification) Left() []plan.Remark { return s.left }

// text returns the hash of a part of a file without the criteria in it.
func (s *Specification) text(src []byte, at, end int) string {
	var b strings.Builder
	i := sort.Search(len(s.criteria), func(i int) bool { return s.criteria[i].Start >= at })
	for ; i < len(s.criteria) && s.criteria[i].Start < end; i++ {
		if c := &s.criteria[i]; c.Start >= at { // else it is nested in the one before
			b.Write(src[at:c.Start])
			at = min(c.End, end)
		}
	}
	b.Write(src[at:end])
	if strings.TrimSpace(b.String()) == "" {
		return ""
	}
	return sum(b.String())
}

func sumOf(src []byte) string {
	if len(bytes.TrimSpace(src)) == 0 {
		return ""
	}
	raw := sha256.Sum256(src)
	return hex.EncodeToString(raw[:])
}

// sum is the hash of texts, in which all white space is the same.
func sum(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		for _, word := range strings.Fields(text) {
			h.Write([]byte(word + " "))
		}
		h.Write([]byte{'\n'})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// clip returns what is remembered of a text.
func clip(text string) string {
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "\uFFFD")
	if len(text) <= maxText {
		return text
	}
	end := maxText
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
