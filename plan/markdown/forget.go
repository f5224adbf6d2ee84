package markdown

import (
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

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
