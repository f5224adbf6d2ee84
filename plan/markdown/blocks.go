package markdown

import (
	"iter"
	"strings"

	"github.com/yuin/goldmark/ast"
	extension "github.com/yuin/goldmark/extension/ast"
)

// A Kind is what a Block is.
type Kind int

// The kinds of a Block. A list is the blocks of its items, a table those of its rows.
const (
	KindParagraph Kind = iota
	KindHeading
	KindItem
	KindHead // the header of a table
	KindRow
	KindCode
	KindHTML
	KindBreak
	KindQuote
)

var kinds = map[ast.NodeKind]Kind{
	ast.KindParagraph: KindParagraph, ast.KindHeading: KindHeading, ast.KindFencedCodeBlock: KindCode, ast.KindCodeBlock: KindCode,
	ast.KindHTMLBlock: KindHTML, ast.KindThematicBreak: KindBreak,
}

// A Block is one block of a document.
type Block struct {
	Kind   Kind
	Item            // of all kinds Line, that of the first text, Start, End, Heading and Raw; the rest of list items only
	Lines  []string // of its own text, as written; of code without the fences
	Quotes int      // how many quotes enclose it
	Blocks []Block  // what is in a quote, or in an item behind its first paragraph
}

// blockEngine is the parser of Blocks.
var blockEngine = newEngine(func(ast.Node) bool { return true }, true)

// Blocks returns the blocks at the top level of a Markdown file in file order. What is parsed at once is bounded
// as for Parse.
func Blocks(src []byte) iter.Seq[Block] {
	return func(yield func(Block) bool) {
		norm, base := normalize(src), contentStart(src)
		w := &walker{doc: &Document{}, norm: norm, body: norm[base:], base: base, lines: lineStarts(norm), dests: map[string]string{}, heading: -1}
		for piece := range pieces(w.body, blockEngine, pieceSize) {
			for _, b := range w.within(piece.root, scope{}, 0) {
				if !yield(b) {
					return
				}
			}
		}
	}
}

// Text returns the lines from one offset of a file to another without the marks of the quotes around them, and without the
// indentation that all of them have.
func Text(src []byte, start, end, quotes int) string {
	lines := strings.Split(string(normalize(src[start:max(start, end)])), "\n")
	for i := range lines {
		lines[i] = unquote(strings.TrimRight(lines[i], " \t"), quotes)
	}
	return strings.ToValidUTF8(dedent(lines), "\uFFFD")
}

// LineStarts returns the offset of each line of a file.
func LineStarts(src []byte) []int { return lineStarts(normalize(src)) }

// within returns the blocks in a block. plain is how many items without a box enclose them.
func (w *walker) within(parent ast.Node, in scope, plain int) (all []Block) {
	row := KindParagraph // what a text without a paragraph is
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *extension.Table:
			row = KindHead
			continue
		case *ast.List:
			all = append(all, w.within(n, in, plain)...)
		case *ast.ListItem:
			all = append(all, w.itemBlock(n, in, plain))
		case *ast.TextBlock:
			all = append(all, w.block(n, row, in))
			if row == KindHead {
				row = KindRow
			}
			continue
		case *ast.Blockquote:
			in := in
			in.quotes++
			b := w.block(n, KindQuote, in)
			b.Blocks = w.within(n, in, plain)
			all = append(all, b)
		default:
			kind, known := kinds[n.Kind()]
			if !known {
				continue
			}
			all = append(all, w.block(n, kind, in))
			if _, top := parent.(*ast.Document); top && kind == KindHeading {
				w.heading++
			}
		}
		row = KindParagraph
	}
	return all
}

// block returns what all kinds of blocks have.
func (w *walker) block(n ast.Node, kind Kind, in scope) Block {
	first := max(n.Pos(), 0) + w.base
	if n.Lines().Len() > 0 {
		first = n.Lines().At(0).Start + w.base
	}
	b := Block{Kind: kind, Quotes: in.quotes, Item: Item{Box: -1, Parent: -1, Heading: w.heading, Line: w.line(first) + 1}}
	b.Start, b.End = w.lineStart(b.Line-1), w.lineStart(w.lastLine(n)+1)
	lines := n.Lines().Sliced(0, n.Lines().Len())
	if html, ok := n.(*ast.HTMLBlock); ok && html.HasClosure() {
		lines = append(lines, html.ClosureLine)
	}
	for _, seg := range lines {
		b.Lines = append(b.Lines, strings.ToValidUTF8(strings.TrimSpace(string(seg.Value(w.body))), "\uFFFD"))
	}
	if len(b.Lines) > 0 {
		b.Raw = b.Lines[0]
	}
	return b
}

// maxPlain bounds how many items without a box enclose one that has Details: each has the lines of those in it.
const maxPlain = 6

// itemBlock returns the block of a list item.
func (w *walker) itemBlock(n *ast.ListItem, in scope, plain int) Block {
	first, next := n.FirstChild(), len(w.itemSpans)
	switch first.(type) {
	case *ast.TextBlock, *ast.Paragraph:
	default:
		b := w.block(n, KindItem, in)
		b.Blocks = w.within(n, in, plain+1)
		return b
	}
	b := w.block(first, KindItem, in)
	it, sp := w.item(n, first, in)
	it.Box, it.Parent, it.Line = -1, -1, sp.text+1
	if box := boxOf(first); box != nil {
		it.Checked, it.Box = box.checked, box.at+w.base
		it.Line = w.line(it.Box) + 1
		w.itemSpans = append(w.itemSpans, sp)
		next, plain = next+1, -1
	}
	b.Item, b.Blocks = it, w.within(n, in, plain+1)[1:] // the first is the text
	if plain < maxPlain {
		w.details(&b.Item, sp, next)
	}
	return b
}
