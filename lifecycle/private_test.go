package lifecycle_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
)

// TestPrivateFolders: whatever came with a clone, what is kept is closed to others, and ignored by git.
func TestPrivateFolders(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	folders := []string{".", "sessions", "checkpoints", "blobs", "trash", "corrupted", "moved", "cache", "transactions", "sidecar.git"}
	for _, dir := range folders {
		dir = filepath.Join(project, lifecycle.Dir, dir)
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.Chmod(dir, 0o755)) // #nosec G302 -- as git makes it
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("!*\n"), 0o600))
	}
	modules := filepath.Join(project, lifecycle.Dir, "modules")
	require.NoError(t, os.Mkdir(modules, 0o700))
	require.NoError(t, os.Chmod(modules, 0o755)) // #nosec G302 -- as git makes it
	store, _, err := lifecycle.Init(project, lifecycle.Options{})
	require.NoError(t, err)
	sess, err := store.Create(t.Context(), "m")
	require.NoError(t, err)
	require.NoError(t, sess.Close(t.Context()))
	for _, dir := range folders {
		data, err := os.ReadFile(filepath.Join(store.Path(), dir, ".gitignore"))
		require.NoError(t, err)
		want := "*\n"
		if dir == "." {
			want = "!*\n" // which a person may want, to version a plan
		}
		require.Equal(t, want, string(data), dir)
		info, err := os.Stat(filepath.Join(store.Path(), dir))
		require.NoError(t, err)
		if runtime.GOOS != "windows" {
			require.Equal(t, fs.FileMode(0o700), info.Mode().Perm(), dir)
		}
	}
	info, err := os.Stat(filepath.Join(store.Path(), "modules"))
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Equal(t, fs.FileMode(0o700), info.Mode().Perm(), "the plans")
	}
	require.NoError(t, store.Close(t.Context()))
}
