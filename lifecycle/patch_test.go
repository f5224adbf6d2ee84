package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
)

// A task's patch holds what all its attempts changed, and nothing that others did before;
// it changes nothing of what the next checkpoint says.
func TestPatchOfATask(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	dir := store.Project()
	sess, err := store.Create(t.Context(), "auth")
	require.NoError(t, err)
	keep := func(why checkpoint.Reason, task string) (names []string) {
		_, changes, err := sess.Checkpoint(t.Context(), why, task)
		require.NoError(t, err)
		for _, c := range changes {
			names = append(names, c.Path)
		}
		return names
	}
	patch := func(limit int) string {
		text, err := sess.Patch(t.Context(), "two", limit)
		require.NoError(t, err)
		require.LessOrEqual(t, len(text), limit)
		return string(text)
	}
	_, err = sess.Patch(t.Context(), "two", 100)
	require.ErrorIs(t, err, checkpoint.ErrNotFound)
	keep(checkpoint.BeforeTask, "one")
	put(t, dir, "a", "of one\n")
	keep(checkpoint.AfterTask, "one")
	_, err = sess.Patch(t.Context(), "two", 100)
	require.ErrorIs(t, err, checkpoint.ErrNotFound)
	keep(checkpoint.BeforeTask, "two")
	require.Empty(t, patch(100))
	put(t, dir, "b", "first try\n")
	put(t, dir, "bin", "\x00")
	require.Equal(t, []string{"b", "bin"}, keep(checkpoint.AfterTask, "two"))
	keep(checkpoint.BeforeTask, "two")
	put(t, dir, "a", "of two\n")
	const want = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-of one\n+of two\n" +
		"new file mode 0644 b/b\n--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+first try\n" +
		"new file mode 0644 b/bin\nBinary files /dev/null and b/bin differ\n"
	require.Equal(t, want, patch(1000))
	require.Equal(t, want, patch(1000), "nothing was kept")
	for n := range 100 {
		put(t, dir, fmt.Sprintf("c%02d", n), strings.Repeat("line\n", 100))
	}
	text := patch(2000)
	require.True(t, strings.HasPrefix(text, "--- a/a\n"))
	require.Contains(t, text, "Cut: 98 more files changed, whose patches do not fit into 2000 bytes:\ncreated \"c02\"\n")
	require.Len(t, keep(checkpoint.AfterTask, "two"), 101)
}
