package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Markdown that somebody wrote to exhaust whoever reads it: as large as it may be, or a
// part of that where it takes long, which is in proportion.
func TestForeignText(t *testing.T) {
	t.Parallel()
	oneByOne(t)
	const n, part = 15 << 20, 1 << 20
	for name, text := range map[string]string{
		"tables":      strings.Repeat(strings.Repeat("a|", 8000)+"\n"+strings.Repeat("-|", 8000)+"\n"+strings.Repeat("b\n", 8000)+"\n", part/48_000),
		"brackets":    strings.Repeat("[a](", part/4),
		"headings":    strings.Repeat("# a\n## a\n### a\n", n/15),
		"items":       strings.Repeat("- a\n", part/4),
		"blank lines": strings.Repeat("- ", 90) + "a\n" + strings.Repeat("\n", n),
		"a paragraph": strings.Repeat("a\n", n/2),
		"a line":      "# " + strings.Repeat("a", n) + "\n",
		"front":       "---\na: " + strings.Repeat("[", 60_000) + "\n---\n# b\n",
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "s.md"), []byte(text), 0o600))
		t.Log(name)
		b := runBounded(t, dir, "section", "list", "s.md", "--json")
		require.Zero(t, b.exit, b.stderr)
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "s.md"), []byte(strings.Repeat("a", 16<<20+1)), 0o600))
	require.NotZero(t, runBounded(t, dir, "section", "list", "s.md").exit)
}

// A plan takes some 2 KB for each of its tasks.
func TestForeignPlan(t *testing.T) {
	t.Parallel()
	oneByOne(t)
	dir := t.TempDir()
	must(t, dir, "init", "m")
	path := filepath.Join(dir, ".lopen", "modules", "m", "plan.md")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("- [ ]\n", 50_000)), 0o600))
	require.Zero(t, runBounded(t, dir, "plan", "show", "m").exit)
	require.NoError(t, os.WriteFile(path, []byte("- [ ] a\n"+strings.Repeat("  - [ ] b\n", 100_000)), 0o600))
	b := runBounded(t, dir, "plan", "show", "m")
	require.NotZero(t, b.exit)
	require.Contains(t, b.stderr, "line 1: a list item or block of more than 100000 lines")
}

// Each entry of each document names a section of the same length.
func TestForeignResearch(t *testing.T) {
	t.Parallel()
	oneByOne(t)
	dir := t.TempDir()
	must(t, dir, "init", "m")
	folder := filepath.Join(dir, "docs", "requirements", "m")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "SPECIFICATION.md"), []byte("# T\n\n## A\n\n"+strings.Repeat("a\n", 7<<20)), 0o600))
	front := "---\nspecification: SPECIFICATION.md\nsections:\n" + strings.Repeat("- {header: a}\n", 1000) + "---\n"
	for i := range 20 {
		require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("RESEARCH-%d.md", i)), []byte(front), 0o600))
	}
	b := runBounded(t, dir, "research", "list", "m", "--json")
	require.Zero(t, b.exit, b.stderr)
	require.Equal(t, 20_000, strings.Count(b.stdout, `"changed"`))
}
