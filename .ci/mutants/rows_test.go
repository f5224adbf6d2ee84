package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A change of the code that removes the text or the test of a mutant fails here, and not only
// when the mutants are run.
func TestRowsFitTheCode(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	mutants, err := load(rows)
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, m := range mutants {
		require.False(t, seen[m.what], "%s is there twice", m.what)
		seen[m.what] = true
		_, err := m.changed(root)
		require.NoError(t, err, m.what)
		require.NotEqual(t, m.from, m.to, m.what)
		name, _, _ := strings.Cut(m.test, "/")
		require.True(t, hasTest(t, filepath.Join(root, m.pkg), name), "%s: %s has no test %s", m.what, m.pkg, name)
	}
}

// hasTest reports whether a test file of a folder has a function of that name.
func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(string(data), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
