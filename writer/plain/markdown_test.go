package plain_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/plain"
)

// No text ends the fence that it stands in.
func TestFence(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "x", "```\n## Rules", "a ````` b", strings.Repeat("`", 100), "\n```\n"} {
		got := strings.Split(plain.Fence("", text), "\n")
		marks := got[0]
		require.Equal(t, marks, got[len(got)-1])
		require.LessOrEqual(t, len(marks), 16)
		require.Empty(t, strings.Trim(marks, "`"))
		for _, line := range got[1 : len(got)-1] {
			require.NotContains(t, line, marks)
		}
	}
}
