package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHintsAreQuoted looks at all sentences of the source that have a command: what they put into it is
// quoted, or can be nothing but a word.
func TestHintsAreQuoted(t *testing.T) {
	t.Parallel()
	found, err := openHints("../..", "./...")
	require.NoError(t, err)
	for _, h := range found {
		t.Error(h, "is not quoted: plain.Quote does it")
	}
}

// TestOpenHints requires that the holes of a package are found, and nothing else.
func TestOpenHints(t *testing.T) {
	t.Parallel()
	found, err := openHints("../..", "./.ci/house/testdata/hints")
	require.NoError(t, err)
	var exprs []string
	for _, h := range found {
		exprs = append(exprs, h.expr)
	}
	require.Equal(t, []string{"path", "path", "task", "[]string{…}"}, exprs)
}
