package cache_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache"
)

const spec = `---
name: storage
---
# Storage

What it is about.

## Caching
Intro.
### Section Cache
How *it* works.

### Notes
n1
## Acceptance Criteria
- [ ] fast
## Client/Server
### Notes
n2`

func TestSections(t *testing.T) {
	t.Parallel()
	o := cache.NewOutline([]byte(spec))
	var got []string
	for _, s := range o.Sections() {
		got = append(got, fmt.Sprintf("%d %s #%s %d-%d %q", s.Level, s.Path, s.Anchor, s.FirstLine, s.LastLine, trim(o.Text(s))))
	}
	require.Equal(t, []string{
		`1 Storage #storage 4-19 "# Storage\n\nWh…"`,
		`2 Caching #caching 8-14 "## Caching\nIn…"`,
		`3 Caching/Section Cache #section-cache 10-12 "### Section C…"`,
		`3 Caching/Notes #notes 13-14 "### Notes\nn1\n"`,
		`2 Acceptance Criteria #acceptance-criteria 15-16 "## Acceptance…"`,
		`2 Client/Server #clientserver 17-19 "## Client/Ser…"`,
		`3 Client/Server/Notes #notes-1 18-19 "### Notes\nn2"`,
	}, got)
	require.Equal(t, spec[:strings.Index(spec, "## Caching")], o.Preamble())
	require.Equal(t, "# A\n### B\n", cache.NewOutline([]byte("# A\n### B\n")).Preamble())
}

func trim(b string) string {
	if len(b) > 13 {
		return b[:13] + "…"
	}
	return b
}

func TestSectionsWithoutTitle(t *testing.T) {
	t.Parallel()
	o := cache.NewOutline([]byte("# A\r\n## B\r\n# C\r\n## B\r\ntext\r\n"))
	var got []string
	for _, s := range o.Sections() {
		got = append(got, fmt.Sprintf("%s %d-%d", s.Path, s.FirstLine, s.LastLine))
	}
	require.Equal(t, []string{"A 1-2", "A/B 2-2", "C 3-5", "C/B 4-5"}, got)
}

func TestFind(t *testing.T) {
	t.Parallel()
	o := cache.NewOutline([]byte(spec))
	for query, want := range map[string]string{
		"Caching/Section Cache":       "section-cache",
		"storage/caching":             "caching",
		"section  CACHE":              "section-cache",
		"#Notes-1":                    "notes-1",
		"Caching/Notes":               "notes",
		"client/server":               "clientserver",
		"Server/Notes":                "notes-1",
		"Storage":                     "storage",
		"Storage/Client/Server/Notes": "notes-1",
	} {
		s, err := o.Find(query)
		require.NoError(t, err, query)
		require.Equal(t, want, s.Anchor, query)
	}
	_, err := o.Find("notes")
	var many *cache.AmbiguousError
	require.ErrorAs(t, err, &many)
	require.Len(t, many.Candidates, 2)
	require.EqualError(t, err, `find section: "notes" could be any of Caching/Notes (#notes, line 13), Client/Server/Notes (#notes-1, line 18)`)
	for _, query := range []string{"", "cache", "#", "#none", "Section", "tion Cache", "ent/Server"} {
		_, err := o.Find(query)
		require.ErrorIs(t, err, cache.ErrNoSection, "%q", query)
	}
}

func TestFindPrefersWholePath(t *testing.T) {
	t.Parallel()
	o := cache.NewOutline([]byte("# T\n## A\n### Notes\n## Notes\n## #a\n##\n"))
	s, err := o.Find("notes")
	require.NoError(t, err)
	require.Equal(t, 4, s.FirstLine)
	s, err = o.Find("#a")
	require.NoError(t, err, "an anchor goes before a header that looks like one")
	require.Equal(t, 2, s.FirstLine)
	_, err = o.Find("")
	require.ErrorIs(t, err, cache.ErrNoSection)
}

// What stands directly below each heading, and what is before the first, makes
// the file again.
func FuzzSectionsTile(f *testing.F) {
	f.Add([]byte(spec))
	f.Add([]byte("\xef\xbb\xbf# A\r\nB\r\n=\r\n> # C\r# D\x00\xff"))
	f.Add([]byte("###### F\n# A\n```\n# B\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		o := cache.NewOutline(src)
		sections := o.Sections()
		lines, next := 1, 0
		var whole []byte
		for i, s := range sections {
			if i == 0 {
				whole = append(whole, src[:s.Start]...)
			}
			own := len(src)
			if i+1 < len(sections) {
				own = sections[i+1].Start
			}
			whole = append(whole, src[s.Start:own]...)
			require.True(t, s.Start >= next && s.FirstLine >= lines && s.LastLine >= s.FirstLine && s.End >= own)
			next, lines = own, s.FirstLine+1
			for _, later := range sections[i+1:] {
				require.True(t, later.Start >= s.End || (later.End <= s.End && later.Level > s.Level && later.LastLine <= s.LastLine))
			}
			_, err := o.Find("#" + s.Anchor)
			require.True(t, err == nil || s.Anchor == "", "%v", err)
		}
		if len(sections) > 0 {
			require.Equal(t, src, whole)
		}
		given, err := cache.ForTask(func(string) (*cache.Outline, error) { return o, nil }, "S.md", []string{string(src)}, []string{string(src)})
		require.NoError(t, err)
		sum := 0
		for _, g := range given {
			sum += len(g.Content)
		}
		require.LessOrEqual(t, sum, cache.MaxGiven)
	})
}

func ExampleOutline_Find() {
	o := cache.NewOutline([]byte("# Storage\n\n## Caching\n\n### Section Cache\n\nA hit costs one stat.\n"))
	s, err := o.Find("Caching/Section Cache")
	fmt.Printf("%s, lines %d to %d: %v\n%s", s.Path, s.FirstLine, s.LastLine, err, o.Text(s))
	// Output:
	// Caching/Section Cache, lines 5 to 7: <nil>
	// ### Section Cache
	//
	// A hit costs one stat.
}
