package git

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func (p *place) identity(dir string) (Identity, error) {
	return Identify(p.t.Context(), p.path(dir), p.environ())
}

// TestIdentitySurvives holds what an approval is to survive, and what it is not.
func TestIdentitySurvives(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	root := p.repository("a")
	alone, err := p.identity("a")
	require.NoError(t, err)
	require.Equal(t, Identity{Root: root, Path: "."}, alone)

	p.git("a", "remote", "add", "origin", "https://me:secret@example.com/team/a.git")
	want := Identity{Root: root, Remote: "example.com/team/a", Path: "."}
	check := func(dir string) {
		t.Helper()
		got, err := p.identity(dir)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	check("a")

	p.write("a/more", "more")
	p.git("a", "add", "-A")
	p.git("a", "commit", "-q", "-m", "second")
	check("a")

	p.repository("other")
	p.git("a", "fetch", "-q", p.path("other"), "main:other")
	p.git("a", "merge", "-q", "--allow-unrelated-histories", "-X", "ours", "-m", "merge", "other")
	check("a")

	p.git("a", "worktree", "add", "-q", p.path("linked"))
	check("linked")
	require.NoError(t, os.MkdirAll(p.path("linked/deep/er"), 0o755))
	want.Path = "deep/er"
	check("linked/deep/er")
	want.Path = "."

	p.git("", "clone", "-q", p.path("a"), "clone")
	p.git("clone", "remote", "set-url", "origin", "git@example.com:team/a.git")
	check("clone")

	require.NoError(t, os.Rename(p.path("clone"), p.path("moved")))
	check("moved")

	p.git("moved", "remote", "set-url", "origin", "https://example.com/somebody/a.git")
	fork, err := p.identity("moved")
	require.NoError(t, err)
	require.NotEqual(t, want, fork, "a fork has the same root commit")
}

func TestIdentityOfLittle(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	_, err := p.identity("")
	require.ErrorIs(t, err, ErrNone, "no git at all")

	p.git("empty", "init", "-q")
	_, err = p.identity("empty")
	require.ErrorIs(t, err, ErrNone, "neither commit nor remote")
	p.git("empty", "remote", "add", "origin", "ssh://git@example.com:22/x/y/")
	id, err := p.identity("empty")
	require.NoError(t, err)
	require.Equal(t, Identity{Remote: "example.com/x/y", Path: "."}, id)

	p.repository("a")
	p.write("a/file", "second")
	p.git("a", "commit", "-qam", "second")
	p.git("", "clone", "-q", "--depth", "1", "file://"+p.path("a"), "shallow")
	id, err = p.identity("shallow")
	require.NoError(t, err)
	require.Empty(t, id.Root, "the end of what was fetched is no root")
	require.Equal(t, "file://"+p.path("a"), id.Remote)

	require.NoError(t, os.RemoveAll(p.path("a/.git/objects")))
	require.NoError(t, os.MkdirAll(p.path("a/.git/objects"), 0o755))
	_, err = p.identity("a")
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrNone, "damaged is not the same as none")
}

func TestNormalRemote(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"":                                   "",
		"https://github.com/a/b.git":         "github.com/a/b",
		"https://token@GitHub.com:443/a/b/":  "github.com/a/b",
		"git@github.com:a/b.git":             "github.com/a/b",
		"ssh://git@github.com/a/b":           "github.com/a/b",
		"alice@host:b.git":                   "alice@host/b",
		"ssh://alice:pw@host:22/~/b":         "alice@host/~/b",
		"http://u:p@host/a":                  "http://host/a",
		"https://host/?repo=a":               "host?repo=a",
		"/srv/git/a.git/":                    "/srv/git/a.git",
		"../a":                               "",
		"https://host:port/a":                "",
		"https://github.com/a/../evil/b.git": "github.com/a/../evil/b",
	} {
		require.Equal(t, want, NormalRemote(address), address)
	}
}

// What becomes of a folder while an agent works in it is another repository, but for its
// first commit.
func TestContinues(t *testing.T) {
	t.Parallel()
	old := Identity{Root: "a", Remote: "r", Path: "."}
	for _, c := range []struct {
		old, now Identity
		want     bool
	}{
		{old, old, true},
		{Identity{}, Identity{Root: "a", Path: "."}, true},
		{Identity{Remote: "r", Path: "."}, old, true},
		{old, Identity{Root: "b", Remote: "r", Path: "."}, false},
		{old, Identity{Root: "a", Remote: "s", Path: "."}, false},
		{old, Identity{Root: "a", Remote: "r", Path: "vendor"}, false},
		{old, Identity{}, false},
		{Identity{}, old, false},
	} {
		require.Equal(t, c.want, c.now.Continues(c.old), "%v becomes %v", c.old, c.now)
	}
}
