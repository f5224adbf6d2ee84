package files

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A pattern of many stars does not try all ways to divide a path among them: that would
// take years.
func TestMatchIsNotExponential(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	for _, text := range []string{
		strings.Repeat("**/a/", 12) + "b", strings.Repeat("*a", 20) + "b", strings.Repeat("**/*a", 15) + "/b",
		strings.Repeat("a/**/", 14) + "b", strings.Repeat("?*", 20) + "b", strings.Repeat("*/**/", 12) + "b", strings.Repeat("[!b]*", 20) + "b",
	} {
		p, ok := parsePattern("/" + text)
		require.True(t, ok, text)
		for _, path := range []string{strings.Repeat("a/", 40) + "c", strings.Repeat("a", 250)} {
			require.False(t, p.match(path, path, false), text)
		}
	}
	require.Less(t, time.Since(begun), 10*time.Second)
}
