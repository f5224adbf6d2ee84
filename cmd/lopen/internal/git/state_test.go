package git

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var epoch = time.Unix(1_000_000_000, 0)

// TestLook holds what is said of ordinary repositories.
func TestLook(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	require.Equal(t, State{}, p.look(""), "no git at all")

	p.git("a", "init", "-q")
	require.Equal(t, State{Branch: "main"}, p.look("a"), "before the first commit")
	p.write("a/untracked", "")
	require.Equal(t, State{Branch: "main", Dirty: true}, p.look("a"))
	require.NoError(t, os.Remove(p.path("a/untracked")))

	head := p.repository("a")
	require.Equal(t, State{Head: head, Branch: "main"}, p.look("a"))
	p.write("a/deep/er/x", "")
	require.Equal(t, State{Head: head, Branch: "main", Dirty: true}, p.look("a/deep/er"), "from a folder beneath")
	p.write("a/.git/info/exclude", "deep\n")
	require.Equal(t, State{Head: head, Branch: "main"}, p.look("a"), "info/exclude counts")

	p.git("a", "pack-refs", "--all", "--prune")
	require.Equal(t, State{Head: head, Branch: "main"}, p.look("a"), "packed references")
	p.git("a", "checkout", "-q", "-b", "team/task-1")
	require.Equal(t, State{Head: head, Branch: "team/task-1"}, p.look("a"))
	p.git("a", "checkout", "-q", "--detach")
	require.Equal(t, State{Head: head, Branch: "(detached)"}, p.look("a"))

	p.git("a", "worktree", "add", "-q", "-b", "other", p.path("linked"))
	p.write("linked/file", "other\n")
	p.git("linked", "commit", "-qam", "other")
	other := p.git("linked", "rev-parse", "HEAD")
	require.Equal(t, State{Head: other, Branch: "other"}, p.look("linked"))
	p.write("linked/file", "changed\n")
	require.Equal(t, State{Head: other, Branch: "other", Dirty: true}, p.look("linked"))
	require.Equal(t, State{Head: head, Branch: "(detached)"}, p.look("a"), "the main work tree is another one")
	main, linked := MainWorkTree(p.path("linked"))
	require.True(t, linked)
	require.Equal(t, p.path("a"), main)
	_, linked = MainWorkTree(p.path("a"))
	require.False(t, linked)

	p.git("super", "init", "-q")
	p.git("super", "submodule", "-q", "add", p.path("a"), "sub")
	p.git("super", "commit", "-qm", "submodule")
	require.Equal(t, p.git("super/sub", "rev-parse", "HEAD"), p.look("super/sub").Head, "a submodule")
	require.False(t, p.look("super").Dirty)

	p.git("", "init", "-q", "--object-format=sha256", "long")
	long := p.repository("long")
	require.Len(t, long, 64)
	require.Equal(t, State{Head: long, Branch: "main"}, p.look("long"))
	p.write("long/file", "changed\n")
	require.True(t, p.look("long").Dirty)

	p.git("a", "config", "core.fileMode", "false")
	require.NoError(t, os.Chmod(p.path("a/file"), 0o755))
	require.False(t, p.look("a").Dirty, "how files are compared is the repository's to say")
	p.git("a", "config", "core.fileMode", "true")
	require.True(t, p.look("a").Dirty)
	p.git("a", "config", "core.fsmonitor", "true") // the user's own, too, is of no use for one look
	require.True(t, p.look("a").Dirty)

	p.git("", "clone", "-q", "--shared", p.path("long"), "borrows")
	require.Equal(t, State{Head: p.git("long", "rev-parse", "HEAD"), Branch: "main"}, p.look("borrows"), "objects of another repository")
}

// TestLookLeavesNothing looks at a repository whose index git would refresh.
func TestLookLeavesNothing(t *testing.T) {
	p := newPlace(t)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(tmp, "none")) // others may write there
	p.repository("a")
	require.NoError(t, os.Chtimes(p.path("a/file"), epoch, epoch))
	index, err := os.ReadFile(p.path("a/.git/index"))
	require.NoError(t, err)
	require.False(t, p.look("a").Dirty)
	after, err := os.ReadFile(p.path("a/.git/index"))
	require.NoError(t, err)
	require.Equal(t, index, after, "the index was refreshed")
	left, err := filepath.Glob(filepath.Join(p.home, ".local", "state", "lopen", "git-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestLookWithoutGit takes the program away: what files say stays.
func TestLookWithoutGit(t *testing.T) {
	p := newPlace(t)
	head := p.repository("a")
	p.write("a/file", "changed\n")
	t.Setenv("PATH", t.TempDir())
	require.Equal(t, State{Head: head, Branch: "main"}, p.look("a"))
	_, err := p.identity("a")
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrNone)
}
