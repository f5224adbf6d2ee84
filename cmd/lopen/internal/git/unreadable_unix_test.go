//go:build unix

package git

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// unreadable are the things that cannot be read as a file, or not to their end.
var unreadable = map[string]func(t *testing.T, path string){
	"fifo":   func(t *testing.T, path string) { require.NoError(t, syscall.Mkfifo(path, 0o644)) },
	"folder": func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o755)) },
	"device": func(t *testing.T, path string) { require.NoError(t, os.Symlink("/dev/zero", path)) },
	"sparse": func(t *testing.T, path string) {
		require.NoError(t, os.WriteFile(path, nil, 0o644))
		require.NoError(t, os.Truncate(path, 20<<30))
	},
}

// TestForeignRepository finds a repository of another user above the folder, and one in
// the folder of that user that was asked about.
func TestForeignRepository(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("to give a file to another user takes root")
	}
	p := newPlace(t)
	head := p.repository("a")
	require.NoError(t, os.Mkdir(p.path("a/mine"), 0o755))
	for _, name := range []string{"a", "a/.git"} {
		require.NoError(t, os.Chown(p.path(name), 65534, 65534))
	}
	require.Equal(t, State{}, p.look("a/mine"))
	_, err := p.identity("a/mine")
	require.ErrorIs(t, err, ErrNone)
	require.Equal(t, State{Head: head, Branch: "main"}, p.look("a"), "whose folder is trusted, with it the repository")

	p.git("b", "init", "-q")
	p.git("b", "-c", "safe.directory=*", "commit", "-q", "--allow-empty", "-m", "one")
	p.git("b", "worktree", "add", "-q", p.path("linked"))
	_, linked := MainWorkTree(p.path("linked"))
	require.True(t, linked)
	require.NoError(t, os.Chown(p.path("b/.git"), 65534, 65534))
	_, linked = MainWorkTree(p.path("linked"))
	require.False(t, linked)
	require.Equal(t, State{}, p.look("linked"))
}
