package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/plan/markdown"
)

var (
	// others are what a section, or a paragraph in bold, is called that is of something else than criteria.
	others = pattern(`^(?:(?:technical-|implementation-|design-|additional-)?notes?|remarks?|depend(?:s|ency|encies)|independent-test|why-this|priority|estimate|effort|` +
		`(?:story-)?points|status|owner|out-of-scope|not-in-scope|non-goals?|assumptions?|open-questions?|references?|related|links|background|context|overview|introduction|` +
		`summary|rationale|definition-of|success-criteri|tasks?$|implementation-tasks|risks?|test-plan|changelog|revision-history)`)
	bold     = pattern(`^(?:\*{1,3}|_{1,3})([^*_]+?)(?:\*{1,3}|_{1,3})[ \t]*(.*)$`)
	plainly  = pattern(`(?i)^((?:user )?acceptance (?:criteria|criterion|scenarios?)(?: for [^:.]{1,60})?(?: *\([^)]*\))?):[ \t]*(.*)$`)
	brackets = pattern(`^[*_]*\([^)]*\)[*_]*|^for [^:]{1,60}`)
	called   = pattern(`^acceptance-(?:criteri(?:a|on)|scenarios?)(?:-given-when-then)?$`)
	another  = pattern(`(?i)^(?:\*\*|__)[*_]*(?:ac[-_ \d]|acceptance|scenario|criterion|example|given|when|then|and|but)`)
	tags     = pattern(`(?s)<!--.*?-->|<[^>]*>`)
)

func isOther(text string) bool {
	return others().MatchString(markdown.Name(text)) && !markdown.HasCriteria(text)
}

// labelled returns what a paragraph or list item is called by its begin, in bold or with a colon, and what it says
// behind that. It returns "" where it is called nothing.
func labelled(raw string) (name, rest string) {
	raw = strings.TrimSpace(tags().ReplaceAllString(raw, ""))
	if m := plainly().FindStringSubmatch(raw); m != nil {
		return m[1], m[2]
	}
	bare := strings.Trim(raw, "*_: \t")
	if m := bold().FindStringSubmatch(raw); m != nil {
		if rest = m[2]; markdown.HasCriteria(m[1]) {
			rest = strings.TrimSpace(brackets().ReplaceAllString(rest, ""))
		}
		after, colon := strings.CutPrefix(rest, ":")
		if colon || rest == "" || strings.HasSuffix(strings.TrimSpace(m[1]), ":") {
			return strings.Trim(m[1], ": "), strings.TrimSpace(after)
		}
	} else if short := len(raw) <= 100 && strings.HasSuffix(strings.TrimRight(raw, "*_ \t"), ":"); short || called().MatchString(markdown.Slug(bare)) {
		return bare, ""
	}
	return "", ""
}

// label says whether a block calls what follows acceptance criteria. It returns the line of it that does, from 0, and what
// that says behind the name.
func label(b *markdown.Block) (at int, rest string, ok bool) {
	switch b.Kind {
	case markdown.KindHTML:
		text, _, _ := strings.Cut(textOf(b), "\n")
		return 0, "", len(text) <= 100 && markdown.HasCriteria(text)
	case markdown.KindHeading:
		return 0, "", markdown.HasCriteria(b.Raw)
	case markdown.KindParagraph, markdown.KindItem:
		for i, line := range b.Lines {
			if name, rest := labelled(line); (i > 0 || b.Box < 0) && markdown.HasCriteria(name) {
				return i, rest, true
			}
		}
	}
	return 0, "", false
}

// textOf is what is to be read of a block of HTML.
func textOf(b *markdown.Block) string {
	return strings.TrimSpace(tags().ReplaceAllString(strings.Join(b.Lines, "\n"), "\n"))
}

// calls says whether a block, or one in it, calls something acceptance criteria.
func calls(b markdown.Block) bool {
	_, _, ok := label(&b)
	return ok || isField(&b) || b.Kind == markdown.KindHead && slices.ContainsFunc(cells(b.Raw), markdown.HasCriteria) || slices.ContainsFunc(b.Blocks, calls)
}

func hasBox(b markdown.Block) bool { return b.Box >= 0 || slices.ContainsFunc(b.Blocks, hasBox) }

// isField says whether a row of a table is a field called acceptance criteria, with what they are.
func isField(b *markdown.Block) bool {
	if b.Kind != markdown.KindRow {
		return false
	}
	all := cells(b.Raw)
	return len(all) > 1 && markdown.IsCriteria(all[0])
}

// beginsOther says whether a block is called something else than criteria.
func beginsOther(b *markdown.Block) bool {
	name, _ := labelled(b.Raw)
	return isOther(name)
}

// ends says whether a paragraph begins something else than criteria: where a paragraph began them, any other in bold does.
func ends(b *markdown.Block, p place) bool {
	return b.Kind == markdown.KindParagraph && (beginsOther(b) || !p.whole && bold().MatchString(b.Raw) && !another().MatchString(b.Raw))
}

// blocks reads blocks that stand beside each other.
func (r *criteriaReader) blocks(all []markdown.Block, p place) {
	before := p
	for i := 0; i < len(all); {
		b := &all[i]
		at, rest, named := label(b)
		switch {
		case named:
			i++
			r.named(b, at, rest, all[i:], p)
			if p.counts = true; b.Kind == markdown.KindItem {
				p = before
			}
		case !p.counts && isField(b):
			r.add(b, cells(b.Raw)[1], "", b.End, p, ofScenario)
			i++
		case p.counts && (ends(b, p) || b.Kind == markdown.KindBreak && !p.whole):
			p.counts = r.passes(b, p)
			i++
		case b.Kind == markdown.KindHead && (p.counts || calls(*b)):
			i += r.table(all[i:], p)
		case !p.counts:
			r.aside(b, p)
			i++
		default:
			i += r.counting(all[i:], p)
		}
	}
}

// named reads a block of which a line calls what follows criteria. next are the blocks behind it.
func (r *criteriaReader) named(b *markdown.Block, at int, rest string, next []markdown.Block, p place) {
	if at > 0 && (p.counts || p.named) {
		r.leave(b.Line, prose)
	}
	p.counts = true
	if rest != "" {
		r.said(b, at, rest, next, p)
	}
	r.blocks(r.rest(b, at), p)
	if b.Kind == markdown.KindHTML && strings.Contains(textOf(b), "\n") {
		r.leave(b.Line, html)
	}
}

// said reads what is said behind the name of criteria in the same line: it is one, unless others follow.
func (r *criteriaReader) said(b *markdown.Block, at int, rest string, next []markdown.Block, p place) {
	follow := len(b.Lines) > at+1 || len(b.Blocks) > 0
	if b.Kind != markdown.KindItem && len(next) > 0 {
		_, _, named := label(&next[0])
		follow = follow || !named && !ends(&next[0], p) && next[0].Kind != markdown.KindBreak
	}
	if follow {
		r.leave(b.Line+at, prose)
		return
	}
	r.add(b, rest, "", b.End, p, ofBlock)
}

// rest returns what an item or paragraph has behind one of its lines, from 0.
func (r *criteriaReader) rest(b *markdown.Block, at int) []markdown.Block {
	if len(b.Lines) < at+2 || b.Kind == markdown.KindHTML {
		return b.Blocks
	}
	next := *b
	next.Kind, next.Blocks, next.Lines, next.Raw, next.Line = markdown.KindParagraph, nil, b.Lines[at+1:], b.Lines[at+1], b.Line+at+1
	next.Start = r.at(next.Line)
	return append([]markdown.Block{next}, b.Blocks...)
}

// at returns where a line begins.
func (r *criteriaReader) at(line int) int {
	if line <= len(r.lines) {
		return r.lines[line-1]
	}
	return len(r.src)
}

// passes names a paragraph that begins something else, and says whether that is all in it.
func (r *criteriaReader) passes(b *markdown.Block, p place) bool {
	name, rest := labelled(b.Raw)
	if b.Kind == markdown.KindParagraph && p.named {
		r.leave(b.Line, fmt.Sprintf("%q begins no criterion", name))
	}
	return p.whole && rest != ""
}

// aside reads a block that does not count.
func (r *criteriaReader) aside(b *markdown.Block, p place) {
	inside := slices.ContainsFunc(b.Blocks, calls)
	if p.named && b.Kind != markdown.KindBreak && (b.Kind != markdown.KindHTML || textOf(b) != "") && (!inside || b.Raw != "") {
		r.leave(b.Line, "what its section calls criteria stands elsewhere")
	}
	if inside {
		r.blocks(b.Blocks, p)
	}
}

const (
	prose = "it is prose, no list item, row of a table or scenario"
	html  = "it is HTML, no list item, row of a table or scenario"
)

// counting reads the first of blocks that count, and returns how many it read.
func (r *criteriaReader) counting(all []markdown.Block, p place) int {
	b := &all[0]
	switch b.Kind {
	case markdown.KindItem:
		return r.item(all, p)
	case markdown.KindParagraph, markdown.KindHeading, markdown.KindCode:
		return r.text(all, p)
	case markdown.KindQuote:
		r.blocks(b.Blocks, p)
	case markdown.KindHTML:
		if textOf(b) != "" {
			r.leave(b.Line, html)
		}
	}
	return 1
}

// add adds a criterion that is no list item.
func (r *criteriaReader) add(b *markdown.Block, raw, details string, end int, p place, of form) {
	it := b.Item
	it.Raw, it.Text, it.Details, it.End = raw, strings.Join(strings.Fields(raw), " "), details, end
	it.Heading, it.Parent, it.Box = p.heading, p.parent, -1
	if items := markdown.Parse([]byte("- [ ] " + raw)).Items(); len(items) == 1 {
		it.Text = items[0].Text // without markup
	}
	if it.Text == "" {
		r.leave(b.Line, "it has no text")
		return
	}
	r.all = append(r.all, found{it, of})
}
