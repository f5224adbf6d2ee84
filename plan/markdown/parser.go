package markdown

import (
	"fmt"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// maxDepth bounds how many blocks may enclose a list or a quote (a list and its
// item are two). cmark has a bound of the same kind.
const maxDepth = 200

// newEngine makes a parser of CommonMark with GitHub's tables, strikethrough and
// checkboxes. Bare addresses are left as text: they never lead to a section. The
// priorities are goldmark's own. Of what stands at the top level only that which
// holds something to keep is in the tree. Without markup, inline markup is text.
func newEngine(keep func(ast.Node) bool, markup bool) parser.Parser {
	blocks := []util.PrioritizedValue{
		util.Prioritized(parser.NewSetextHeadingParser(), 100),
		util.Prioritized(parser.NewThematicBreakParser(), 200),
		util.Prioritized(bounded{parser.NewListParser()}, 300),
		util.Prioritized(parser.NewListItemParser(), 400),
		util.Prioritized(parser.NewCodeBlockParser(), 500),
		util.Prioritized(parser.NewATXHeadingParser(), 600),
		util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
		util.Prioritized(bounded{parser.NewBlockquoteParser()}, 800),
		util.Prioritized(parser.NewHTMLBlockParser(), 900),
		util.Prioritized(parser.NewParagraphParser(), 1000),
	}
	for i, b := range blocks {
		blocks[i].Value = forgetful{b.Value.(parser.BlockParser), keep}
	}
	var inline []util.PrioritizedValue
	if markup {
		inline = append(parser.DefaultInlineParsers(), util.Prioritized(extension.NewStrikethroughParser(), 500))
		for i, p := range inline {
			inline[i].Value = few{p.Value.(parser.InlineParser)}
		}
		inline = append(inline, util.Prioritized(boxParser{}, 0))
	}
	transformers := parser.DefaultParagraphTransformers()
	for i, t := range transformers {
		transformers[i].Value = short{t.Value.(parser.ParagraphTransformer)}
	}
	return parser.NewParser(
		parser.WithBlockParsers(blocks...),
		parser.WithInlineParsers(inline...),
		parser.WithParagraphTransformers(append(transformers,
			util.Prioritized(tables{extension.NewTableParagraphTransformer()}, 200),
		)...),
	)
}

// bounded opens no block at maxDepth, so that a line of a million '>' neither
// takes forever nor overflows a stack in what walks the tree.
type bounded struct{ parser.BlockParser }

func (b bounded) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	depth := 0
	for n := parent; n != nil; n = n.Parent() {
		depth++
	}
	// The list parser must see the line of a sibling item even here: it resets
	// what the item before it noted, and opens nothing.
	if _, sibling := parent.(*ast.List); depth > maxDepth && !sibling {
		return nil, parser.NoChildren
	}
	return b.BlockParser.Open(parent, reader, pc)
}

// A box is the checkbox of a task-list item. goldmark's own node has no position
// of the byte, and its parser takes a link for a box.
type box struct {
	ast.BaseInline
	at      int // offset in the parsed text of the byte between the brackets
	after   int // offset of the byte behind the closing bracket
	checked bool
}

var kindBox = ast.NewNodeKind("PlanBox")

func (*box) Kind() ast.NodeKind { return kindBox }

func (b *box) Dump(source []byte, level int) { ast.DumpHelper(b, source, level, nil, nil) }

type boxParser struct{}

func (boxParser) Trigger() []byte { return []byte{'['} }

// Parse takes a box at the very beginning of a list item's first paragraph. As in
// cmark-gfm, whitespace must stand behind it. The end of the line will do, so that a
// task may be empty, or have its text on the next line.
func (boxParser) Parse(parent ast.Node, block text.Reader, _ parser.Context) ast.Node {
	item, ok := parent.Parent().(*ast.ListItem)
	if !ok || item.FirstChild() != parent || parent.HasChildren() {
		return nil
	}
	if _, heading := parent.(*ast.Heading); heading {
		return nil
	}
	line, seg := block.PeekLine()
	if len(line) < 3 || line[2] != ']' {
		return nil
	}
	checked := line[1] == 'x' || line[1] == 'X'
	if !checked && line[1] != ' ' && line[1] != '\t' {
		return nil
	}
	if len(line) > 3 && strings.IndexByte(" \t\v\f\r\n", line[3]) < 0 {
		return nil
	}
	block.Advance(3)
	return &box{at: seg.Start + 1, after: seg.Start + 3, checked: checked}
}

// rules grows when this package begins to read the same bytes differently.
const rules = 2

// Revision names what the parser's answers depend on besides the bytes: the
// rules of this package and the version of goldmark. Who keeps answers keeps it
// with them.
var Revision = sync.OnceValue(func() string {
	goldmark := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == "github.com/yuin/goldmark" {
				for dep.Replace != nil {
					dep = dep.Replace
				}
				goldmark = dep.Version + " " + dep.Sum
			}
		}
	}
	return fmt.Sprintf("%d goldmark %s", rules, goldmark)
})
