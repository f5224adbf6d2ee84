package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/lopen-dev/lopen/plan/markdown"
)

// MaxGiven bounds what ForTask returns, in bytes of content.
const MaxGiven = 32 << 10

// maxSections bounds how many sections are given with a task: headers may repeat
// themselves, and each section is compared with those before.
const maxSections = 250

// Headers of what is given without being a section.
const (
	HeaderPreamble = "(before the first section)"
	HeaderOutline  = "(outline)"
)

// A Given is a piece of a file that is handed over with a task.
type Given struct {
	Path      string // of the file, as docs was asked for it
	Header    string // the section's path, HeaderPreamble or HeaderOutline
	SHA256    string // of Content, in hex
	Content   []byte
	Truncated bool // there is more in the file than MaxGiven left room for
	// The lines of the file that Content is from, from 1; 0 of an outline and of what found no room.
	FirstLine, LastLine int
}

// ForTask returns what the specification says of a task. links are the
// destinations of the links in the task, its parents and its heading; names are
// texts of the task and what it belongs to, most telling first. docs opens a file
// by the path that a link gives; it is asked for specPath at least.
//
// The sections that links name are given (a link without a fragment, to another
// site or to nothing names none); else those whose header is the first of
// the names that any has; else the text before the first heading of level 2, the
// Acceptance Criteria and an outline of the file. Only a specification that docs
// cannot open is an error.
//
// All together is at most MaxGiven bytes, cut at the end of a line. What found no
// room at all is given without content, so that the reader knows of it, but for
// what comes after 250 sections.
func ForTask(docs func(path string) (*Outline, error), specPath string, links, names []string) ([]Given, error) {
	spec, err := docs(specPath)
	if err != nil {
		return nil, fmt.Errorf("open specification: %w", err)
	}
	g := giver{room: MaxGiven, seen: map[string][]Section{}}
	for _, link := range links {
		name, anchor, ok := target(link, specPath)
		if !ok {
			continue
		}
		o := spec
		if name != specPath {
			if o, err = docs(name); err != nil {
				continue // a dead link names no section
			}
		}
		if s, err := o.Find("#" + anchor); err == nil {
			g.section(name, o, s)
		}
	}
	for i := 0; i < len(names) && len(g.given) == 0; i++ {
		name := strings.Join(strings.Fields(names[i]), " ")
		for j, s := range spec.sections {
			if name != "" && strings.EqualFold(s.Header, name) {
				g.section(specPath, spec, spec.section(j))
			}
		}
	}
	if len(g.given) == 0 {
		g.overview(specPath, spec)
	}
	return g.given, nil
}

// target splits a link to a section into file and anchor.
func target(link, specPath string) (name, anchor string, ok bool) {
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Fragment == "" {
		return "", "", false
	}
	if u.Path == "" {
		return specPath, u.Fragment, true
	}
	return path.Clean(u.Path), u.Fragment, true
}

// A giver collects pieces until the room is used up.
type giver struct {
	given []Given
	room  int
	seen  map[string][]Section // by file
}

// section gives a section, unless one that holds it was given before.
func (g *giver) section(name string, o *Outline, s Section) {
	if len(g.given) >= maxSections {
		return
	}
	for _, have := range g.seen[name] {
		if have.Start <= s.Start && s.End <= have.End {
			return
		}
	}
	g.seen[name] = append(g.seen[name], s)
	g.add(name, s.Path, o.src[s.Start:s.End], s.FirstLine)
}

func (g *giver) overview(name string, o *Outline) {
	end := o.preambleEnd()
	if strings.TrimSpace(o.src[:end]) != "" {
		g.add(name, HeaderPreamble, o.src[:end], 1)
	}
	for i, s := range o.sections {
		if s.Start >= end && markdown.IsCriteria(s.Header) {
			g.section(name, o, o.section(i))
		}
	}
	if list := o.list(); list != "" {
		g.add(name, HeaderOutline, list, 0)
	}
}

// list is the content that is given as the outline of a file.
func (o *Outline) list() string {
	var list strings.Builder
	for _, s := range o.sections {
		fmt.Fprintf(&list, "%s- %s (#%s, lines %d-%d)\n", strings.Repeat("  ", s.Level-1), s.Header, s.Anchor, s.FirstLine, s.LastLine)
	}
	return list.String()
}

// add gives a content that begins on a line of its file, 0 for none of it.
func (g *giver) add(name, header, content string, line int) {
	cut := len(content) > g.room
	if cut {
		content = content[:fit(content, g.room)]
	}
	g.room -= len(content)
	sum := sha256.Sum256([]byte(content))
	last := line + strings.Count(strings.TrimSuffix(content, "\n"), "\n")
	if content == "" || line == 0 {
		line, last = 0, 0
	}
	g.given = append(g.given, Given{Path: name, Header: header, SHA256: hex.EncodeToString(sum[:]),
		Content: []byte(content), Truncated: cut, FirstLine: line, LastLine: last})
	if cut {
		g.room = 0
	}
}

// fit returns how much of a content that is too long fits into room: whole
// lines, or whole characters where the first line is too long by itself.
func fit(content string, room int) int {
	if end := strings.LastIndexByte(content[:room], '\n'); end >= 0 {
		return end + 1
	}
	for room > 0 && !utf8.RuneStart(content[room]) {
		room--
	}
	return room
}
