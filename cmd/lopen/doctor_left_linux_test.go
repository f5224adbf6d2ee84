package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTemporariesLeftBehind has temporary files of a rewind in the project. Doctor names their folder with a
// command that removes them and nothing else, as long as they are there.
func TestTemporariesLeftBehind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lopen := in(t, dir)
	write := func(name string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	left := []string{"a/b/.lopen-rewind-" + strings.Repeat("0", 32), "a/b/.lopen-rewind-" + strings.Repeat("f", 32)}
	lopen(0, "init")
	write("TODO.md")
	write("a/.lopen-rewind-notes")
	lopen(0, "checkpoint", "create")
	require.NotContains(t, lopen(0, "doctor"), "lopen-rewind")
	for _, name := range left {
		write(name)
	}
	lopen(0, "checkpoint", "create")
	out := lopen(0, "doctor")
	require.Contains(t, out, "! project      in a/b 2 temporary files of a rewind that could not remove them\n")
	require.Contains(t, out, "no rewind needs them: rm "+filepath.Join(dir, "a/b")+"/.lopen-rewind-[0-9a-f]*\n")
	require.Equal(t, 1, strings.Count(out, "lopen-rewind"))
	for _, name := range left {
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
	}
	require.NotContains(t, lopen(0, "doctor"), "lopen-rewind")
}
