package plan

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lopen-dev/lopen/plan/markdown"
)

// A Passage is whole lines of a plan that belong to no task: headings and prose. The
// zero value is none.
type Passage struct {
	Text      string // valid UTF-8, without blank lines at either end
	Line, End int    // its first and its last line, from 1
}

// origin is the line that says what a plan was made from.
var origin = pattern(`^<!-- lopen:from ([^\r\n]+?) -->[ \t]*(?:\r\n|\r|\n|$)`)

// WithOrigin returns the content of a new plan with a note of the file that it was made
// from. A path that no HTML comment can hold is left out.
func WithOrigin(content []byte, file string) []byte {
	if file == "" || strings.Contains(file, "--") || !utf8.ValidString(file) || strings.ContainsFunc(file, unicode.IsControl) {
		return content
	}
	title, rest, _ := bytes.Cut(content, []byte{'\n'})
	return slices.Concat(title, []byte("\n\n<!-- lopen:from "+file+" -->\n"), rest)
}

// Origin returns the file that the plan was made from, as WithOrigin noted it, with
// slashes; "" where the note is not the first thing behind the plan's title.
func (p *Plan) Origin() string {
	_, file := p.begin()
	return file
}

// Folder returns the folder of Origin, "" without one.
func (p *Plan) Folder() string {
	if file := p.Origin(); file != "" {
		return path.Dir(file)
	}
	return ""
}

// begin returns where the text begins, behind front matter, title and note, and the file
// that the note names.
func (p *Plan) begin() (at int, file string) {
	if _, at = markdown.FrontMatter(p.src); at == 0 && bytes.HasPrefix(p.src, bom) {
		at = len(bom)
	}
	if p.titled && len(bytes.TrimSpace(p.src[at:p.headings[0].Start])) == 0 {
		at = p.headings[0].ContentStart
	}
	note := at + len(p.src[at:]) - len(bytes.TrimLeft(p.src[at:], " \t\r\n"))
	if m := origin().FindSubmatch(p.src[note:]); m != nil {
		return note + len(m[0]), strings.ToValidUTF8(string(m[1]), "\uFFFD")
	}
	return at, ""
}

// Intro returns the text above the first task and above the headings that this task
// stands under. The title is not in it.
func (p *Plan) Intro() Passage {
	first := slices.IndexFunc(p.tasks, func(t Task) bool { return t.Box >= 0 })
	if first < 0 {
		return Passage{}
	}
	from, _ := p.begin()
	to := p.spans[first].start
	for _, h := range p.above(to) {
		if start := p.headings[h].Start; start >= from {
			to = start
			break
		}
	}
	return p.passage(from, max(from, to))
}

// Around returns, in file order, the headings that a task stands under, each with the
// text directly below it, and of the innermost one the prose nearest above the task,
// directly behind it, and behind the last item. The title is not in it.
func (p *Plan) Around(id string) (all []Passage) {
	i, ok := p.index[id]
	if !ok {
		return nil
	}
	at, end := p.spans[i].start, p.spans[i].end
	for t := &p.tasks[i]; t.Kind == KindSubtask; t = &p.tasks[i] {
		i = p.index[t.Parent]
		at, end = p.spans[i].start, p.spans[i].end
	}
	if p.tasks[i].Box < 0 {
		h, _ := slices.BinarySearchFunc(p.headings, p.tasks[i].Line, func(h markdown.Heading, line int) int { return h.Line - line })
		at, end = p.headings[h].ContentStart, p.headings[h].ContentStart
	}
	chain := p.above(at)
	begin, _ := p.begin()
	for _, h := range chain {
		from, to := p.headings[h].Start, p.own(h)
		if h == 0 && p.titled {
			from = max(begin, p.headings[h].ContentStart)
		}
		all = append(all, p.near(from, to, at, end)...)
	}
	if len(chain) == 0 {
		to := len(p.src)
		if len(p.headings) > 0 {
			to = p.headings[0].Start
		}
		all = p.near(begin, to, at, end)
	}
	intro := p.Intro()
	return slices.DeleteFunc(all, func(a Passage) bool { return a.Line <= intro.End && a.End >= intro.Line })
}

// near returns the passages of [from, to) that stand above the first item there, nearest
// above the item at [at, end), directly behind that, and behind the last item. An item
// that is not there is behind the last one.
func (p *Plan) near(from, to, at, end int) (all []Passage) {
	if at < from || at > to {
		at, end = to, to
	}
	var gaps []Passage // between the items, those without text too
	above, below := 0, 0
	gap := func(until int) { gaps = append(gaps, p.passage(from, max(from, until))) }
	for i := range p.tasks {
		s := p.spans[i]
		if t := &p.tasks[i]; t.Kind != KindTask || s.start < from && s.end <= from || s.start >= to {
			continue
		}
		gap(s.start)
		from = max(from, s.end)
		if s.start <= at {
			above = len(gaps) - 1
		}
		if s.end == end {
			below = len(gaps)
		}
	}
	gap(to)
	if at == to {
		above = len(gaps) - 1
	}
	return chosen(gaps, above, below)
}

// chosen are the passages that have text of the first gap, of the nearest one up to above,
// of that below, where it is not 0, and of the last one.
func chosen(gaps []Passage, above, below int) (all []Passage) {
	for above > 0 && gaps[above].Text == "" {
		above--
	}
	for n, g := range gaps {
		if g.Text != "" && (n == 0 || n == above || n == below && below > 0 || n == len(gaps)-1) {
			all = append(all, g)
		}
	}
	return all
}

// above returns the headings that an offset stands under, outermost first.
func (p *Plan) above(at int) (chain []int) {
	h, _ := slices.BinarySearchFunc(p.headings, at+1, func(h markdown.Heading, at int) int { return h.ContentStart - at })
	for h--; h >= 0; h = p.headings[h].Parent {
		chain = append(chain, h)
	}
	slices.Reverse(chain)
	return chain
}

// own returns where the text ends that is a heading's own: at the next heading.
func (p *Plan) own(h int) int {
	if h+1 < len(p.headings) {
		return p.headings[h+1].Start
	}
	return len(p.src)
}

// passage returns the lines of a range without blank ones at either end. What holds no
// letter and no digit, as a thematic break, is none.
func (p *Plan) passage(from, to int) Passage {
	text := p.src[from:to]
	blank := len(text) - len(bytes.TrimLeft(text, " \t\r\n"))
	if n := bytes.LastIndexAny(text[:blank], "\r\n"); n >= 0 { // the first line keeps its indentation
		blank = n + 1
	} else {
		blank = 0
	}
	from += blank
	s := strings.ToValidUTF8(string(bytes.TrimRight(text[blank:], " \t\r\n")), "\uFFFD")
	if !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return Passage{}
	}
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
	line := 1 + lineEnds(p.src[:from])
	return Passage{Text: s, Line: line, End: line + strings.Count(s, "\n")}
}

// lineEnds counts what ends a line: LF, CR LF, and a CR alone.
func lineEnds(src []byte) int {
	return bytes.Count(src, []byte{'\n'}) + bytes.Count(src, []byte{'\r'}) - bytes.Count(src, []byte("\r\n"))
}
