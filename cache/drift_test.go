package cache_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache"
)

func TestDriftOf(t *testing.T) {
	t.Parallel()
	const spec = "# Title\n\nintro\n\n## Login\n\ntext\n\n## Logout\n\nother\n"
	given := func(src string, names ...string) []cache.Given {
		o := cache.NewOutline([]byte(src))
		all, err := cache.ForTask(func(string) (*cache.Outline, error) { return o, nil }, "s.md", nil, names)
		require.NoError(t, err)
		return all
	}
	drift := func(g cache.Given, now string) cache.Drift {
		return cache.DriftOf(cache.NewOutline([]byte(now)), g.Header, g.SHA256, len(g.Content))
	}
	login := given(spec, "Login")[0]
	require.Equal(t, "Login", login.Header)
	for now, want := range map[string]cache.Drift{
		spec: cache.Same,
		strings.Replace(spec, "other", "something else", 1): cache.Same,
		strings.Replace(spec, "intro", "a longer intro", 1): cache.Same,
		strings.Replace(spec, "text\n", "text\nmore\n", 1):  cache.Changed,
		strings.Replace(spec, "text", "", 1):                cache.Changed,
		strings.Replace(spec, "## Login", "## Sign in", 1):  cache.Gone,
		spec + "\n# Two\n\n## Login\n":                      cache.Gone,
		"":                                                  cache.Gone,
	} {
		require.Equal(t, want, drift(login, now), "%q", now)
	}
	for _, g := range given(spec, "no such name") { // preamble and outline
		require.Equal(t, cache.Same, drift(g, spec), g.Header)
		require.Equal(t, cache.Changed, drift(g, "# New\n\nx\n\n## A\n"), g.Header)
	}
	long := "# T\n\n## Long\n\n" + strings.Repeat("a line of text\n", 4000)
	cut := given(long, "Long")[0]
	require.True(t, cut.Truncated)
	require.Equal(t, cache.Same, drift(cut, long))
	require.Equal(t, cache.Changed, drift(cut, strings.Replace(long, "a line", "b line", 1)))
}
