package turns_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/turns"
)

func TestMark(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, other := turns.MarkOf(dir, "claude", "../a"), turns.MarkOf(dir, "codex", "../a")
	require.NotEqual(t, m, other)
	require.Empty(t, m.Project())
	m.Set("/p")
	m.Set("/p")
	require.Equal(t, "/p", m.Project())
	require.Empty(t, other.Project())
	require.Empty(t, m.Left())
	m.Later("trouble")
	require.Equal(t, "trouble", m.Left())
	require.Empty(t, m.Left())
	m.Clear()
	require.Empty(t, m.Project())
	entries, err := os.ReadDir(filepath.Join(dir, "turns"))
	require.NoError(t, err)
	require.Empty(t, entries)
	none := turns.Mark("") // where the user has no folder
	none.Set("/p")
	none.Later("x")
	require.Empty(t, none.Project()+none.Left())
}
