package trust_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// TestPlace: what was said of one store is not said of another in its place, and follows no copy.
func TestPlace(t *testing.T) {
	t.Parallel()
	project := filepath.Join(t.TempDir(), "p")
	folder := filepath.Join(project, ".lopen")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	s := trust.Open(filepath.Join(t.TempDir(), "state"))
	here := func() trust.Here {
		h, err := s.Here(project, folder)
		require.NoError(t, err)
		return h
	}
	h := here()
	require.False(t, h.Same(h.Kept), "nothing was said")
	require.NoError(t, s.SetHere(project, folder, func(h *trust.Here) {
		h.Keep()
		h.Set("check", strictjson.Value(`"x"`))
	}))
	h = here()
	require.True(t, h.Same(h.Kept))
	require.True(t, h.Same(h.Settings["check"].Store))

	// In the place of the store, with the same inode number if the system gives it again.
	require.NoError(t, os.Remove(folder))
	require.NoError(t, os.Mkdir(folder, 0o700))
	h = here()
	require.False(t, h.Same(h.Kept), "it is another store")
	require.False(t, h.Same(h.Settings["check"].Store))
	require.JSONEq(t, `"x"`, string(h.Settings["check"].Value), "what they set in this folder is known")

	first, again := false, false
	require.NoError(t, s.SetHere(project, folder, func(h *trust.Here) { first = h.Tell() }))
	require.NoError(t, s.SetHere(project, folder, func(h *trust.Here) { again = h.Tell() }))
	require.True(t, first)
	require.False(t, again)

	all, err := s.AllHere()
	require.NoError(t, err)
	require.Len(t, all, 1)
	n, err := s.ForgetHere(func(p trust.Project) bool { return p.Folder == all[0].Folder })
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Empty(t, here().Settings)
}

func TestDamagedHereIsNothing(t *testing.T) {
	t.Parallel()
	project, dir := t.TempDir(), t.TempDir()
	s := trust.Open(dir)
	require.NoError(t, s.SetHere(project, project, (*trust.Here).Keep))
	files, err := filepath.Glob(filepath.Join(dir, "here", ".lopen", "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	for _, data := range []string{"{", "{}", `{"folder":"/other","kept":"x"}`} {
		require.NoError(t, os.WriteFile(files[0], []byte(data), 0o600))
		h, err := s.Here(project, project)
		require.ErrorContains(t, err, "counts as nothing")
		require.False(t, h.Same(h.Kept))
	}
	require.NoError(t, s.SetHere(project, project, (*trust.Here).Keep), "it is replaced")
	h, err := s.Here(project, project)
	require.NoError(t, err)
	require.True(t, h.Same(h.Kept))
}
