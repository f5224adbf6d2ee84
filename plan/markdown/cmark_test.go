package markdown_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/plan/markdown"
)

// golden holds the examples of the CommonMark specification and some task lists, each
// with what cmark and cmark-gfm made of it: output of these two programs that was
// recorded once, with the versions that the file names. To record it again, with both
// installed: go test ./plan/markdown -run TestCmark$ -update-cmark.
const golden = "testdata/cmark.json"

var (
	updateCmark = flag.Bool("update-cmark", false, "make "+golden+" anew, with the cmark and cmark-gfm that are installed")
	corpus      = flag.String("corpus", "", "compare with cmark on every Markdown file below this folder")
)

type goldenFile struct {
	Source, Tools string
	Examples      []example
}

// An example is a document and its outline.
type example struct {
	Markdown string
	Headings []oracleHeading
	Boxes    []oracleBox `json:",omitempty"`
	// Differs says why this package answers otherwise; it is kept by an update.
	Differs string `json:",omitempty"`
}

// Where a heading itself ends is left out: cmark counts the line below a Setext
// heading to it.
type oracleHeading struct {
	Level, First int
	Text         string
}

type oracleBox struct {
	Line    int
	Checked bool
}

// TestCmark compares headings, the bounds of sections and checkboxes with the recorded
// output of two independent parsers, so that it needs neither. Whether they still say
// so is asked by TestCmarkInstalled.
func TestCmark(t *testing.T) {
	t.Parallel()
	g := readGolden(t)
	if *updateCmark {
		for i, e := range g.Examples {
			g.Examples[i] = ask(t, []byte(e.Markdown))
			g.Examples[i].Differs = e.Differs
		}
		data, err := json.MarshalIndent(g, "", " ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(golden, append(data, '\n'), 0o644))
	}
	require.Greater(t, len(g.Examples), 652)
	for i, e := range g.Examples {
		diff := compare([]byte(e.Markdown), e)
		if e.Differs == "" {
			assert.Empty(t, diff, "example %d, recorded from %s: %q", i+1, g.Tools, e.Markdown)
		} else {
			assert.NotEmpty(t, diff, "example %d agrees by now: %q", i+1, e.Markdown)
		}
	}
}

// TestCmarkInstalled asks the parsers themselves, where they are installed.
func TestCmarkInstalled(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"cmark", "cmark-gfm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed: TestCmark compares with what it said once", tool)
		}
	}
	for i, e := range readGolden(t).Examples {
		if i%10 == 0 || len(e.Boxes) > 0 { // what they say of the rest is in the file
			now := ask(t, []byte(e.Markdown))
			now.Differs = e.Differs
			require.Equal(t, e, now)
		}
	}
}

// TestCorpus is run by hand: go test ./plan/markdown -run TestCorpus -v -corpus DIR.
func TestCorpus(t *testing.T) {
	if *corpus == "" {
		t.Skip("no -corpus")
	}
	files, headings, boxes, differ := 0, 0, 0, 0
	require.NoError(t, filepath.WalkDir(*corpus, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.EqualFold(filepath.Ext(path), ".md") {
			return err
		}
		src, err := os.ReadFile(path)
		require.NoError(t, err)
		// cmark knows neither front matter nor a byte order mark in front of it.
		if _, end := markdown.FrontMatter(src); end > 0 {
			src = src[end:]
		}
		want := ask(t, src)
		files++
		headings += len(want.Headings)
		boxes += len(want.Boxes)
		if diff := compare(src, want); diff != "" {
			differ++
			t.Logf("%s: %s", path, diff)
		}
		return nil
	}))
	t.Logf("%d files, %d headings, %d boxes, %d files differ", files, headings, boxes, differ)
}

func readGolden(t *testing.T) (g goldenFile) {
	t.Helper()
	data, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &g))
	return g
}

// compare says how this package's answer differs from cmark's.
func compare(src []byte, want example) string {
	doc := markdown.Parse(src)
	var got []oracleHeading
	starts := []int{0}
	for i, c := range src {
		if c == '\n' || c == '\r' && !(i+1 < len(src) && src[i+1] == '\n') {
			starts = append(starts, i+1)
		}
	}
	at := func(line int) int { // offset of a 1-based line
		if line <= len(starts) {
			return starts[line-1]
		}
		return len(src)
	}
	headings := doc.Headings()
	for _, h := range headings {
		got = append(got, oracleHeading{h.Level, h.Line, h.Text})
	}
	if len(got) != len(want.Headings) {
		return fmt.Sprintf("headings %v, want %v", got, want.Headings)
	}
	for i, h := range want.Headings {
		if got[i] != h {
			return fmt.Sprintf("heading %v, want %v", got[i], h)
		}
		end := len(src)
		for _, later := range want.Headings[i+1:] {
			if later.Level <= h.Level {
				end = at(later.First)
				break
			}
		}
		start := at(h.First)
		if i == 0 && h.First == 1 && bytes.HasPrefix(src, []byte("\xef\xbb\xbf")) {
			start = 3
		}
		if headings[i].Start != start || headings[i].End != end {
			return fmt.Sprintf("section %v is %d to %d, want %d to %d", h, headings[i].Start, headings[i].End, start, end)
		}
	}
	var boxes []oracleBox
	for _, it := range doc.Items() {
		boxes = append(boxes, oracleBox{it.Line, it.Checked})
	}
	if fmt.Sprint(boxes) != fmt.Sprint(want.Boxes) {
		return fmt.Sprintf("boxes %v, want %v", boxes, want.Boxes)
	}
	return ""
}

// ask makes an example of a document with the parsers that are installed.
func ask(t *testing.T, src []byte) example {
	t.Helper()
	e := example{Markdown: string(src), Boxes: tree(t, src, "cmark-gfm", "-e", "tasklist", "-e", "table").boxes()}
	for _, n := range tree(t, src, "cmark").Children {
		if n.XMLName.Local == "heading" {
			level, err := strconv.Atoi(n.attr("level"))
			require.NoError(t, err)
			e.Headings = append(e.Headings, oracleHeading{level, n.line(), n.text()})
		}
	}
	return e
}

// A node is an element that a parser prints.
type node struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Children []node     `xml:",any"`
	Chars    string     `xml:",chardata"`
}

// tree runs a parser.
func tree(t *testing.T, src []byte, argv ...string) (root node) {
	t.Helper()
	cmd := exec.Command(argv[0], append(argv[1:], "-t", "xml", "--sourcepos")...)
	cmd.Stdin = bytes.NewReader(src)
	out, err := cmd.Output()
	require.NoError(t, err)
	out = bytes.Map(func(r rune) rune { // cmark prints what XML does not have
		if r < ' ' && r != '\n' && r != '\t' {
			return '\uFFFD'
		}
		return r
	}, out)
	require.NoError(t, xml.Unmarshal(out, &root))
	return root
}

// text is the plain text of an element.
func (n node) text() string {
	var b strings.Builder
	var walk func(node)
	walk = func(n node) {
		switch n.XMLName.Local {
		case "softbreak", "linebreak":
			b.WriteByte(' ')
		case "text", "code":
			b.WriteString(n.Chars)
		}
		for _, c := range n.Children {
			walk(c)
		}
	}
	walk(n)
	return strings.Join(strings.Fields(b.String()), " ")
}

func (n node) boxes() (all []oracleBox) {
	if n.XMLName.Local == "tasklist" {
		all = append(all, oracleBox{n.line(), n.attr("completed") == "true"})
	}
	for _, c := range n.Children {
		all = append(all, c.boxes()...)
	}
	return all
}

func (n node) attr(name string) string {
	for _, a := range n.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// line is the element's first line.
func (n node) line() (first int) {
	_, _ = fmt.Sscanf(n.attr("sourcepos"), "%d:", &first)
	return first
}
