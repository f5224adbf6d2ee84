package plan

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

var (
	// itemPrefix is what stands before the box of an item that begins on a line
	// of its own: quote marks and indentation, bullet or number, space.
	itemPrefix = pattern(`^([ \t>]*)([-*+]|\d{1,9}[.)])([ \t]+)$`)
	// endNotes are the comments at the end of a line.
	endNotes = pattern(`(?:[ \t]*<!--(?:[^-]|-[^-])*?-->)*[ \t]*$`)
	// afterNote is a comment that names what a task waits for.
	afterNote = pattern(`(?i)<!--\s*after\s*:((?:[^-]|-[^-])*?)-->`)
	markNote  = pattern(`(?i)[ \t]?<!--\s*lopen\s*:(?:[^-]|-[^-])*?-->`)
)

// pattern compiles an expression once, when it is first used: most commands use none.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// A prefix is what stands before an item's box on its line.
type prefix struct{ lead, marker, gap string }

func (f prefix) String() string { return f.lead + f.marker + f.gap }

// under is the prefix of the first item nested in one with this prefix.
func (f prefix) under() prefix {
	return prefix{f.lead + strings.Repeat(" ", len(f.marker)) + f.gap, "-", " "}
}

// next is the prefix of an item behind one with this prefix.
func (f prefix) next() prefix {
	if n, err := strconv.Atoi(f.marker[:len(f.marker)-1]); err == nil && n < 999999999 {
		f.marker = strconv.Itoa(n+1) + f.marker[len(f.marker)-1:]
	}
	return f
}

// kind is what items of one list have in common: bullet or delimiter.
func (f prefix) kind() byte { return f.marker[len(f.marker)-1] }

// prefix returns what stands before the box of the item at i.
func (p *Plan) prefix(op string, i int) (prefix, error) {
	t := &p.tasks[i]
	m := itemPrefix().FindSubmatch(p.src[p.spans[i].start : t.Box-1])
	if m == nil {
		return prefix{}, fmt.Errorf("%s: %s does not begin its line: %w", op, t.ID, ErrTangled)
	}
	return prefix{string(m[1]), string(m[2]), string(m[3])}, nil
}

// line returns where the line of an item's box begins and ends, without what
// ends it.
func (p *Plan) line(i int) (start, end int) {
	box := p.tasks[i].Box
	start = bytes.LastIndexAny(p.src[:box], "\r\n") + 1
	end = len(p.src)
	if n := bytes.IndexAny(p.src[box:], "\r\n"); n >= 0 {
		end = box + n
	}
	return start, end
}

// text returns where an item's text begins, right behind the box, and where it
// ends, before comments and spaces.
func (p *Plan) text(i int) (start, end int) {
	_, stop := p.line(i)
	start = p.tasks[i].Box + 2
	return start, start + endNotes().FindIndex(p.src[start:stop])[0]
}

// cutMark takes away what marks the line of an item carries.
func (p *Plan) cutMark(i int) (cuts []cut) {
	_, from := p.text(i)
	_, to := p.line(i)
	for _, m := range markNote().FindAllIndex(p.src[from:to], -1) {
		cuts = append(cuts, cut{from + m[0], from + m[1], ""})
	}
	return cuts
}

// eol returns what ends the line before an offset, and what ends the first line
// that ends where there is none before.
func (p *Plan) eol(at int) string {
	if before := p.src[:at]; bytes.HasSuffix(before, []byte("\r\n")) {
		return "\r\n"
	} else if n := len(before); n > 0 && (before[n-1] == '\n' || before[n-1] == '\r') {
		return string(before[n-1:])
	}
	n := bytes.IndexAny(p.src, "\r\n")
	switch {
	case n < 0:
		return "\n"
	case bytes.HasPrefix(p.src[n:], []byte("\r\n")):
		return "\r\n"
	}
	return string(p.src[n : n+1])
}
