package markdown_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/plan/markdown"
)

// A grown is a text made for a parser to take more than its length of something, of about
// n bytes.
type grown struct {
	name string
	text func(n int) string
}

func of(unit string) func(int) string {
	return func(n int) string { return strings.Repeat(unit, n/len(unit)+1) }
}

// evil are classic inputs of that kind, and some that goldmark or this package fell for.
func evil() []grown {
	list := []grown{
		{"square table", func(n int) string {
			return strings.Repeat("a|", n/6) + "\n" + strings.Repeat("-|", n/6) + "\n" + strings.Repeat("b\n", n/6)
		}},
		{"table in an item", func(n int) string {
			return "- [ ] a\n\n  " + strings.Repeat("a|", n/6) + "\n  " + strings.Repeat("-|", n/6) + "\n" + strings.Repeat("  b\n", n/12)
		}},
		{"blank lines in nested items", func(n int) string { return strings.Repeat("- ", 90) + "a\n" + strings.Repeat("\n", n) }},
		{"runs of backticks", func(n int) string {
			var b strings.Builder
			for i := 1; b.Len() < n; i++ {
				b.WriteString("a" + strings.Repeat("`", i))
			}
			return b.String()
		}},
		{"a definition used often", func(n int) string {
			return "[a]: /" + strings.Repeat("x", n/2) + "\n\n" + strings.Repeat("- [ ] b [a]\n", n/24)
		}},
		{"many definitions", func(n int) string {
			var b strings.Builder
			for i := 0; b.Len() < n; i++ {
				fmt.Fprintf(&b, "[%d]: b\n", i)
			}
			return b.String()
		}},
		{"a heading in many blocks", func(n int) string {
			return strings.Repeat("> a\n>\n", n/12) + "> # h\n\n" + strings.Repeat("b\n\n", n/6)
		}},
		{"a parent with many links", func(n int) string {
			return "- [ ] a " + strings.Repeat("[a](b) ", n/14) + "\n" + strings.Repeat("  - [ ] a\n", n/20)
		}},
		{"deep indentation", func(n int) string {
			var b strings.Builder
			for i := 0; b.Len() < n; i++ {
				b.WriteString(strings.Repeat("  ", i) + "- [ ] a\n")
			}
			return b.String()
		}},
		{"nested links", func(n int) string { return strings.Repeat("[", n/4) + "a" + strings.Repeat("](b)", n/6) }},
	}
	for _, unit := range []string{
		"[a](", "[](", "[", "![[[[", "[a](<b", "[a](((", "[![a](b)](", "[a](b", "*a_ ", "*_", "_ *", "*a **a ", "a**b", "~~a ", "<", "<!--", "<?", "<![CDATA[",
		"<a b='", "`", "&", "\\", "http://", "a@a@", "\x00", "\xff", "|", "]", "\t",
	} {
		list = append(list,
			grown{fmt.Sprintf("line of %q", unit), of(unit)},
			grown{fmt.Sprintf("item of %q", unit), func(n int) string { return "- [ ] a " + of(unit)(n) }},
			grown{fmt.Sprintf("lines of %q", unit), of(unit + "\n")},
			grown{fmt.Sprintf("items of %q", unit), of("- [ ] " + unit + "\n")},
			grown{fmt.Sprintf("headings of %q", unit), of("# " + unit + "\n")})
	}
	for _, unit := range []string{
		">", "> ", "- ", "1. ", "> - ", "- a\n", "- [ ] a\n", "> a\n", "-\n", "\n", "# a\n", "a\n===\n", "```\n", "    a\n", "<div>\n\n", "[a]: b\n", "[a]: b\n'\n", "[a\n",
		"a|b\n-|-\n", "-|-\n", "- [ ] a\r", "\r", "***\n", "a\n\n", "- a\n* b\n", "<!-- x -->",
	} {
		list = append(list, grown{fmt.Sprintf("%q repeated", unit), of(unit)})
	}
	return list
}

// allocated is what a parse allocates, in bytes: unlike time it is the same on a busy
// machine.
func allocated(src []byte) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	markdown.Parse(src)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Memory and time are linear in the input: twice the text takes at most 2.5 times as much,
// and none takes more than seconds, where the square would take minutes. Not parallel:
// what others allocate would count.
func TestLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector allocates as well; -short")
	}
	const n = 30_000
	for _, e := range evil() {
		once := allocated([]byte(e.text(n)))
		src := []byte(e.text(2 * n))
		begun := time.Now()
		twice := allocated(src)
		assert.LessOrEqual(t, float64(twice), 2.5*float64(once)+1<<20, "%s: from %d to %d bytes", e.name, once, twice)
		assert.LessOrEqual(t, twice, uint64(1000*len(src)), e.name)
		assert.Less(t, time.Since(begun), 10*time.Second, e.name)
	}
}

// Beyond a bound markup is text, and what holds too much is named.
func TestBounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 9<<10)
	require.Equal(t, "*a* "+long, markdown.Parse([]byte("- [ ] *a* " + long + "\n")).Items()[0].Text)
	stars := markdown.Parse([]byte("- [ ] " + strings.Repeat("*a* ", 200) + "\n- [ ] *b*\n")).Items()
	require.Contains(t, stars[0].Text, " a *a* ")
	require.Equal(t, "b", stars[1].Text)

	require.Len(t, markdown.Parse([]byte("# " + long)).Headings()[0].Text, 256)
	links := markdown.Parse([]byte("- [ ] a\n" + strings.Repeat("  [b](c)\n\n", 100) + "- [ ] [d](" + long[:2000] + ")\n")).Items()
	require.Len(t, links[0].Links, 64)
	require.Empty(t, links[1].Links)

	large := "# a\n\n- [ ] b\n\n```\n" + strings.Repeat("c\n", markdown.MaxUnits) + "```\n\n# d\n"
	doc := markdown.Parse([]byte(large))
	require.Equal(t, 5, doc.Over())
	require.Len(t, doc.Headings(), 1)
	require.Equal(t, len(large), doc.Headings()[0].End)
	require.Len(t, doc.Items(), 1)

	many := strings.Repeat("# a\n", markdown.MaxHeadings)
	doc = markdown.Parse([]byte(many))
	require.Zero(t, doc.Over())
	doc = markdown.Parse([]byte(many + "# b\n- [ ] c\n"))
	require.Equal(t, markdown.MaxHeadings+1, doc.Over())
	require.Len(t, doc.Headings(), markdown.MaxHeadings)
	require.Equal(t, len(many)+4+8, doc.Headings()[markdown.MaxHeadings-1].End)
}

// A row of a table is text of its own, and what an underline below it belongs to is told.
func TestTableRows(t *testing.T) {
	t.Parallel()
	doc := markdown.Parse([]byte("- [ ] a\n\n  x\n  h | [i](j)\n  --|--\n  [k](l) | m\n  n\n\na | b\n- | -\n1 | 2\n---\n\nc\n---\n"))
	require.Equal(t, []string{"j", "l"}, doc.Items()[0].Links)
	require.Len(t, doc.Headings(), 1)
	require.Equal(t, "c", doc.Headings()[0].Text)
}

// Front matter that takes the YAML library the square of its size, or more, is refused.
func TestMetaBounds(t *testing.T) {
	for _, src := range []string{
		"a: " + strings.Repeat("[", 60_000), "a: " + strings.Repeat("{a: ", 15_000), "a:\n " + strings.Repeat("- ", 30_000) + "b",
		"a: " + strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "a:\n " + strings.Repeat("? ", 1000) + "b", "a: &x [1]\nb: [*x, *x]", "a: *x", "a: " + strings.Repeat("!!seq ", 1000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := markdown.Meta([]byte("---\n" + src + "\n---\n"))
		runtime.ReadMemStats(&after)
		require.ErrorContains(t, err, "read front matter: line ")
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20), "%.20q", src)
	}
	fields, err := markdown.Meta([]byte("---\na: [[b, {c: [d]}]]\ne: R & D * 2\n---\n"))
	require.NoError(t, err)
	require.Len(t, fields, 2)
}
