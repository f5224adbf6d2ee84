package markdown

import (
	"bytes"
	"iter"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

const (
	// pieceSize is how many bytes are parsed at once, at least. goldmark's tree takes
	// 25 to 40 times the text that it is of.
	pieceSize = 256 << 10
	// wholePieces is how many pieces are parsed as one if the file has link
	// definitions: to find them first takes half the time of a parse.
	wholePieces = 32
)

// A piece is the tree of a part of a file.
type piece struct {
	root ast.Node
	part float64 // how much of the file ends with it, above 0 up to 1
}

// pieces parses a file in pieces of at least size bytes, so that no more than one
// tree is in memory. A piece ends where an ATX heading at the top level begins: there
// everything before it is closed, and nothing but the link definitions of the whole
// file tells how to go on. A file without such headings is one piece.
func pieces(body []byte, p parser.Parser, size int) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		r := &pieceReader{Reader: text.NewReader(body), size: size}
		var known parser.Context
		if bytes.Contains(body, []byte("]:")) {
			if r.size = size * wholePieces; len(body) > r.size {
				r.size, known = size, parser.NewContext()
				nothingEngine.Parse(text.NewReader(body), parser.WithContext(known))
			}
		}
		for more := true; more; {
			pc := parser.NewContext()
			if known != nil {
				pc = referring{pc, known}
			}
			root := p.Parse(r, parser.WithContext(pc))
			part := 1.0
			if more = r.ended; more {
				root.RemoveChild(root, root.LastChild()) // the heading begins the next piece
				part = float64(r.from+1) / float64(len(body)+1)
				r.next()
			}
			if !yield(piece{root, part}) {
				return
			}
		}
	}
}

// A pieceReader reads up to the first heading behind size bytes.
type pieceReader struct {
	text.Reader
	size  int
	from  int  // where the piece begins; once it has ended, where the next one does
	ended bool // there is nothing more to read in this piece
}

// heading is told of each ATX heading at the top level, by the begin of its line.
func (r *pieceReader) heading(at int) {
	if at-r.from >= r.size {
		r.from, r.ended = at, true
	}
}

// next goes on with the heading that ended the piece.
func (r *pieceReader) next() {
	r.ended = false
	r.SetPosition(0, text.NewSegment(r.from, r.from))
	r.AdvanceLine()
}

// PeekLine ends a piece: the parser closes what is open, the heading, and returns.
func (r *pieceReader) PeekLine() ([]byte, text.Segment) {
	line, seg := r.Reader.PeekLine()
	if r.ended {
		line = nil
	}
	return line, seg
}

// referring is a context that knows the references of the whole file.
type referring struct {
	parser.Context
	file parser.Context
}

func (c referring) Reference(label string) (parser.Reference, bool) { return c.file.Reference(label) }
