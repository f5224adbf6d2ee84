package markdown

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// What goldmark looks for in a text takes the square of the text's length, and more,
// where the text is made for it. So it looks in so much of it, and the rest is text.
const (
	// maxMarkup is the longest text, in bytes, in which inline markup, link definitions
	// or the head of a table are looked for.
	maxMarkup = 8 << 10
	// maxMarks bounds the characters of one text that may begin or end inline markup.
	maxMarks = 256
	// maxPieceMarks bounds them in a piece: each takes some 500 bytes.
	maxPieceMarks = 64 << 10
	// maxDefinitions is the longest paragraph, in lines, in which link definitions are
	// looked for.
	maxDefinitions = 1000
	// maxHeading bounds a heading's text, in bytes: it is part of the path of
	// every section below it.
	maxHeading = 256
	// maxLinks bounds the links of one heading or item, maxLink one of them in bytes.
	maxLinks, maxLink = 64, 1 << 10
)

// length is how many bytes of the source the lines of a block span.
func length(n ast.Node) int {
	lines := n.Lines()
	if lines.Len() == 0 {
		return 0
	}
	return lines.At(lines.Len()-1).Stop - lines.At(0).Start
}

// few is an inline parser that is asked so often for a text and a piece.
type few struct{ parser.InlineParser }

type marks struct {
	of   ast.Node
	text int // how many are left of the text
	all  int // and of the piece
}

var marksKey = parser.NewContextKey()

func (f few) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	m := pc.ComputeIfAbsent(marksKey, func() any { return &marks{all: maxPieceMarks} }).(*marks)
	if m.of != parent {
		m.of, m.text = parent, maxMarks
		if length(parent) > maxMarkup {
			m.text = 0
		}
	}
	if m.text == 0 || m.all == 0 {
		return nil
	}
	m.text--
	m.all--
	return f.InlineParser.Parse(parent, block, pc)
}

// CloseBlock is for the parsers that have one.
func (f few) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	if c, ok := f.InlineParser.(parser.CloseBlocker); ok {
		c.CloseBlock(parent, block, pc)
	}
}

// short is a transformer that is given short paragraphs only.
type short struct{ parser.ParagraphTransformer }

func (s short) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	if node.Lines().Len() <= maxDefinitions && length(node) <= maxMarkup {
		s.ParagraphTransformer.Transform(node, reader, pc)
	}
}

// tables has a table without its cells: goldmark makes as many of each row as the
// header has. What stands in the header and the rows follows it as text.
type tables struct{ parser.ParagraphTransformer }

// delimiters is the row below a table's header.
var delimiters = pattern(`^ {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$`)

func (t tables) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	lines := node.Lines()
	all := lines.Sliced(0, lines.Len())
	for i := 1; i < len(all); i++ {
		row := all[i].Value(reader.Source())
		if len(row) > maxMarkup || !bytes.ContainsAny(row, "|:") || len(bytes.Trim(row, "-|: \t\v\f\r\n")) > 0 || !delimiters().Match(row) {
			continue
		}
		if all[i-1].Len() <= maxMarkup {
			t.at(node, all, i, reader, pc)
		}
		return
	}
}

// at makes a table of a paragraph whose line i may be the one below a header.
func (t tables) at(node *ast.Paragraph, all []text.Segment, i int, reader text.Reader, pc parser.Context) {
	parent := node.Parent()
	head := text.NewSegments()
	head.Append(all[i-1])
	head.Append(all[i])
	probe := ast.NewParagraph()
	probe.SetLines(head)
	probe.SetPos(node.Pos())
	parent.InsertAfter(parent, node, probe)
	t.ParagraphTransformer.Transform(probe, reader, pc)
	if probe.Parent() != nil {
		parent.RemoveChild(parent, probe)
		return
	}
	table := node.NextSibling()
	table.RemoveChildren(table)
	last := table
	for j := i - 1; j < len(all); j++ {
		if j == i {
			continue
		}
		row := ast.NewTextBlock()
		row.Lines().Append(all[j])
		row.SetPos(all[j].Start)
		parent.InsertAfter(parent, last, row)
		last = row
	}
	if i == 1 {
		parent.RemoveChild(parent, node)
		return
	}
	rest := text.NewSegments()
	rest.AppendAll(all[:i-1])
	end := rest.At(i - 2)
	end.Stop-- // its line end
	rest.Set(i-2, end)
	node.SetLines(rest)
}
