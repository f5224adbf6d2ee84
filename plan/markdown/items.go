package markdown

import (
	"bytes"
	"regexp"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
)

func (w *walker) addItem(n *ast.ListItem, in scope) {
	first := n.FirstChild()
	if b := boxOf(first); b != nil {
		parent := in.task
		in.task = len(w.doc.items)
		it, sp := w.item(n, first, in)
		it.Parent, it.Checked, it.Box = parent, b.checked, b.at+w.base
		it.Line = w.line(it.Box) + 1
		w.doc.items = append(w.doc.items, it)
		w.itemSpans = append(w.itemSpans, sp)
	}
	w.blocks(n, in)
}

// boxOf returns the checkbox that a list item's first block begins with, if any.
func boxOf(first ast.Node) *box {
	if first == nil {
		return nil
	}
	b, _ := first.FirstChild().(*box)
	return b
}

// item reads what a list item with and one without a box have in common. text is
// its first block, a paragraph.
func (w *walker) item(n, text ast.Node, in scope) (Item, span) {
	begin := text.Lines().At(0).Start + w.base
	sp := span{first: w.line(begin), last: w.lastLine(n), quotes: in.quotes}
	sp.text = sp.first
	it := Item{Heading: w.heading}
	var comments []string
	it.Text, comments = w.plain(text, true)
	it.Comment = strings.Join(comments, "\n")
	for i := range text.Lines().Len() {
		seg := text.Lines().At(i)
		raw := seg.Value(w.body)
		if b := boxOf(text.Parent().FirstChild()); b != nil && i == 0 {
			raw = w.body[b.after:seg.Stop]
		}
		if raw = bytes.TrimSpace(raw); len(raw) > 0 {
			it.Raw = string(bytes.ToValidUTF8(raw, []byte("\uFFFD")))
			sp.text = w.line(seg.Start + w.base)
			break
		}
	}
	it.Start, it.End = w.lineStart(sp.first), w.lineStart(sp.last+1)
	return it, sp
}

// lastLine returns the last line of a block and all beneath it.
func (w *walker) lastLine(n ast.Node) int {
	last := 0
	if at := n.Pos(); at >= 0 {
		last = w.line(at + w.base)
	}
	if segs := n.Lines(); segs.Len() > 0 {
		last = max(last, w.line(max(segs.At(segs.Len()-1).Stop-1, 0)+w.base))
	}
	switch n := n.(type) {
	case *ast.FencedCodeBlock:
		// The closing fence is in no node.
		if w.matches(fence, last+1) {
			last++
		}
	case *ast.HTMLBlock:
		if n.HasClosure() {
			last = max(last, w.line(n.ClosureLine.Start+w.base))
		}
	case *ast.Heading:
		if n.Lines().Len() > 0 && w.matches(underline, last+1) {
			last++
		}
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if c.Type() == ast.TypeBlock {
			last = max(last, w.lastLine(c))
		}
	}
	return last
}

var (
	fence     = pattern("^[ \t>]*(```+|~~~+)$")
	underline = pattern(`^[ \t>]*(=+|-+)$`)
	lastNote  = pattern(`(?s)<!--((?:[^-]|-[^-])*?)-->$`)
)

// pattern compiles an expression once, when it is first used: most commands use none.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

func (w *walker) matches(what func() *regexp.Regexp, line int) bool {
	return line < len(w.lines) && what().Match(w.lineText(line))
}

// finish fills in the details, once it is known which lines belong to nested
// items.
func (w *walker) finish() {
	for i := range w.doc.items {
		w.details(&w.doc.items[i], w.itemSpans[i], i+1)
	}
}

// details collects the lines of an item that no task-list item nested in it
// has; next is the first item that may be nested. Lines of nested items are
// passed over at once, so that all details together cost one pass.
func (w *walker) details(it *Item, sp span, next int) {
	var lines []string
	for n := sp.first + 1; n <= sp.last; n++ {
		for next < len(w.itemSpans) && w.itemSpans[next].last < n {
			next++
		}
		if next < len(w.itemSpans) && w.itemSpans[next].first <= n {
			n = min(w.itemSpans[next].last, sp.last)
			continue
		}
		if n == sp.text {
			continue
		}
		lines = append(lines, unquote(string(w.lineText(n)), sp.quotes))
	}
	it.Details = strings.ToValidUTF8(dedent(lines), "\uFFFD")
	if it.Comment != "" {
		return
	}
	if m := lastNote().FindStringSubmatchIndex(it.Details); m != nil {
		it.Comment = strings.TrimSpace(it.Details[m[2]:m[3]])
		it.Details = strings.TrimRight(it.Details[:m[0]], " \t\n")
	}
}

// unquote takes off the marks of the quotes around an item.
func unquote(line string, quotes int) string {
	for range quotes {
		rest, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), ">")
		if !ok {
			break
		}
		line = strings.TrimPrefix(rest, " ")
	}
	return line
}

// dedent joins lines without the indentation that all share and without blank
// lines at either end. A tab counts as what it is: lines that mix tabs and
// spaces share what is equal.
func dedent(lines []string) string {
	var common string
	seen := false
	for _, l := range lines {
		if l == "" {
			continue
		}
		lead := l[:len(l)-len(strings.TrimLeft(l, " \t"))]
		if !seen {
			common, seen = lead, true
		}
		n := 0
		for n < len(common) && n < len(lead) && common[n] == lead[n] {
			n++
		}
		common = common[:n]
	}
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, common)
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}
