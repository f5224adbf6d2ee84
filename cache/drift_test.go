package cache_test

import (
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache"
)

func TestDrift(t *testing.T) {
	t.Parallel()
	const spec = "# Title\n\nintro\n\n## Login\n\ntext\n\n## Logout\n\nother\n"
	given := func(src string, names ...string) []cache.Given {
		o := cache.NewOutline([]byte(src))
		all, err := cache.ForTask(func(string) (*cache.Outline, error) { return o, nil }, "s.md", nil, names)
		require.NoError(t, err)
		return all
	}
	drift := func(g cache.Given, now string) cache.Drift {
		return cache.NewComparer(cache.NewOutline([]byte(now))).Given(g.Header, g.SHA256, len(g.Content))
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

// However many entries name a section, the preamble or the outline: it is hashed and
// put together once.
func TestComparerDerivesOnce(t *testing.T) { //nolint:paralleltest // it measures what is allocated
	src := "intro\n" + strings.Repeat("# a b c d e f\n", 10_000) + "# Long\n\n" + strings.Repeat("x", 1<<20) + "\n"
	o := cache.NewOutline([]byte(src))
	s, err := o.Find("Long")
	require.NoError(t, err)
	raw := sha256.Sum256([]byte(o.Text(s)))
	sum := hex.EncodeToString(raw[:])
	c := cache.NewComparer(o)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 1000 {
		require.Equal(t, cache.Same, c.Section("long", sum))
		require.Equal(t, cache.Changed, c.Given("Long", sum, s.End-s.Start), "nothing was given as long as this")
		require.Equal(t, cache.Changed, c.Given(cache.HeaderPreamble, sum, 1<<30))
		require.Equal(t, cache.Changed, c.Given(cache.HeaderOutline, sum, 1<<30))
		require.Equal(t, cache.Gone, c.Given("a b c d e f", sum, 1))
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
}

// A file in which a header repeats itself is not given section by section.
func TestGivenSectionsAreBounded(t *testing.T) {
	t.Parallel()
	o := cache.NewOutline([]byte(strings.Repeat("## Acceptance Criteria\n", 90_000)))
	for _, names := range [][]string{nil, {"acceptance criteria"}} {
		all, err := cache.ForTask(func(string) (*cache.Outline, error) { return o, nil }, "s.md", nil, names)
		require.NoError(t, err)
		require.Greater(t, len(all), 200)
		require.LessOrEqual(t, len(all), 256)
	}
}
