package plain_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"github.com/lopen-dev/lopen/writer/plain"
)

// pieces are what texts are made of that could be alive, or end what they stand in.
var pieces = []string{
	"![a](http://x.example/a.png)", "[a](javascript:x)", "[a]: http://x.example", "[a]: b", "[a]", "[a][b]", "[b]: javascript:x", "![", "](", "<img src=x>", "<http://x.example/>", "<a", "<!--", "-->", "</p>",
	"http://x.example/y", "HTTPS://x.example", "www.x.example", "WWW.x.example", "ftp://x.example", "//x.example", "a@x.example", "mailto:a@x.example", "@all", "a&#64;x.example", "&lt;",
	"`", "``", "```", "\n```\n", "~~~", "\\", "\\`", "|", "*", "**", "_", "#", "# h", "#12", "GH-12", "- x", "1. x", "> x", "===", "---", "$", "$x$", "$`x`$", "!", ":", ".", "a", "a", " ", " ", "  ", "\n", "\t", "\r", "\x1b[31m", "\u202e", "\u200b", "\xff",
}

func random(rng *rand.Rand) string {
	var b strings.Builder
	for range 1 + rng.IntN(8) {
		b.WriteString(pieces[rng.IntN(len(pieces))])
	}
	return b.String()
}

var github = goldmark.New(goldmark.WithExtensions(extension.GFM))

// requireDead requires that nothing of Markdown is a link, an image or HTML, on GitHub or elsewhere.
func requireDead(t *testing.T, source string) {
	t.Helper()
	root := github.Parser().Parse(text.NewReader([]byte(source)))
	require.NoError(t, ast.Walk(root, func(n ast.Node, _ bool) (ast.WalkStatus, error) {
		switch n.Kind() {
		case ast.KindLink, ast.KindImage, ast.KindAutoLink, ast.KindRawHTML, ast.KindHTMLBlock:
			require.Fail(t, "alive", "%s in %q", n.Kind(), source)
		}
		return ast.WalkContinue, nil
	}))
}

func TestMarkdownIsDead(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 4_000 {
		s := random(rng)
		got := plain.Markdown(s)
		requireDead(t, "- own: "+got+" and **"+got+"**\n- "+plain.Markdown(random(rng))+": "+plain.Markdown(random(rng))+"\n\n"+got+"\n")
		require.NotContains(t, got, "\n")
		require.Equal(t, plain.Line(got), got, "all is visible")
		require.Contains(t, got, plain.Line(s), "the text itself stays")
		for _, sign := range []string{"@all", "//x", "&#64;", "#12", "GH-12", "www.x"} { // which only GitHub and others know
			require.True(t, !strings.Contains(got, sign) || strings.HasPrefix(got, "`"), got)
		}
	}
	for _, s := range []string{"", "the check failed: exit 1", "core/task-one", "auth_test.go:12: a.b = 'c' and \"d\" (50 %)", "snake_case * 2", "größe – 日本", `C:\x`, "go test ./... && [ -f x ] >&2 || a < b", "?   a [no test files] $X", "a \\x1b[2J"} {
		require.Equal(t, s, plain.Markdown(s))
	}
}

// TestToldIsDead: what a program shows to somebody is a block of code, if anything in it is alive.
func TestToldIsDead(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for range 4_000 {
		s := random(rng)
		got := plain.Told(s)
		requireDead(t, got)
		require.Equal(t, plain.Text(got), got, "all is visible")
		require.Contains(t, got, strings.TrimRight(plain.Text(s), "\n"), "the text itself stays")
	}
	require.Equal(t, "a\n\tb: lopen init > [x]\n", plain.Told("a\n\tb: lopen init > [x]\n"))
	require.Equal(t, "```\na\n<b> \\x1b\n```", plain.Told("a\n<b> \x1b\n"))
}

// TestValues: a program that shows the strings of JSON as they are shows nothing that is not visible.
func TestValues(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	for range 4_000 {
		s := strings.ToValidUTF8(random(rng), "?")
		data, err := json.Marshal(map[string]any{s: []any{s, 1e300, true, nil}})
		require.NoError(t, err)
		var got map[string][]any
		require.NoError(t, json.Unmarshal(plain.Values(data), &got), "%s", data)
		require.Equal(t, map[string][]any{plain.Text(s): {plain.Text(s), 1e300, true, nil}}, got)
	}
	for in, want := range map[string]string{
		`"\u001b\u202e\ud83d\ude00\udb40\udc41\u00e9\n\t\r\b\f\/\\\""`: `"\\x1b\\u202e\ud83d\ude00\\U000e0041\u00e9\n\t\\r\\x08\\x0c\/\\\""`,
		"\"\u202e\x7f\xff\ufffd\":1":                                   "\"\\\\u202e\\\\x7f\\\\xff\ufffd\":1",
		`"\ud83d" "\ud83d\u0041" "\ufffd" "\\u202e"`:                   `"\ud83d" "\ud83d\u0041" "\ufffd" "\\u202e"`,
		`"\u12`: `"\u12`, `\`: `\`, "": "",
	} {
		require.Equal(t, want, string(plain.Values([]byte(in))), "%s", in)
	}
}
