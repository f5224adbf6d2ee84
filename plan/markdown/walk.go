package markdown

import (
	"bytes"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// A walker turns the parser's tree into headings and items, in one pass over
// the blocks. Offsets in the tree count from base.
type walker struct {
	doc     *Document
	norm    []byte // the whole file, normalised
	body    []byte // norm[base:], what was parsed
	base    int
	lines   []int // offsets into norm
	near    int   // the line that was asked for last
	anchors anchors
	dests   map[string]string // every link destination
	heading int               // index of the heading that was passed last, -1 before the first
	only    bool              // headings, no items

	// Line ranges of the items, and of the text that names them, parallel to
	// doc.items. finish makes the details of them.
	itemSpans []span
}

// A span is where an item lies, in 0-based lines.
type span struct {
	first, text, last int // text is the line that Text was taken from
	quotes            int // how many quotes enclose it
}

// A scope is what encloses a block.
type scope struct {
	task   int // index of the innermost task-list item, -1 for none
	quotes int
}

// reserve makes room for what blocks will find in a piece. Growing lists of values
// of this size costs more than counting.
func (w *walker) reserve(p piece) {
	headings, items := 0, 0
	var count func(ast.Node)
	count = func(parent ast.Node) {
		for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
			switch n.(type) {
			case *ast.Heading:
				headings++
			case *ast.ListItem:
				if boxOf(n.FirstChild()) != nil {
					items++
				}
				count(n)
			case *ast.List, *ast.Blockquote:
				count(n)
			}
		}
	}
	count(p.root)
	w.doc.headings = room(w.doc.headings, headings, p.part)
	if !w.only {
		w.doc.items, w.itemSpans = room(w.doc.items, items, p.part), room(w.itemSpans, items, p.part)
	}
}

// room makes room for n more values, and where they do not fit for as many as the
// rest of the file holds if it is like the part before it, or for twice as many: the
// rest may be of another kind.
func room[T any](all []T, n int, part float64) []T {
	if n += len(all); n <= cap(all) {
		return all
	}
	return slices.Grow(all, min(int(float64(n)/part), 2*n)-len(all))
}

func (w *walker) blocks(parent ast.Node, in scope) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n.Type() != ast.TypeBlock {
			continue
		}
		switch n := n.(type) {
		case *ast.Heading:
			w.addHeading(n)
		case *ast.ListItem:
			if !w.only {
				w.addItem(n, in)
				continue
			}
		case *ast.Blockquote:
			inner := in
			inner.quotes++
			w.blocks(n, inner)
			continue
		}
		if in.task >= 0 {
			it := &w.doc.items[in.task]
			it.Links = w.links(it.Links, n)
		}
		w.blocks(n, in)
	}
}

// addHeading records a heading of the top level. One in a list or a quote takes
// its anchor, as it does on GitHub, and is content otherwise.
func (w *walker) addHeading(n *ast.Heading) {
	text, _ := w.plain(n, false)
	text = strings.ToValidUTF8(text[:min(len(text), maxHeading)], "")
	anchor := w.anchors.next(text)
	if _, top := n.Parent().(*ast.Document); !top {
		return
	}
	first := w.line(n.Pos() + w.base)
	last := first
	if segs := n.Lines(); segs.Len() > 0 {
		last = w.line(segs.At(segs.Len()-1).Start + w.base)
	}
	if !w.isATX(first, n.Level) {
		last++ // the underline
	}
	h := Heading{
		Level: n.Level, Text: text, Raw: rawText(n, w.body), Anchor: anchor,
		Start: max(w.lineStart(first), w.base), ContentStart: w.lineStart(last + 1), End: len(w.norm),
		Line: first + 1, Links: w.links(nil, n), Parent: w.heading,
	}
	for h.Parent >= 0 && w.doc.headings[h.Parent].Level >= h.Level {
		w.doc.headings[h.Parent].End = h.Start
		h.Parent = w.doc.headings[h.Parent].Parent
	}
	w.heading = len(w.doc.headings)
	w.doc.headings = append(w.doc.headings, h)
}

// isATX says whether a heading's first line has the form of an ATX heading of
// that level. No text line of a Setext heading can have it.
func (w *walker) isATX(line, level int) bool {
	s := bytes.TrimLeft(w.norm[max(w.lines[line], w.base):w.lineStart(line+1)], " ")
	s = bytes.TrimRight(s, "\n")
	marks := len(s) - len(bytes.TrimLeft(s, "#"))
	return marks == level && (len(s) == marks || s[marks] == ' ' || s[marks] == '\t')
}

// rawText returns a block's text as written, its lines joined by a space.
func rawText(n ast.Node, body []byte) string {
	var parts [][]byte
	for i := range n.Lines().Len() {
		seg := n.Lines().At(i)
		parts = append(parts, bytes.TrimSpace(seg.Value(body)))
	}
	return string(bytes.ToValidUTF8(bytes.Join(parts, []byte{' '}), []byte("\uFFFD")))
}
