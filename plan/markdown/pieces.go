package markdown

import (
	"bytes"
	"iter"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// MaxUnits bounds the lines and blocks in one block at the top level, or in one item of a
// list there: nothing divides them. A unit takes some 500 bytes.
const MaxUnits = 100_000

// MaxHeadings bounds the headings of a file. Each takes some 1,000 bytes.
const MaxHeadings = 100_000

const (
	// pieceSize is how many bytes are parsed at once, at least. goldmark's tree takes
	// 25 to 40 times the text that it is of, and 500 times where the text is made for it.
	pieceSize = 64 << 10
	// maxReferences bounds the link definitions of a file that is in pieces.
	maxReferences = 10_000
	// maxLabel is the longest label that a link may have, in bytes.
	maxLabel = 999
)

// A piece is the tree of a part of a file.
type piece struct {
	root ast.Node
	part float64 // how much of the file ends with it, above 0 up to 1
	over int     // offset of the block that has more than MaxUnits, -1 for none; nothing behind it is read
}

// pieces parses a file in pieces of at least size bytes, so that no more than one
// tree is in memory. A piece ends where a block begins at the top level, or an item of
// a list at the top level: there everything before it is closed, and nothing but the
// link definitions of the whole file tells how to continue.
func pieces(body []byte, p parser.Parser, size int) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		var known *references
		if len(body) > size && bytes.Contains(body, []byte("]:")) {
			known = &references{Context: parser.NewContext()}
			for range inPieces(body, referenceEngine, size, known, known) {
			}
		}
		inPieces(body, p, size, known, nil)(yield)
	}
}

// inPieces parses a file in pieces, with the references that are known, if any, and notes
// those that it finds.
func inPieces(body []byte, p parser.Parser, size int, known, found *references) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		r := &pieceReader{Reader: text.NewReader(body), size: size}
		for {
			root := p.Parse(r, parser.WithContext(pieceContext{parser.NewContext(), known, found}))
			if !r.ended {
				yield(piece{root, 1, -1})
				return
			}
			last := root.LastChild()
			if r.item { // the item begins the next piece
				last.RemoveChild(last, last.LastChild())
			} else { // the block does, or is over the bound
				root.RemoveChild(root, last)
			}
			pc := piece{root, float64(r.from+1) / float64(len(body)+1), -1}
			if r.over {
				pc.over = r.block
			}
			if !yield(pc) || r.over {
				return
			}
			r.next()
		}
	}
}

// A pieceReader reads up to the first block at the top level behind size bytes.
type pieceReader struct {
	text.Reader
	size  int
	from  int  // where the piece begins; once it has ended, where the next one does
	block int  // where the last block at the top level began
	units int  // lines and blocks of the piece
	item  bool // the piece ended with an item of a list
	ended bool // there is nothing more to read in this piece
	over  bool // because it has more than MaxUnits
}

// begins is called with each block, and of each that is at the top level or an item of a
// list there, at a position on its first line.
func (r *pieceReader) begins(at int, top, item bool) {
	if r.ended {
		return
	}
	r.units++
	if !top && !item {
		return
	}
	at = bytes.LastIndexByte(r.Source()[:at], '\n') + 1
	r.block = at
	if at-r.from >= r.size {
		r.from, r.ended, r.item = at, true, item
	}
}

// next continues with the block that ended the piece.
func (r *pieceReader) next() {
	r.ended, r.item, r.units = false, false, 0
	r.SetPosition(0, text.NewSegment(r.from, r.from))
	r.Reader.AdvanceLine()
}

// PeekLine ends a piece: the parser closes what is open and returns.
func (r *pieceReader) PeekLine() ([]byte, text.Segment) {
	line, seg := r.Reader.PeekLine()
	if r.ended {
		line = nil
	}
	return line, seg
}

// AdvanceLine passes over all but the last of several blank lines: for each of them
// goldmark notes something about every open block. How many there are means nothing.
func (r *pieceReader) AdvanceLine() {
	r.Reader.AdvanceLine()
	if r.units++; r.units > MaxUnits && !r.ended {
		r.ended, r.over = true, true
	}
	n, seg := r.Position()
	src := r.Source()
	for isBlank(src[seg.Start:seg.Stop]) && seg.Stop < len(src) {
		end := seg.Stop
		if i := bytes.IndexByte(src[end:], '\n'); i >= 0 {
			end += i + 1
		} else {
			end = len(src)
		}
		if !isBlank(src[seg.Stop:end]) {
			break
		}
		seg = text.NewSegment(seg.Stop, end)
		r.SetPosition(n-1, text.NewSegment(seg.Start, seg.Start))
		r.Reader.AdvanceLine()
	}
}

func isBlank(line []byte) bool { return len(bytes.Trim(line, " \t\n")) == 0 }

// references are the link definitions of a file.
type references struct {
	parser.Context
	n int
}

// A pieceContext is the context of one piece.
type pieceContext struct {
	parser.Context
	known *references // of the whole file; nil where the piece is the whole file
	found *references // where definitions are noted
}

func (c pieceContext) Reference(label string) (parser.Reference, bool) {
	if c.known != nil {
		return c.known.Reference(label)
	}
	return c.Context.Reference(label)
}

// AddReference notes a definition. That of a block which begins the next piece is noted
// twice, the first one without a title on the next line.
func (c pieceContext) AddReference(ref parser.Reference) {
	switch {
	case len(ref.Label()) > maxLabel:
	case c.found == nil:
		c.Context.AddReference(ref)
	case c.found.n < maxReferences:
		c.found.n++
		c.found.AddReference(ref)
	}
}

// The parsers of Parse, of ParseHeadings, and of link definitions alone.
var (
	engine          = newEngine(func(n ast.Node) bool { return isHeading(n) || n.Kind() == ast.KindListItem }, true)
	headingEngine   = newEngine(isHeading, true)
	referenceEngine = newEngine(func(ast.Node) bool { return false }, false)
)

func isHeading(n ast.Node) bool { return n.Kind() == ast.KindHeading }

// forgetful takes what is finished and holds nothing to keep out of the tree each
// time a block begins at the top level, before its inline markup is looked at: so
// time and memory grow with what is retained and the largest block, not the file. It tells
// the reader where a piece may end.
type forgetful struct {
	parser.BlockParser
	keep func(ast.Node) bool
}

// retainedKey is the context key of the last top-level block that must be retained.
var retainedKey = parser.NewContextKey()

func (f forgetful) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	_, at := reader.Position()
	node, state := f.BlockParser.Open(parent, reader, pc)
	if node == nil {
		return node, state
	}
	doc, top := parent.(*ast.Document)
	// The underline of a Setext heading begins nothing: it makes a heading of what is open.
	begins := top && state&parser.RequireParagraph == 0
	if r, ok := reader.(*pieceReader); ok {
		item := node.Kind() == ast.KindListItem && parent.Parent().Kind() == ast.KindDocument
		r.begins(at.Start, begins, item)
	}
	if !top || doc.LastChild() == nil {
		return node, state
	}
	// The last one may still be open: it is closed after this, or becomes a
	// Setext heading. Those before it are closed, and looked at once: the first
	// that is retained ends the loop.
	retained := pc.Get(retainedKey)
	for last := doc.LastChild().PreviousSibling(); last != nil && last != retained; {
		if f.holds(last) {
			pc.Set(retainedKey, last)
			break
		}
		before := last.PreviousSibling()
		doc.RemoveChild(doc, last)
		last = before
	}
	return node, state
}

// holds says whether a block is one to keep or encloses one.
func (f forgetful) holds(n ast.Node) bool {
	if f.keep(n) {
		return true
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if f.holds(c) {
			return true
		}
	}
	return false
}
