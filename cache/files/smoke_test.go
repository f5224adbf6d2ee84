package files

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
)

func TestSmoke(t *testing.T) {
	d := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(d, "a/b"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(d, "a/b/x"), []byte("x"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(d, "a/y.o"), []byte("x"), 0o644))
	root, err := writer.OpenFS(d)
	require.NoError(t, err)
	s, err := Take(t.Context(), root, nil, Options{})
	require.NoError(t, err)
	require.Len(t, s.Files, 2)
	s2, err := Take(t.Context(), root, s, Options{})
	require.NoError(t, err)
	require.Empty(t, Compare(s, s2))
}
