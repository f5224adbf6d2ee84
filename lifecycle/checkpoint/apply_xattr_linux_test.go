package checkpoint

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A file that is not written again keeps its extended attributes.
func TestApplyAndExtendedAttributes(t *testing.T) {
	t.Parallel()
	from := made("content", "two", "dir/", "", "dir/a", "two", "mode", "one").with(map[string]fs.FileMode{"dir": 0o500, "mode": 0o600})
	to := made("content", "one", "dir/", "", "dir/a", "one", "mode", "one").with(map[string]fs.FileMode{"dir": 0o500})
	blobs, tree := stored(t, to), onDisk(t, from)
	at := func(name string) string { return filepath.Join(tree.Name(), name) }
	for _, name := range []string{"content", "dir", "mode"} {
		require.NoError(t, tree.Chmod(name, from[name].mode|0o200))
		if err := unix.Setxattr(at(name), "user.lopen", []byte("x"), 0); err != nil {
			t.Skipf("no extended attributes in temporary folders: %v", err)
		}
		require.NoError(t, tree.Chmod(name, from[name].mode))
	}
	_, err := try(tree, blobs).Apply(tContext(), planOf(t, blobs, from, to))
	require.NoError(t, err)
	requireThings(t, to, seen(t, tree), "applied")
	for name, survives := range map[string]bool{"content": false, "dir": true, "mode": true} {
		_, err := unix.Getxattr(at(name), "user.lopen", make([]byte, 8))
		require.Equal(t, survives, err == nil, name)
	}
}
