package research_test

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/plan/research"
)

// The same examples in every run; -rapid.seed 0 draws others.
func init() { _ = flag.Set("rapid.seed", "1") }

var day = time.Date(2026, 2, 14, 9, 30, 0, 0, time.UTC)

func TestCompose(t *testing.T) {
	t.Parallel()
	d := research.Document{Topic: "Token *formats*: which?", Created: day, Specification: "SPECIFICATION.md",
		Sections: []research.Section{{Header: "Tokens/Expiry", SHA256: strings.Repeat("0", 64)}}}
	const front = "---\ntopic: \"Token *formats*: which?\"\ncreated: \"2026-02-14T09:30:00Z\"\nspecification: SPECIFICATION.md\n" +
		"sections:\n- header: Tokens/Expiry\n  sha256: \"" + "0000000000000000000000000000000000000000000000000000000000000000" + "\"\n---\n\n"
	const title = "# Token \\*formats\\*: which?\n\n"
	const relevance = "## Relevance\n\n- SPECIFICATION.md: Tokens/Expiry\n"
	tests := []struct{ name, body, want string }{
		{"nothing", "", title + "## Summary\n\n## Findings\n\n## Sources\n\n" + relevance},
		{"text", "\r\n JWT.\n\n\n", title + "## Summary\n\n\r\n JWT.\n\n## Findings\n\n## Sources\n\n" + relevance},
		{"text and headings", "JWT.\n\n## Sources\n\n- a\n", title + "## Summary\n\nJWT.\n\n## Sources\n\n- a\n\n## Findings\n\n" + relevance},
		{"a whole document", "# Mine\n\n## Summary\n## 1. Findings\n## Sources\n## Relevance\nall\n", "# Mine\n\n## Summary\n## 1. Findings\n## Sources\n## Relevance\nall\n"},
		{"headings in code are none", "```\n# Summary\n```", title + "## Summary\n\n```\n# Summary\n```\n\n## Findings\n\n## Sources\n\n" + relevance},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := research.Compose(d, []byte(tt.body))
			require.NoError(t, err)
			require.Equal(t, front+tt.want, string(got))
			back := research.Parse("RESEARCH-x.md", got)
			require.NoError(t, back.Err)
			require.Equal(t, []any{d.Topic, d.Created, d.Specification, d.Sections}, []any{back.Topic, back.Created, back.Specification, back.Sections})
		})
	}
}

func TestFileName(t *testing.T) {
	t.Parallel()
	for topic, want := range map[string]string{
		"Token formats":           "RESEARCH-token-formats.md",
		"../../etc/passwd":        "RESEARCH-etc-passwd.md",
		"!":                       "RESEARCH-item.md",
		strings.Repeat("ab ", 30): "RESEARCH-" + strings.Repeat("ab-", 21) + "a.md",
		strings.Repeat("é", 40):   "RESEARCH-" + strings.Repeat("é", 32) + ".md",
	} {
		require.Equal(t, want, research.FileName(topic))
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	docs := fstest.MapFS{
		"m/RESEARCH-hand.md":   {Data: []byte("# By *hand*\n")},
		"m/RESEARCH-bare.md":   {Data: []byte("text\n")},
		"m/RESEARCH-bad.md":    {Data: []byte("---\ntopic: [\n---\n")},
		"m/RESEARCH-day.md":    {Data: []byte("\ufeff---\r\ntopic: A\r\ncreated: 2026-02-14\r\nmine: x\r\n---\r\n")},
		"m/RESEARCH-when.md":   {Data: []byte("---\ntopic: B\ncreated: yesterday\n---\n")},
		"m/RESEARCH-.md":       {},
		"m/RESEARCH.md":        {},
		"m/SPECIFICATION.md":   {},
		"m/RESEARCH-dir.md/x":  {},
		"m/RESEARCH-device.md": {Mode: fs.ModeDevice},
	}
	all, err := research.List(docs, "m")
	require.NoError(t, err)
	var lines []string
	for _, d := range all {
		lines = append(lines, fmt.Sprintf("%s %q %v %v", d.File, d.Topic, !d.Created.IsZero(), d.Err != nil))
	}
	require.Equal(t, []string{
		`RESEARCH-bad.md "bad" false true`,
		`RESEARCH-bare.md "bare" false false`,
		`RESEARCH-day.md "A" true false`,
		`RESEARCH-device.md "device" false true`,
		`RESEARCH-hand.md "By hand" false false`,
		`RESEARCH-when.md "B" false true`,
	}, lines)
	all, err = research.List(docs, "nothing")
	require.NoError(t, err)
	require.Empty(t, all)
}

func TestIndex(t *testing.T) {
	t.Parallel()
	all := []research.Document{{File: "RESEARCH-a b(c).md", Topic: "A [x] *y*"}, {File: "RESEARCH-z.md", Topic: "Z"}}
	const a, z = "- [A \\[x\\] \\*y\\*](RESEARCH-a%20b%28c%29.md)\n", "- [Z](RESEARCH-z.md)\n"
	const from, to = "<!-- lopen:research -->\n", "<!-- /lopen:research -->\n"
	tests := []struct{ name, src, want string }{
		{"empty", "", "\n" + from + a + z + to},
		{"without comments", "# Mine", "# Mine\n\n" + from + a + z + to},
		{"up to date", from + z + a + to, from + z + a + to},
		{"renamed", "x\n" + from + "- [Old](RESEARCH-z.md)\n" + to + "y", "x\n" + from + z + a + to + "y"},
		{"gone", from + "- [Gone](RESEARCH-gone.md)\n" + to, from + a + z + to},
		{"twice", from + z + z + to, from + z + a + to},
		{"a person's own", from + "1. <RESEARCH-z.md>\n* see [z](./RESEARCH-z.md#x)!\n- [Gone](RESEARCH-gone.md), sadly\n" + z + to,
			from + "1. <RESEARCH-z.md>\n* see [z](./RESEARCH-z.md#x)!\n- [Gone](RESEARCH-gone.md), sadly\n" + a + to},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := research.Index([]byte(tt.src), all)
			require.NoError(t, err)
			require.Equal(t, tt.want, string(got))
			crlf := func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
			if strings.Contains(tt.src, "\n") {
				got, err = research.Index([]byte(crlf(tt.src)), all)
				require.NoError(t, err)
				require.Equal(t, crlf(tt.want), string(got))
			}
		})
	}
	for _, src := range []string{from, to, to + from, from + from + to, from + to + to} {
		_, err := research.Index([]byte(src), all)
		require.ErrorIs(t, err, research.ErrMarkers, src)
	}
}

// Whatever a person wrote, outside the comments no byte changes, between them no
// line is lost but an own item, and a second time changes nothing.
func TestIndexLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		line := rapid.SampledFrom([]string{"", "x", "- [A](RESEARCH-a.md)", "- [A](RESEARCH-a.md) mine", "* [B](RESEARCH-b.md)", "- [C](RESEARCH-c.md)", "```"})
		lines := func(label string) string {
			s := strings.Join(rapid.SliceOfN(line, 0, 6).Draw(rt, label), "\n")
			return s + strings.Repeat("\n", min(len(s), 1))
		}
		before, inside, after := lines("before"), lines("inside"), lines("after")
		const from, to = "<!-- lopen:research -->\n", "<!-- /lopen:research -->\n"
		all := []research.Document{{File: "RESEARCH-a.md", Topic: "A"}, {File: "RESEARCH-b.md", Topic: "B"}}
		got, err := research.Index([]byte(before+from+inside+to+after), all)
		require.NoError(rt, err)
		rest, ok := strings.CutPrefix(string(got), before+from)
		require.True(rt, ok)
		rest, ok = strings.CutSuffix(rest, to+after)
		require.True(rt, ok)
		for l := range strings.Lines(inside) {
			if !strings.HasPrefix(l, "- ") || strings.HasSuffix(l, " mine\n") {
				require.Contains(rt, rest, l)
			}
		}
		require.NotContains(rt, rest, "RESEARCH-c")
		require.Contains(rt, rest, "](RESEARCH-a.md)")
		require.Contains(rt, rest, "](RESEARCH-b.md)")
		again, err := research.Index(got, all)
		require.NoError(rt, err)
		require.Equal(rt, string(got), string(again))
	})
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte("<!-- lopen:research -->\n- [A](RESEARCH-a.md)\r\n<!-- /lopen:research -->"))
	f.Add([]byte("\xff\r"))
	f.Fuzz(func(t *testing.T, src []byte) {
		all := []research.Document{{File: "RESEARCH-a.md", Topic: "A\xff]("}}
		got, err := research.Index(src, all)
		if err != nil {
			require.ErrorIs(t, err, research.ErrMarkers)
			return
		}
		require.True(t, bytes.Contains(got, []byte("RESEARCH-a.md")))
		again, err := research.Index(got, all)
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("---\ntopic: x\ncreated: 2026-02-14\nsections:\n- header: a\n  sha256: b\n---\n# T\n"))
	f.Add([]byte("---\na: &a [*a]\n---\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		d := research.Parse("RESEARCH-x.md", src)
		require.Equal(t, len(src), d.Bytes)
		require.NotContains(t, d.Topic, "\n")
		_, err := research.Compose(d, src)
		require.NoError(t, err)
	})
}

func TestCreate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, err := research.Create(dir, research.Document{Topic: "One", Created: day}, nil)
	require.NoError(t, err)
	before, err := os.ReadFile(filepath.Join(dir, file))
	require.NoError(t, err)
	_, err = research.Create(dir, research.Document{Topic: "one", Created: day}, []byte("other"))
	require.ErrorIs(t, err, fs.ErrExist)
	after, err := os.ReadFile(filepath.Join(dir, file))
	require.NoError(t, err)
	require.Equal(t, before, after)
	for _, topic := range []string{"", " a", "a\nb", "a\x00b"} {
		_, err = research.Create(dir, research.Document{Topic: topic}, nil)
		require.ErrorIs(t, err, research.ErrTopic, topic)
	}
	_, err = research.Create(filepath.Join(dir, "nothing"), research.Document{Topic: "x"}, nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	index, err := os.ReadFile(filepath.Join(dir, "RESEARCH.md"))
	require.NoError(t, err)
	require.Contains(t, string(index), "\n- [One](RESEARCH-one.md)\n")
}

// An index has what a folder has: a symlink is followed inside the folder only.
func TestCreateIndexesSymlinks(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "in")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "..", "outside"), []byte("# Outside\n"), 0o600))
	require.NoError(t, os.Symlink("../outside", filepath.Join(dir, "RESEARCH-out.md")))
	require.NoError(t, os.Symlink("RESEARCH-one.md", filepath.Join(dir, "RESEARCH-also.md")))
	_, err := research.Create(dir, research.Document{Topic: "One", Created: day}, nil)
	require.NoError(t, err)
	index, err := os.ReadFile(filepath.Join(dir, "RESEARCH.md"))
	require.NoError(t, err)
	require.Contains(t, string(index), "\n- [One](RESEARCH-also.md)\n- [One](RESEARCH-one.md)\n- [out](RESEARCH-out.md)\n")
}

func ExampleCreate() {
	dir, err := os.MkdirTemp("", "research")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	d := research.Document{Topic: "Token formats", Created: day, Specification: "SPECIFICATION.md"}
	file, err := research.Create(dir, d, []byte("JWT it is.\n\n## Sources\n\n- RFC 7519\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	content, err := os.ReadFile(filepath.Join(dir, file))
	fmt.Printf("%s%v\n", content, err)
	// Output:
	// ---
	// topic: Token formats
	// created: "2026-02-14T09:30:00Z"
	// specification: SPECIFICATION.md
	// ---
	//
	// # Token formats
	//
	// ## Summary
	//
	// JWT it is.
	//
	// ## Sources
	//
	// - RFC 7519
	//
	// ## Findings
	//
	// ## Relevance
	// <nil>
}

func ExampleList() {
	docs := fstest.MapFS{"docs/auth/RESEARCH-tokens.md": {Data: []byte("# Token formats\n\nJWT.\n")}}
	all, err := research.List(docs, "docs/auth")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range all {
		fmt.Println(d.File, d.Topic)
	}
	// Output:
	// RESEARCH-tokens.md Token formats
}

func ExampleIndex() {
	index, err := research.Index([]byte("# What we know\n"), []research.Document{{File: "RESEARCH-tokens.md", Topic: "Token formats"}})
	fmt.Printf("%s%v\n", index, err)
	// Output:
	// # What we know
	//
	// <!-- lopen:research -->
	// - [Token formats](RESEARCH-tokens.md)
	// <!-- /lopen:research -->
	// <nil>
}

// A document that names too many sections is in the list, with what is wrong; none is
// made.
func TestSectionsAreBounded(t *testing.T) {
	t.Parallel()
	front := func(n int) []byte {
		return []byte("---\ntopic: t\nspecification: s.md\nsections:\n" + strings.Repeat("- {header: a}\n", n) + "---\n# b\n")
	}
	d := research.Parse("RESEARCH-t.md", front(1000))
	require.NoError(t, d.Err)
	require.Len(t, d.Sections, 1000)
	d = research.Parse("RESEARCH-t.md", front(1001))
	require.ErrorContains(t, d.Err, "sections: it has 1001 entries, more than the 1000")
	require.Empty(t, d.Sections)
	require.Equal(t, "t", d.Topic)
	_, err := research.Compose(research.Document{Topic: "t", Sections: make([]research.Section, 1001)}, nil)
	require.ErrorContains(t, err, "more than the 1000")
}
