package convert

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/lopen-dev/lopen/plan/markdown"
)

// A found box is a line that has a checkbox in it, or what somebody may have meant as one.
// It is found without a parser, so that nothing depends on what a parser takes it for.
type found struct {
	line    int    // from 1
	at, end int    // offsets of '[' and of what stands behind the box
	mark    string // what stands between the brackets
	star    bool   // Kiro's asterisk behind the box
	bullet  bool   // a list item could begin with it
	number  string // of the list item
	text    string // what stands behind it
	cell    bool   // in a column of a table
	where   string // why Markdown may not take it for a list item
}

var (
	// lead is what may stand before a box on its line: marks of quotes, lists, tables and
	// headings, tags, and the number of a task.
	lead = `^((?:[ \t\v\f>|]|[-*+•–—]|\d{1,9}[.)]|#|<!--|<[A-Za-z/][^<>]*>|(?:[A-Z]{1,8}-?\d+[a-z]?|\d+(?:\.\d+)+)[.:)]?[*]*[ \t])*)`
	// boxed is a box with any mark that is no letter and no digit, or with x. What would be
	// a link is none; boxOf looks at the colon behind what may be the name of one.
	boxed = pattern(lead + `\[([ \t]*|[ \t]*[xX][ \t]*|[^\pL\pN\[\]\\^]|[ \t]+-[ \t]*|-[ \t]+)\](\*?)([^(\[]|$)`)
	// drawn are boxes that are characters or HTML.
	drawn = pattern(lead + `(?:[☐☑☒]|<input[^<>]*checkbox)`)
	// cell is a box in a column of a table behind the first one.
	cell = pattern(`\|[ \t]*\[[ \txX]\][ \t]*(?:\||$|[ \t])`)
	// bullets is a lead behind which Markdown may see a list item.
	bullets = pattern(`(?:^|[ \t>])(?:[-*+]|(\d{1,9})[.)])[ \t\v\f]+$`)
)

// scan returns every line that has a box, up to one more than maxBoxes.
func scan(src []byte) (all []found) {
	w := where{front: frontMatter(src)}
	line := 0
	for at := 0; at < len(src) && len(all) <= maxBoxes; {
		line++
		stop, next := len(src), len(src)
		if i := bytes.IndexAny(src[at:], "\r\n"); i >= 0 {
			stop, next = at+i, at+i+1
			if src[stop] == '\r' && next < len(src) && src[next] == '\n' {
				next++
			}
		}
		from := at
		if from == 0 && bytes.HasPrefix(src, bom) {
			from = len(bom)
		}
		if f, ok := boxOf(src[from:stop]); ok {
			f.line, f.at, f.end = line, f.at+from, f.end+from
			f.where = w.of(at, string(src[from:stop]), f)
			all = append(all, f)
		}
		w.next(src[from:stop])
		at = next
	}
	return all
}

func boxOf(line []byte) (f found, ok bool) {
	if !bytes.ContainsAny(line, "[<☐☑☒") {
		return f, false
	}
	m := boxed().FindSubmatchIndex(line)
	if m == nil {
		return found{cell: cell().Match(line)}, cell().Match(line) || drawn().Match(line)
	}
	before := string(line[:m[3]])
	f = found{at: m[3], mark: string(line[m[4]:m[5]]), end: m[7], star: m[6] < m[7], text: strings.TrimSpace(string(line[m[7]:]))}
	if b := bullets().FindStringSubmatch(before); b != nil {
		f.bullet, f.number = true, b[1]
	}
	if box := f.bullet && strings.ContainsAny(f.mark, "xX") || strings.TrimSpace(f.mark) == ""; !box && strings.HasPrefix(f.text, ":") {
		return f, false // what a link of this name leads to
	}
	if !f.bullet && strings.TrimSpace(before) == "" && strings.Trim(f.mark, " \txX") != "" {
		return f, false // a text that begins with something in brackets
	}
	return f, true
}

// spaced says whether whitespace or the end of the line stands behind the box, and one
// character in it: else Markdown sees none.
func (f found) spaced(src []byte) bool {
	return utf8.RuneCountInString(f.mark) == 1 && (f.end == len(src) || strings.IndexByte(" \t\v\f\r\n", src[f.end]) >= 0)
}

func frontMatter(src []byte) int {
	_, end := markdown.FrontMatter(src)
	return end
}

// where follows what the lines of a file are in, so that a box that is none can be
// explained. The parser decides whether it is one.
type where struct {
	front   int    // where the front matter ends
	fence   string // marks of the code block that is open
	comment bool
	html    bool
}

var (
	fenceLine = pattern("^(?:[ \t>]|[-*+][ \t]|\\d{1,9}[.)][ \t])*(```+|~~~+)([^`]*)$")
	htmlLine  = pattern(`^[ \t>]*</?[A-Za-z]`)
)

// next goes on behind a line.
func (w *where) next(line []byte) {
	text := string(line)
	if m := fenceLine().FindStringSubmatch(text); m != nil && !w.comment {
		switch {
		case w.fence == "":
			w.fence = m[1]
		case strings.HasPrefix(m[1], w.fence) && strings.TrimSpace(m[2]) == "":
			w.fence = ""
		}
		return
	}
	if w.fence != "" {
		return
	}
	if i := strings.LastIndex(text, "<!--"); i >= 0 && !strings.Contains(text[i:], "-->") {
		w.comment = true
	} else if strings.Contains(text, "-->") {
		w.comment = false
	}
	switch {
	case htmlLine().MatchString(text):
		w.html = true
	case strings.TrimSpace(text) == "":
		w.html = false
	}
}

const inCode = "it is in a code block"

// of says what the box on a line stands in.
func (w *where) of(at int, line string, f found) string {
	trimmed := strings.TrimLeft(line, " \t>")
	switch {
	case at < w.front:
		return "it is in front matter"
	case w.fence != "":
		return inCode
	case w.comment || strings.HasPrefix(trimmed, "<!--"):
		return "it is in an HTML comment"
	case strings.HasPrefix(trimmed, "#"):
		return "it is in a heading: the list items below it count"
	case strings.HasPrefix(trimmed, "|") || f.cell:
		return "it is in a table: write it as a list item for it to be a task"
	case w.html || strings.HasPrefix(trimmed, "<"):
		return "it is in a block of HTML, which an empty line ends"
	case f.bullet && strings.HasPrefix(line, "    "):
		return "it is indented as code is"
	}
	return `this looks like a task and is none: write "- [ ] " before its text`
}

// pattern compiles an expression once, when it is first used: most commands convert nothing.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
