package markdown_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/plan/markdown"
)

func TestItems(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, src string
		want      string // "line box text" of each item, > for each level of nesting
	}{
		{"bullets", "- [ ] a\n* [x] b\n+ [X] c\n", "1 3[ ] a|2 11[x] b|3 19[X] c"},
		{"numbered", "1. [ ] a\n2. [x] b\n10) [ ] c\n", "1 4[ ] a|2 13[x] b|3 23[ ] c"},
		{"nested", "- [ ] a\n  - [x] b\n    1. [ ] c\n- [ ] d\n", "1 3[ ] a|2 13[x] > b|3 26[ ] > > c|4 34[ ] d"},
		{"nested in a plain item", "- plain\n  - [ ] b\n", "2 13[ ] b"},
		{"task under plain under task", "- [ ] a\n  - plain\n    - [ ] b\n", "1 3[ ] a|3 25[ ] > b"},
		{"tabs", "-\t[ ] a\n\t- [x] b\n", "1 3[ ] a|2 12[x] > b"},
		{"carriage returns", "# T\r\n\r\n- [ ] a\r\n- [x] b\r\n", "3 10[ ] a|4 19[x] b"},
		{"old Mac line ends", "- [ ] a\r- [x] b\r", "1 3[ ] a|2 11[x] b"},
		{"byte order mark", "\xef\xbb\xbf- [ ] a\n", "1 6[ ] a"},
		{"front matter", "---\ntitle: t\ntodo: |\n  - [ ] no\n---\n- [ ] a\n", "6 39[ ] a"},
		{"front matter after a byte order mark", "\xef\xbb\xbf---\r\nx: 1\r\n---\r\n- [ ] a", "4 22[ ] a"},
		{"a thematic break is no front matter", "---\n- [ ] a\n---\n- [x] b\n", "2 7[ ] a|4 19[x] b"},
		{"quote", "> - [ ] a\n>   - [x] b\n> > * [ ] c\n", "1 5[ ] a|2 17[x] > b|3 29[ ] c"},
		{"fenced code", "```\n- [ ] no\n```\n- [ ] a\n  ```\n  - [ ] no\n  ```\n", "4 20[ ] a"},
		{"indented code", "    - [ ] no\n\n- [ ] a\n\n      - [ ] no\n", "3 17[ ] a"},
		{"code behind the bullet", "-     [ ] no\n- `[ ]` no\n", ""},
		{"comment", "<!--\n- [ ] no\n-->\n- [ ] a <!-- - [ ] no -->\n", "4 21[ ] a"},
		{"duplicates", "- [ ] a\n- [ ] a\n", "1 3[ ] a|2 11[ ] a"},
		{"no final newline", "- [ ] a", "1 3[ ] a"},
		{"loose list", "- [ ] a\n\n- [x] b\n\n  more\n", "1 3[ ] a|3 12[x] b"},
		{"no text", "- [x]\n- [ ]\n- [ ] \n", "1 3[x] |2 9[ ] |3 15[ ] "},
		{"text on the next line", "- [ ]\n  a\n", "1 3[ ] a"},
		{"continued text", "- [ ] a\n  b\nlazy\n", "1 3[ ] a"},
		{"escaped", "- \\[ ] no\n- [\\ ] no\n- [ \\] no\n", ""},
		{"links", "- [x](u) no\n- [x][r] no\n- [x]: no\n- [ ]: no\n", ""},
		{"a box of a link's label", "- [x] a\n\n[x]: /u\n", "1 3[x] a"},
		{"no space behind the box", "- [ ]a\n- [x]* b\n- [x]*b*\n- [ ]\u00a0c\n- [ ]`d`\n", ""},
		{"whitespace behind the box", "- [ ]\ta\n- [x]\fb\n- [ ]\vc\n", "1 3[ ] a|2 11[x] b|3 19[ ] c"},
		{"tab in the box", "- [\t] a\n", "1 3[\t] a"},
		{"not a box", "- [] no\n- [y] no\n- [  ] no\n[ ] no\n-[ ] no\n", ""},
		{"second paragraph", "- a\n\n  [ ] no\n", ""},
		{"heading in an item", "- # [ ] no\n- a\n  ===\n", ""},
		{"NUL bytes", "- [ ] a\x00b\n\x00\n- [x] c\n", "1 3[ ] a\x00b|3 15[x] c"},
		{"invalid UTF-8", "- [ ] a\xff\n", "1 3[ ] a\uFFFD"},
		{"inline markup", "- [ ] **a** `b*` [c](u) &amp; \\* ~~d~~ <b>e</b> ![f](i)\n", "1 3[ ] a b* c & * d e f"},
		{"below a table", "a | b\n- | -\n1 | 2\n\n- [ ] a\n", "5 22[ ] a"},
		{"a table in place of a text", "- [ ] a | b\n  :- | -\n", ""},
		{"a second box", "- [ ] a [x] b\n", "1 3[ ] a [x] b"},
		{"list after a paragraph", "text\n- [ ] a\n", "2 8[ ] a"},
		{"number that is not one after a paragraph", "text\n2. [ ] no\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, render(tt.src))
			requireToggles(t, []byte(tt.src))
		})
	}
}

func render(src string) string {
	items := markdown.Parse([]byte(src)).Items()
	var out []string
	for _, it := range items {
		nest := ""
		for p := it.Parent; p >= 0; p = items[p].Parent {
			nest += "> "
		}
		out = append(out, fmt.Sprintf("%d %d[%c] %s%s", it.Line, it.Box, src[it.Box], nest, it.Text))
	}
	return strings.Join(out, "|")
}

// requireToggles changes each box and wants the same items with just that one
// turned over.
func requireToggles(t *testing.T, src []byte) {
	t.Helper()
	items := markdown.Parse(src).Items()
	for i, it := range items {
		changed := bytes.Clone(src)
		changed[it.Box] = 'x'
		if it.Checked {
			changed[it.Box] = ' '
		}
		want := markdown.Parse(src).Items()
		want[i].Checked = !it.Checked
		require.Equal(t, want, markdown.Parse(changed).Items(), "box %d of %q", i, src)
	}
}

func TestDetails(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, src, details, comment string }{
		{"none", "- [ ] a\n", "", ""},
		{"directly below", "- [ ] a\n  b\n    c\n", "b\n  c", ""},
		{"paragraphs", "- [ ] a\n\n  b\n\n  c\n\nout\n", "b\n\nc", ""},
		{"plain list", "- [ ] a\n  - b\n    - c\n- d\n", "- b\n  - c", ""},
		{"around nested items", "- [ ] a\n  b\n  - [ ] n\n    of n\n    - [ ] m\n\n  c\n", "b\n\nc", ""},
		{"fence", "- [ ] a\n  ```go\n  x\n    y\n  ```\n- b\n", "```go\nx\n  y\n```", ""},
		{"empty fence", "- [ ] a\n  ~~~\n  ~~~\n", "~~~\n~~~", ""},
		{"carriage returns", "- [ ] a\r\n  b\r\n  c\r\n", "b\nc", ""},
		{"tabs", "- [ ] a\n\tb\n\t\tc\n", "b\n\tc", ""},
		{"quote", "> - [ ] a\n>   b\n>     c\n", "b\n  c", ""},
		{"numbered", "10. [ ] a\n    b\n", "b", ""},
		{"comment behind the text", "- [ ] a <!-- after: b -->\n  c\n", "c", "after: b"},
		{"two comments", "- [ ] a <!-- x --> <!-- y -->\n", "", "x\ny"},
		{"comments at both ends", "- [ ] a <!-- x -->\n  c <!-- y -->\n", "c <!-- y -->", "x"},
		{"text on the next line", "- [ ]\n  a\n  b\n", "b", ""},
		{"comment inside the text", "- [ ] a <!-- x --> b\n", "", ""},
		{"comment before an address", "- [ ] a <!-- x --> <mailto:b>\n", "", ""},
		{"comment in code", "- [ ] a `<!-- x -->`\n", "", ""},
		{"comment on a line of its own", "- [ ] a\n  <!-- after: b -->\n", "", "after: b"},
		{"comment behind the details", "- [ ] a\n  c <!-- after: b -->\n", "c", "after: b"},
		{"setext heading", "- [ ] a\n\n  b\n  ---\n", "b\n---", ""},
		{"html", "- [ ] a\n  <pre>\n  b\n  </pre>\nout\n", "<pre>\nb\n</pre>", ""},
		{"lazy", "- [ ] a\nb\n", "b", ""},
		{"table", "- [ ] a\n\n  b | c\n  - | -\n", "b | c\n- | -", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			it := markdown.Parse([]byte(tt.src)).Items()[0]
			require.Equal(t, "a", strings.Fields(it.Text)[0])
			require.Equal(t, tt.details, it.Details)
			require.Equal(t, tt.comment, it.Comment)
		})
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	doc := markdown.Parse([]byte("## [H](h)\n\n- [ ] [a](a#1) ![no](no)\n  see [b][r] <http://c>\n\n  | [t](t) |\n  | - |\n  - [ ] [n](n)\n- plain [p](p)\n  - [q](q)\n- ![](no)\n\n[r]: b#2\n"))
	require.Equal(t, []string{"h"}, doc.Headings()[0].Links)
	require.Equal(t, []string{"a#1", "b#2", "http://c", "t"}, doc.Items()[0].Links)
	require.Equal(t, []string{"n"}, doc.Items()[1].Links)
}

func TestHeadings(t *testing.T) {
	t.Parallel()
	src := "pre\n\n# One #\n\n## Two *em* `code`\ntext\n\nSet\next\n---\n\n> # quoted\n\n- # listed\n\n```\n# code\n```\n<!--\n# html\n-->\n####### seven\n#no\n## Two em code\n### \n#"
	var got []string
	headings := markdown.Parse([]byte(src)).Headings()
	for _, h := range headings {
		got = append(got, fmt.Sprintf("%d %q #%s line %d in %d: %q", h.Level, h.Text, h.Anchor, h.Line, h.Parent, src[h.Start:h.ContentStart]))
	}
	require.Equal(t, []string{
		`1 "One" #one line 3 in -1: "# One #\n"`,
		`2 "Two em code" #two-em-code line 5 in 0: "## Two *em* ` + "`code`" + `\n"`,
		`2 "Set ext" #set-ext line 8 in 0: "Set\next\n---\n"`,
		`2 "Two em code" #two-em-code-1 line 24 in 0: "## Two em code\n"`,
		`3 "" # line 25 in 3: "### \n"`,
		`1 "" #-1 line 26 in -1: "#"`,
	}, got)
	require.Equal(t, "Set\next\n---\n\n> # quoted\n\n- # listed\n\n```\n# code\n```\n<!--\n# html\n-->\n####### seven\n#no\n",
		src[headings[2].Start:headings[2].End])
	require.Equal(t, headings[5].Start, headings[0].End)
	require.Equal(t, len(src), headings[5].End)
}

// What is forgotten while headings are looked for must not count for them.
func TestParseHeadings(t *testing.T) {
	t.Parallel()
	for _, src := range []string{
		"a\n\n# A\n\nb\n\n- # A\n\n> c\n\nA\n===\n\n> # A\n\n# A\n",
		"[a]: /u\n===\n\n[r]: /u\n\nb\n\n# [x][r] `c`\n\n# y [r]\n",
		"a | b\n- | -\n1 | 2\n---\n\nc\n\n# d\n",
		"- a\n\n- b\n\nc\nd\n---\n<pre>\n# no\n</pre>\n# e\n```\n# no\n```\n# f\n",
		"* * *\na\n***\nb\n=\n",
	} {
		doc := markdown.ParseHeadings([]byte(src))
		require.Equal(t, markdown.Parse([]byte(src)).Headings(), doc.Headings(), "%q", src)
		require.NotEmpty(t, doc.Headings(), "%q", src)
		require.Empty(t, doc.Items())
	}
}

// Memory follows the headings and the largest block, not the file.
func TestParseHeadingsForgets(t *testing.T) {
	src := []byte("# A\n\n" + strings.Repeat("*a* paragraph [with](a) `markup`\n\n- [ ] and an item\n\n***\n\n", 20_000))
	grown := func(parse func([]byte) *markdown.Document) uint64 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		parse(src)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	require.Less(t, grown(markdown.ParseHeadings), grown(markdown.Parse)*2/3)
}

func TestHeadingsWithByteOrderMark(t *testing.T) {
	t.Parallel()
	src := "\xef\xbb\xbf# A\r\nB\r\n=\r\n"
	h := markdown.Parse([]byte(src)).Headings()
	require.Equal(t, "# A\r\n", src[h[0].Start:h[0].ContentStart])
	require.Equal(t, "B\r\n=\r\n", src[h[1].Start:h[1].ContentStart])
}

func TestAnchors(t *testing.T) {
	t.Parallel()
	src := "# A\n# A 1\n# A\n# A\n# A-1\n# Crème & Brûlée_x (v1.0)\n> # A\n\n# A\n"
	var got []string
	for _, h := range markdown.Parse([]byte(src)).Headings() {
		got = append(got, h.Anchor)
	}
	require.Equal(t, []string{"a", "a-1", "a-2", "a-3", "a-1-1", "crème--brûlée_x-v10", "a-5"}, got)
}

func TestSlug(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Add JWT validation":  "add-jwt-validation",
		"  --Über 2 Dinge!? ": "über-2-dinge",
		"日本語 テスト":             "日本語-テスト",
		"हिन्दी":              "हिन्दी",
		"!?":                  "item",
		"":                    "item",
		"a/b.c":               "a-b-c",
	} {
		require.Equal(t, want, markdown.Slug(text))
	}
}

func TestName(t *testing.T) {
	t.Parallel()
	require.Equal(t, "acceptance-criteria", markdown.Name("4.2 Acceptance Criteria:"))
	require.Equal(t, "tasks-2", markdown.Name("Tasks 2"))
	require.Empty(t, markdown.Name("42"))
}

func TestTitle(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]int{
		"# A\n## B\n### C\n": 0, "# A\n": 0, "": -1, "## A\n": -1, "## A\n# B\n": -1, "# A\n# B\n": -1,
	} {
		require.Equal(t, want, markdown.Parse([]byte(src)).Title(), "%q", src)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]int{"": 1, "a": 1, "a\n": 1, "a\nb": 2, "a\r\rb\r\n": 3} {
		require.Equal(t, want, markdown.Parse([]byte(src)).Lines(), "%q", src)
	}
}

func TestFrontMatter(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"---\na: 1\n---\nx":             "---\na: 1\n---\n",
		"---\n# c\n\n\"a\": 1\n...\nx":  "---\n# c\n\n\"a\": 1\n...\n",
		"\xef\xbb\xbf--- \ra:\r---\rx":  "--- \ra:\r---\r",
		"---\na: 1\n---":                "---\na: 1\n---",
		"---\na: 1\n":                   "",
		"---\n---\n":                    "",
		"---\n- a: 1\n---\n":            "",
		"---\n# Heading\n\ntext\n---\n": "",
		"\n---\na: 1\n---\n":            "",
		"----\na: 1\n---\n":             "",
		"":                              "",
	} {
		start, end := markdown.FrontMatter([]byte(src))
		require.Equal(t, want, src[start:end], "%q", src)
	}
}

func TestMeta(t *testing.T) {
	t.Parallel()
	fields, err := markdown.Meta([]byte("\xef\xbb\xbf---\r\nname: storage # a note\r\ndescription: >-\r\n  Two\r\n  lines.\r\nsections: [A/B, 'C: D']\r\ndepth: 3\r\nends: \"with...\"\r\n---\r\n# T\r\n"))
	require.NoError(t, err)
	require.Equal(t, []markdown.Field{
		{Name: "name", Value: "storage"}, {Name: "description", Value: "Two lines."},
		{Name: "sections", Value: []any{"A/B", "C: D"}}, {Name: "depth", Value: uint64(3)}, {Name: "ends", Value: "with..."},
	}, fields)
	for _, src := range []string{"", "# T\n", "---\n- a\n---\n"} {
		fields, err = markdown.Meta([]byte(src))
		require.True(t, err == nil && len(fields) == 0, "%q: %v", src, err)
	}
	for _, src := range []string{"---\na: 1\na: 2\n---\n", "---\na: [\n---\n", "---\na: " + strings.Repeat("x", markdown.MaxMeta) + "\n---\n"} {
		_, err = markdown.Meta([]byte(src))
		require.ErrorContains(t, err, "read front matter: ")
	}
}

func FuzzMeta(f *testing.F) {
	f.Add([]byte("---\nname: a\nlist: [b, {c: d}]\n...\n"))
	f.Add([]byte("---\na: &x [1]\nb: *x\n---\n"))
	for _, s := range []string{strings.Repeat("[", 60_000), strings.Repeat("[", 32) + strings.Repeat("]", 32), strings.Repeat("{a: ", 31), "\n " + strings.Repeat("- ", 30_000), strings.Repeat("!!seq ", 40)} {
		f.Add([]byte("---\na: " + s + "\n---\n"))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		start, end := markdown.FrontMatter(src)
		require.True(t, 0 <= start && start <= end && end <= len(src))
		fields, err := markdown.Meta(src)
		require.True(t, err == nil || fields == nil)
	})
}

// A line of a million marks is neither quadratic nor the end of the stack.
func TestDepth(t *testing.T) {
	t.Parallel()
	n := 1 << 20
	for _, unit := range []string{">", "> ", "- ", "1. ", "> - "} {
		src := strings.Repeat(unit, n/len(unit)) + "[ ] a\n\n- [ ] b\n"
		items := markdown.Parse([]byte(src)).Items()
		require.Equal(t, "b", items[len(items)-1].Text, "%q", unit)
	}
	src := "- [ ] a " + strings.Repeat("*a _b ", n/6) + strings.Repeat("_ *", n/6)
	require.Len(t, markdown.Parse([]byte(src)).Items(), 1)
}

func FuzzToggle(f *testing.F) {
	for _, s := range []string{
		"- [ ] a\n", "1. [x] a\r\n\t- [ ] b\r\n", "> * [X]\n>\n> + [ ] c", "---\na: b\n---\n# T\n- [ ] <!--x-->",
		"- [ ]: a\n", "- [a]: b\n  [ ] c", "-\t[ ] a\n\n\tb\n", "\xef\xbb\xbf- [ ] a\x00\xff", "- [ ] a | b\n  - | -\n", "- [ ] a\r- [x] b",
		"```\n- [ ] a\n", "- [ ] a\n  ===\n- [x] b\n  ---\n",
	} {
		f.Add([]byte(s))
	}
	for _, e := range evil() {
		f.Add([]byte(e.text(200)))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		require.LessOrEqual(t, allocated(src), uint64(1000*len(src)+4<<20))
		doc := markdown.Parse(src)
		requireToggles(t, src)
		require.Equal(t, doc.Headings(), markdown.ParseHeadings(src).Headings())
		end := 0
		for _, h := range doc.Headings() {
			require.True(t, end <= h.Start && h.Start < h.ContentStart && h.ContentStart <= h.End && h.End <= len(src), "%+v", h)
			end = h.ContentStart
		}
		for _, it := range doc.Items() {
			require.True(t, 0 <= it.Start && it.Start < it.End && it.End <= len(src), "%+v", it)
		}
	})
}

func ExampleParse() {
	src := []byte("# Plan\n\n## Auth\n\n- [x] Add a login form\n- [ ] Add JWT validation\n")
	doc := markdown.Parse(src)
	for _, it := range doc.Items() {
		fmt.Println(doc.Headings()[it.Heading].Text, it.Line, it.Checked, it.Text)
	}
	src[doc.Items()[1].Box] = 'x'
	fmt.Println(markdown.Parse(src).Items()[1].Checked)
	// Output:
	// Auth 5 true Add a login form
	// Auth 6 false Add JWT validation
	// true
}
