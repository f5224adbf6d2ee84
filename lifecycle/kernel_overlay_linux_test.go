package lifecycle_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// overlay mounts a file system whose lower layer is a folder, and returns where.
func overlay(t *testing.T, lower string) string {
	t.Helper()
	disk := tmpfs(t, "size=64m")
	for _, name := range []string{"upper", "work", "merged"} {
		require.NoError(t, os.Mkdir(filepath.Join(disk, name), 0o700))
	}
	merged := filepath.Join(disk, "merged")
	layers := "lowerdir=" + lower + ",upperdir=" + filepath.Join(disk, "upper") + ",workdir=" + filepath.Join(disk, "work") + ",redirect_dir=off"
	if err := unix.Mount("overlay", merged, "overlay", 0, layers); err != nil {
		t.Skipf("an overlay cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(merged, unix.MNT_DETACH)) })
	return merged
}

// In a container the project's .lopen may be in a layer whose folders the kernel does not
// rename. Prune, restore, delete and the move of a damaged session to corrupted/ work there.
func TestFoldersOfALowerLayer(t *testing.T) {
	t.Parallel()
	lower := t.TempDir()
	old := storeIn(t, lower)
	deleted, kept := made(t, old, "auth"), made(t, old, "auth")
	retired, newer := completed(t, old, "pay"), completed(t, old, "pay")
	damaged := made(t, old, "bad")
	ruin(t, path(old, "sessions", damaged.String()))
	require.NoError(t, old.Close(t.Context()))
	store := storeIn(t, overlay(t, lower))
	require.ErrorIs(t, os.Rename(path(store, "sessions", kept.String()), path(store, "sessions", "other")), unix.EXDEV, "the folder must be one of the lower layer")

	_, err := store.Delete(t.Context(), deleted)
	require.NoError(t, err)
	require.NoDirExists(t, path(store, "sessions", deleted.String()))
	before, _, err := store.Read(retired)
	require.NoError(t, err)
	gone, err := store.Prune(t.Context(), lifecycle.Retention{Sessions: 1}, false)
	require.NoError(t, err)
	require.Equal(t, []session.ID{retired}, retiredIDs(gone))
	_, _, err = store.Read(newer)
	require.NoError(t, err)
	require.NoDirExists(t, path(store, "sessions", retired.String()))
	require.NoError(t, store.Restore(t.Context(), retired))
	after, _, err := store.Read(retired)
	require.NoError(t, err)
	require.Equal(t, before.Header(), after.Header())
	sess, err := store.Open(retired)
	require.NoError(t, err)
	require.NoError(t, sess.Close(t.Context()))

	_, err = store.Open(damaged)
	require.ErrorIs(t, err, lifecycle.ErrCorrupt)
	aside, err := store.Quarantined()
	require.NoError(t, err)
	require.Len(t, aside, 1)
	left, err := os.ReadDir(path(store, "sessions"))
	require.NoError(t, err)
	for _, e := range left {
		require.False(t, strings.HasPrefix(e.Name(), ".moving") || strings.HasPrefix(e.Name(), ".moved") || strings.HasPrefix(e.Name(), ".copy"), e.Name())
		require.NotEqual(t, damaged.String(), e.Name())
	}
}
