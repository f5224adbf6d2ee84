package cache_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache"
)

type files map[string]string

func (f files) open(name string) (*cache.Outline, error) {
	src, ok := f[name]
	if !ok {
		return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
	}
	return cache.NewOutline([]byte(src)), nil
}

func TestForTask(t *testing.T) {
	t.Parallel()
	docs := files{"SPEC.md": spec, "../other/B.md": "# B\n## Über uns\nx\n", "SPEC 2.md": "## A\n", "/SPEC.md": spec}
	overview := []string{"SPEC.md (before the first section)", "SPEC.md Acceptance Criteria", "SPEC.md (outline)"}
	tests := []struct {
		name         string
		links, names []string
		want         []string
	}{
		{"a link to the file", []string{"SPEC.md#section-cache"}, []string{"Caching"}, []string{"SPEC.md Caching/Section Cache"}},
		{"a bare anchor", []string{"#Notes-1"}, nil, []string{"SPEC.md Client/Server/Notes"}},
		{"a dot in the path", []string{"./SPEC.md#caching"}, nil, []string{"SPEC.md Caching"}},
		{"another file", []string{"../other/B.md#%C3%BCber-uns", "SPEC%202.md#a"}, nil, []string{"../other/B.md Über uns", "SPEC 2.md A"}},
		{"several, each once", []string{"#notes", "#caching", "#notes", "#section-cache"}, nil, []string{"SPEC.md Caching/Notes", "SPEC.md Caching"}},
		{"links that name no section", []string{"SPEC.md", "#none", "gone.md#a", "https://example.org/SPEC.md#caching", "//host/SPEC.md#caching", "%zz#a", "mailto:a@b#caching"},
			[]string{"section cache"}, []string{"SPEC.md Caching/Section Cache"}},
		{"names in order", nil, []string{"", "nothing", " client/server", "Caching"}, []string{"SPEC.md Client/Server"}},
		{"a name of several", nil, []string{"NOTES"}, []string{"SPEC.md Caching/Notes", "SPEC.md Client/Server/Notes"}},
		{"nothing", nil, []string{"nothing"}, overview},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			given, err := cache.ForTask(docs.open, "SPEC.md", tt.links, tt.names)
			require.NoError(t, err)
			var got []string
			for _, g := range given {
				got = append(got, g.Path+" "+g.Header)
				sum := sha256.Sum256(g.Content)
				require.Equal(t, hex.EncodeToString(sum[:]), g.SHA256)
				require.False(t, g.Truncated)
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestForTaskOverview(t *testing.T) {
	t.Parallel()
	given, err := cache.ForTask(files{"S.md": spec}.open, "S.md", nil, nil)
	require.NoError(t, err)
	require.Equal(t, spec[:strings.Index(spec, "## Caching")], string(given[0].Content))
	require.Equal(t, "## Acceptance Criteria\n- [ ] fast\n", string(given[1].Content))
	require.Equal(t, `- Storage (#storage, lines 4-19)
  - Caching (#caching, lines 8-14)
    - Section Cache (#section-cache, lines 10-12)
    - Notes (#notes, lines 13-14)
  - Acceptance Criteria (#acceptance-criteria, lines 15-16)
  - Client/Server (#clientserver, lines 17-19)
    - Notes (#notes-1, lines 18-19)
`, string(given[2].Content))

	given, err = cache.ForTask(files{"S.md": "## A\n"}.open, "S.md", nil, nil)
	require.NoError(t, err)
	require.Len(t, given, 1, "an empty preamble is not given")
	given, err = cache.ForTask(files{"S.md": ""}.open, "S.md", nil, nil)
	require.NoError(t, err)
	require.Empty(t, given)
	given, err = cache.ForTask(files{"S.md": "# T\n### Acceptance Criteria\n- a\n## B\n##\n"}.open, "S.md", nil, []string{" "})
	require.NoError(t, err)
	require.Len(t, given, 2, "criteria before the first section are in the preamble, a header without text has no name")
}

func TestForTaskWithoutSpecification(t *testing.T) {
	t.Parallel()
	_, err := cache.ForTask(files{}.open, "S.md", nil, nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.EqualError(t, err, "open specification: open S.md: file does not exist")
}

func TestForTaskFits(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("x", 99) + "\n"
	a := "## A\n" + strings.Repeat(line, 300) // 30005 bytes
	docs := files{"S.md": "# T\n" + a + "## B\n" + strings.Repeat(line, 300) + "## C\n"}
	given, err := cache.ForTask(docs.open, "S.md", []string{"#a", "#b", "#c"}, nil)
	require.NoError(t, err)
	require.Equal(t, a, string(given[0].Content))
	require.False(t, given[0].Truncated)
	require.Equal(t, "## B\n"+strings.Repeat(line, 27), string(given[1].Content))
	require.True(t, given[1].Truncated)
	require.Equal(t, "C", given[2].Header)
	require.Empty(t, given[2].Content)
	require.True(t, given[2].Truncated)

	docs = files{"S.md": "x" + strings.Repeat("é", 32<<10)}
	given, err = cache.ForTask(docs.open, "S.md", nil, nil)
	require.NoError(t, err)
	require.Len(t, given[0].Content, cache.MaxGiven-1)
	require.True(t, utf8.Valid(given[0].Content))
}

func ExampleForTask() {
	docs := func(string) (*cache.Outline, error) {
		return cache.NewOutline([]byte("# Auth\n\n## Tokens\n\nRS256 only.\n\n## Sessions\n")), nil
	}
	given, err := cache.ForTask(docs, "SPECIFICATION.md", []string{"SPECIFICATION.md#tokens"}, nil)
	for _, g := range given {
		fmt.Printf("%s, %s: %q\n", g.Path, g.Header, g.Content)
	}
	fmt.Println(err)
	// Output:
	// SPECIFICATION.md, Tokens: "## Tokens\n\nRS256 only.\n\n"
	// <nil>
}
