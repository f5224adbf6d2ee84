package markdown

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"
)

// inlines calls fn for every inline node beneath a block, in order, until fn
// returns false. It follows pointers instead of recursing: inline markup may
// nest as deep as a line is long.
func inlines(block ast.Node, fn func(ast.Node) bool) {
	for n := block.FirstChild(); n != nil; {
		if n.Type() != ast.TypeBlock {
			if !fn(n) {
				return
			}
			if n.FirstChild() != nil {
				n = n.FirstChild()
				continue
			}
		}
		for n != block && n.NextSibling() == nil {
			n = n.Parent()
		}
		if n == block {
			return
		}
		n = n.NextSibling()
	}
}

// links appends the destinations of the links in a block's own text, as far as there is
// room for them. A definition's destination is in memory once, however often it is used.
func (w *walker) links(dests []string, block ast.Node) []string {
	inlines(block, func(n ast.Node) bool {
		var dest []byte
		switch n := n.(type) {
		case *ast.Link:
			dest = n.Destination
		case *ast.AutoLink:
			dest = n.URL(w.body)
		default:
			return true
		}
		if len(dests) < maxLinks && len(dest) <= maxLink {
			s, known := w.dests[string(dest)]
			if !known {
				s = string(dest)
				w.dests[s] = s
			}
			dests = append(dests, s)
		}
		return len(dests) < maxLinks
	})
	return dests
}

// plain reduces a block's inline content to text. With oneLine it ends at the
// first line break behind any text and returns the comments that stood at the
// end; HTML is dropped in any case.
func (w *walker) plain(block ast.Node, oneLine bool) (text string, comments []string) {
	var b strings.Builder
	inlines(block, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Text:
			s := n.Segment.Value(w.body)
			if _, code := n.Parent().(*ast.CodeSpan); !code && !n.IsRaw() && bytes.ContainsAny(s, `&\`) {
				s = util.ResolveNumericReferences(util.ResolveEntityNames(util.UnescapePunctuations(s)))
			}
			b.Write(s)
			if len(bytes.TrimSpace(s)) > 0 {
				comments = nil
			}
			if n.SoftLineBreak() || n.HardLineBreak() {
				if oneLine && strings.TrimSpace(b.String()) != "" {
					return false
				}
				b.WriteByte(' ')
			}
		case *ast.AutoLink:
			b.Write(n.Label(w.body))
			comments = nil
		case *ast.RawHTML:
			if c, ok := comment(n.Segments.Value(w.body)); ok {
				comments = append(comments, c)
			}
		}
		return true
	})
	return squeeze(b.String()), comments
}

// squeeze leaves one space for each run of white space, none at either end, and
// makes the text valid UTF-8. Most texts are so already.
func squeeze(s string) string {
	clean, space := true, true
	for i := 0; i < len(s) && clean; i++ {
		switch c := s[i]; {
		case c == ' ':
			clean, space = !space, true
		case c < ' ' || c >= utf8.RuneSelf:
			clean = false
		default:
			space = false
		}
	}
	if clean && (!space || s == "") {
		return s
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
}

// comment returns what stands in an HTML comment.
func comment(html []byte) (string, bool) {
	s, ok := strings.CutPrefix(string(html), "<!--")
	if !ok {
		return "", false
	}
	s, ok = strings.CutSuffix(s, "-->")
	return strings.ToValidUTF8(strings.TrimSpace(s), "\uFFFD"), ok
}
