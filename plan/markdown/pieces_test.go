package markdown_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/plan/markdown"
)

func TestPieces(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]int{
		"":                                   1,
		"text":                               1,
		"# a":                                1,
		"# a\n# b\n# c":                      3,
		"text\n# a\ntext\n# b":               4,
		"- x\n# a":                           2,
		"- x\n  # a\n- y":                    2,
		"> x\n# a":                           2,
		"> # x\n> # a":                       1,
		"a\n=\nb\n=\n":                       2,
		"```\n# a\n":                         1,
		"```\n# a\n```\n # b":                2,
		"<!--\n# a\n-->":                     1,
		"#\n\t# a\n#\t\n##":                  4,
		"1. x\n\n   y\n\n\n#  a  #\n\n\n# b": 3,
	} {
		assert.Equal(t, want, markdown.CountPieces([]byte(src), 1), "%q", src)
	}
	require.Equal(t, 3, markdown.CountPieces([]byte("- x\n- y\n\n  z\n* z\n"), 1), "a list is divided between its items")
	long := "# a\n\n" + strings.Repeat("text\n", 10) + "# b\n# c\n"
	require.Equal(t, 2, markdown.CountPieces([]byte(long), len(long)-8))
	require.Equal(t, 1, markdown.CountPieces([]byte(long), len(long)))
	large := strings.Repeat("# a\n\n"+strings.Repeat("x", 100_000)+"\n\n", 50)
	require.Equal(t, 50, markdown.CountPieces([]byte(large), markdown.PieceSize))
}

// A document in pieces is the document: what is defined in one piece holds in
// those before it too, and anchors, parents and ends reach across.
func TestPiecesMakeTheWhole(t *testing.T) {
	t.Parallel()
	all := readGolden(t).Examples
	between := []string{"\n", "\n\n", "\n# x\n", "\n\n## [x] *y*\n\n", "\n- [ ] task\n# x\n"}
	for i, e := range all {
		next, far := all[(i+1)%len(all)].Markdown, all[(i*7+1)%len(all)].Markdown
		gap := between[i%len(between)]
		requireWhole(t, []byte(e.Markdown+gap+next+gap+far))
	}
	requireWhole(t, []byte(strings.Repeat("#\n", 400)+"- [ ] [x] [y]\n# [x]\n- [ ] [x]\n\n[x]: one\n\n# b\n- [x] [x]\n\n> [x]: two\n\n- [y]: three\n"))
}

func requireWhole(t *testing.T, src []byte) {
	t.Helper()
	for _, headings := range []bool{false, true} {
		want := markdown.ParsePieces(src, headings, len(src)+1)
		for _, size := range []int{1, 20} {
			require.Equal(t, want, markdown.ParsePieces(src, headings, size), "%q in pieces of %d", src, size)
		}
	}
}

func FuzzPieces(f *testing.F) {
	f.Add([]byte("- [ ] [x]\n# a\n1. x\n # b\n\n[x]: y\n"))
	for _, e := range evil() {
		f.Add([]byte(e.text(100)))
	}
	f.Fuzz(func(t *testing.T, src []byte) { requireWhole(t, src) })
}
