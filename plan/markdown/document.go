package markdown

import (
	"bytes"
	"slices"
	"sort"

	"github.com/yuin/goldmark/parser"
)

// A Document is what Parse found. Immutable.
type Document struct {
	lines    int
	headings []Heading
	items    []Item
	over     int
}

// A Heading is an ATX or Setext heading at the top level of the document; those
// in lists and quotes belong to their content. Its section goes from its first
// line to the next heading of the same or a higher level.
type Heading struct {
	Level        int      // 1 to 6
	Text         string   // inline markup reduced to text, at most 256 bytes of it
	Raw          string   // as written, without the marks of the heading itself
	Anchor       string   // as GitHub derives it; duplicates get -1, -2
	Start        int      // first byte of the heading's first line
	ContentStart int      // first byte of the line after the heading
	End          int      // end of the section
	Line         int      // of Start, 1-based
	Links        []string // destinations of the first 64 links in the heading, of at most 1 KiB each
	Parent       int      // index of the enclosing heading, -1 at the top
}

// An Item is one list item.
type Item struct {
	Line    int  // of the box (of the text where there is no box), 1-based
	Box     int  // offset of the byte between [ and ], -1 without a checkbox
	Checked bool // whether that byte is x or X
	// Text is the item's first line that holds any, as plain text, without box
	// and trailing HTML comments. Lines that continue it are details: else a
	// plan's IDs, made from the text, would change with every remark.
	Text string
	Raw  string // the same line as written, from behind the box, comments included
	// Details are the other lines of the item that belong to no task-list item
	// nested in it, without their common indentation and a trailing comment.
	Details string
	Links   []string // link destinations in text and details, as a heading has them
	// Comment holds the contents of the HTML comments at the end of the first
	// line, or else of the one at the item's end, one a line.
	Comment string
	Heading int // index of the heading that it stands under, -1 above the first
	Parent  int // index of the task-list item that encloses it, -1 for none
	Start   int // first byte of the line that it begins on
	End     int // end of its last line, that of nested items included
}

// Headings returns the document's headings in file order.
func (d *Document) Headings() []Heading { return slices.Clone(d.headings) }

// Title returns the index of the title among the headings, -1 for none: the first
// heading is the title if it is the only one of level 1.
func (d *Document) Title() int {
	for i, h := range d.headings {
		if (h.Level == 1) != (i == 0) {
			return -1
		}
	}
	return min(len(d.headings), 1) - 1
}

// Lines returns the number of lines, at least 1. What ends the last line begins
// no other.
func (d *Document) Lines() int { return d.lines }

// Over returns the line, from 1, of a block of more than MaxUnits, or of the heading
// after MaxHeadings, or 0. Headings and items from there on are not in the Document, and
// the text belongs to the section before them.
func (d *Document) Over() int { return d.over }

// Items returns the task-list items in file order: those that carry a checkbox,
// whatever their bullet or number and however deep they are, in quotes too.
func (d *Document) Items() []Item { return slices.Clone(d.items) }

// NumItems returns the number of task-list items.
func (d *Document) NumItems() int { return len(d.items) }

// Item returns one of the task-list items by its index in file order.
func (d *Document) Item(i int) Item { return d.items[i] }

// Parse reads a Markdown file. It takes any bytes; there is no error, as every
// byte sequence is Markdown.
func Parse(src []byte) *Document { return parse(src, engine, false, pieceSize) }

// ParseHeadings is Parse for a caller who needs the headings only: the Document
// has no items. It takes about half the time of Parse, and less memory.
func ParseHeadings(src []byte) *Document { return parse(src, headingEngine, true, pieceSize) }

func parse(src []byte, p parser.Parser, headings bool, size int) *Document {
	norm := normalize(src)
	base := contentStart(src)
	w := &walker{
		doc:     &Document{},
		norm:    norm,
		body:    norm[base:],
		base:    base,
		lines:   lineStarts(norm),
		anchors: anchors{},
		dests:   map[string]string{},
		heading: -1,
		only:    headings,
	}
	for piece := range pieces(w.body, p, size) {
		w.reserve(piece)
		w.blocks(piece.root, scope{task: -1})
		if piece.over >= 0 {
			w.doc.over = w.line(piece.over+base) + 1
		}
		if len(w.doc.headings) > MaxHeadings {
			w.cutHeadings()
			break
		}
	}
	w.finish()
	w.doc.lines = len(w.lines)
	return w.doc
}

// cutHeadings leaves MaxHeadings: what is behind them belongs to the last ones.
func (w *walker) cutHeadings() {
	cut := w.doc.headings[MaxHeadings]
	w.doc.over = cut.Line
	w.doc.headings = w.doc.headings[:MaxHeadings]
	for i := range w.doc.headings {
		if h := &w.doc.headings[i]; h.End >= cut.Start {
			h.End = len(w.norm)
		}
	}
	for i := range w.doc.items {
		w.doc.items[i].Heading = min(w.doc.items[i].Heading, MaxHeadings-1)
	}
}

// normalize returns src with CR LF as space LF and a lone CR as LF: the same
// length, and src itself where there is no CR.
func normalize(src []byte) []byte {
	if bytes.IndexByte(src, '\r') < 0 {
		return src
	}
	norm := bytes.Clone(src)
	for i, c := range norm {
		if c != '\r' {
			continue
		}
		if i+1 < len(norm) && norm[i+1] == '\n' {
			norm[i] = ' '
		} else {
			norm[i] = '\n'
		}
	}
	return norm
}

// lineStarts returns the offset of every line's first byte.
func lineStarts(norm []byte) []int {
	starts := make([]int, 1, bytes.Count(norm, []byte{'\n'})+1)
	for at := 0; ; {
		i := bytes.IndexByte(norm[at:], '\n')
		if at += i + 1; i < 0 || at == len(norm) {
			return starts
		}
		starts = append(starts, at)
	}
}

// line returns the 0-based number of the line that holds an offset. Most
// questions are about the line that was asked for last or the one after.
func (w *walker) line(at int) int {
	for n := w.near; n < min(w.near+3, len(w.lines)) && w.lines[n] <= at; n++ {
		if n+1 == len(w.lines) || at < w.lines[n+1] {
			w.near = n
			return n
		}
	}
	w.near = sort.SearchInts(w.lines, at+1) - 1
	return w.near
}

// lineStart returns the offset of a line, the end of the file for one behind
// the last.
func (w *walker) lineStart(n int) int {
	if n < len(w.lines) {
		return w.lines[n]
	}
	return len(w.norm)
}

// lineText returns a line without what ends it and spaces before that.
func (w *walker) lineText(n int) []byte {
	return bytes.TrimRight(w.norm[w.lineStart(n):w.lineStart(n+1)], " \t\n")
}
