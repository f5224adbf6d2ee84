package git

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/files"
)

// tracks returns what Outside says that is tracked in a folder, "unknown" if git could not be asked.
func tracks(all []files.IgnoreFile) string {
	for _, f := range all {
		if f.Path == files.TrackedPath && f.Data == nil {
			return "unknown"
		} else if f.Path == files.TrackedPath {
			return strings.ReplaceAll(string(f.Data), "\x00", ";")
		}
	}
	return ""
}

func TestTracked(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	of := func(dir string) string {
		return tracks(Of(p.path(dir), p.environ(), zerolog.Nop()).Outside(t.Context()))
	}
	require.Empty(t, of(""), "no repository")
	p.git("a", "init", "-q")
	require.Empty(t, of("a"), "no index")
	p.repository("a")
	p.write("a/.gitignore", "dist\n")
	for _, name := range []string{"dist/é", "dist/in/b", "c d", "not"} {
		p.write("a/"+name, name)
	}
	p.git("a", "add", "-f", "dist", "c d")
	require.Equal(t, "c d;dist/in/b;dist/é;file;", of("a"))
	require.Equal(t, "in/b;é;", of("a/dist"), "from a folder on")
	require.Empty(t, of("a/.git"))
	p.git("a", "commit", "-qm", "all")
	p.git("a", "rm", "-q", "--cached", "c d")
	p.git("a", "worktree", "add", "-q", p.path("linked"), "HEAD")
	require.Equal(t, "c d;dist/in/b;dist/é;file;", of("linked"), "its own index")
	p.git("a", "update-index", "--skip-worktree", "dist/é")
	require.Equal(t, "dist/in/b;dist/é;file;", of("a"))
	p.git("a", "update-index", "--split-index")
	require.Equal(t, "dist/in/b;dist/é;file;", of("a"), "an index of two files")
	p.git("a", "update-index", "--no-split-index")

	// Three stages of a conflict are one name.
	blob := strings.Repeat("1", 40)
	p.write("stages", "100644 "+blob+" 1\tx\n100644 "+blob+" 2\tx\n100644 "+blob+" 3\tx\n")
	in, err := os.Open(p.path("stages"))
	require.NoError(t, err)
	defer in.Close()
	cmd := exec.Command("git", "-C", p.path("a"), "update-index", "--index-info")
	cmd.Stdin = in
	require.NoError(t, cmd.Run())
	require.Equal(t, "dist/in/b;dist/é;file;x;", of("a"))
}

// TestTrackedIsAskedOnce holds when git is started, and what holds if it cannot be.
func TestTrackedIsAskedOnce(t *testing.T) {
	p := newPlace(t)
	p.repository("a")
	of := Of(p.path("a"), p.environ(), zerolog.Nop()).Outside
	path, file := os.Getenv("PATH"), p.path("a/.git/index")
	age := func() {
		old := time.Now().Add(-time.Hour)
		require.NoError(t, os.Chtimes(file, old, old))
	}
	age()
	require.Equal(t, "file;", tracks(of(t.Context())))
	t.Setenv("PATH", t.TempDir())
	require.Equal(t, "file;", tracks(of(t.Context())), "the index is the same: git is not asked")
	t.Setenv("PATH", path)
	r, err := find(t.Context(), p.path("a"), p.environ())
	require.NoError(t, err)
	defer r.close()
	var x index
	_, err = x.file(t.Context(), r, p.path("a"))
	require.NoError(t, err)
	x.names = []byte("known\x00")
	f, err := x.file(t.Context(), r, p.path("a"))
	require.NoError(t, err)
	require.Equal(t, "known;", tracks([]files.IgnoreFile{f}))
	p.write("a/new", "")
	p.git("a", "add", "new")
	require.Equal(t, "file;new;", tracks(of(t.Context())))

	// Changed once more within the clock's tick: all that a look at the file shows may be the same.
	info, err := os.Stat(file)
	require.NoError(t, err)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	data = bytes.ReplaceAll(data, []byte("new"), []byte("neu"))
	require.NoError(t, os.WriteFile(file, data, 0o644))
	require.NoError(t, os.Chtimes(file, info.ModTime(), info.ModTime()))
	require.Equal(t, "file;neu;", tracks(of(t.Context())))

	data[0] ^= 1
	require.NoError(t, os.WriteFile(file, data, 0o644))
	require.Equal(t, "file;neu;", tracks(of(t.Context())), "a damaged index: what is known holds")
	require.Equal(t, "unknown", tracks(Of(p.path("a"), p.environ(), zerolog.Nop()).Outside(t.Context())))
	require.NoError(t, os.Rename(filepath.Dir(file), p.path("a/moved")))
	require.Empty(t, tracks(of(t.Context())), "no repository any more")
}

// A git that hangs, as on a file system that does not answer, is asked once.
func TestTrackedOfAGitThatHangs(t *testing.T) {
	p := newPlace(t)
	p.repository("a")
	r, err := find(t.Context(), p.path("a"), append(p.environ(), "PATH="+p.path("bin")+string(os.PathListSeparator)+os.Getenv("PATH")))
	require.NoError(t, err)
	defer r.close()
	p.write("bin/git", "#!/bin/sh\necho >>"+p.path("asked")+"\nexec sleep 300\n")
	require.NoError(t, os.Chmod(p.path("bin/git"), 0o755))
	x := index{names: []byte("known\x00")}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for range 3 {
		var f files.IgnoreFile
		f, err = x.file(ctx, r, p.path("a"))
		require.Error(t, err)
		require.Equal(t, "known;", tracks([]files.IgnoreFile{f}))
		ctx = t.Context()
	}
	require.ErrorIs(t, err, errHangs)
	asked, err := os.ReadFile(p.path("asked"))
	if !errors.Is(err, os.ErrNotExist) { // the shell may have been ended first
		require.NoError(t, err)
		require.Equal(t, "\n", string(asked))
	}
}

// TestRepositoriesWithin holds when the state of a repository within the tree is another one.
func TestRepositoriesWithin(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.repository("a")
	p.repository("lib")
	p.repository("a/clone")
	p.git("a", "submodule", "add", "-q", p.path("lib"), "sub")
	p.git("a", "commit", "-qm", "sub")
	tree := Of(p.path("a"), p.environ(), zerolog.Nop())
	of := func(path string) string {
		tree.Outside(t.Context())
		return tree.Repository(t.Context(), path)
	}
	require.Empty(t, of("none"))
	require.Empty(t, Of(p.dir, p.environ(), zerolog.Nop()).Repository(t.Context(), "none"))
	sub, clone := of("sub"), of("clone")
	require.Contains(t, sub, p.git("a/sub", "rev-parse", "HEAD"))
	require.Contains(t, clone, p.git("a/clone", "rev-parse", "HEAD"))
	require.NotEqual(t, sub, of("clone"))
	require.Equal(t, sub, of("sub"))

	p.write("a/clone/file", "changed")
	require.Equal(t, clone, of("clone"), "of a submodule alone git is asked")
	p.write("a/sub/file", "changed")
	dirty := of("sub")
	require.NotEqual(t, sub, dirty)
	p.write("a/sub/file", "changed again")
	require.NotEqual(t, dirty, of("sub"))
	p.write("a/sub/new", "")
	require.NotEqual(t, dirty, of("sub"))
	p.git("a/sub", "add", "-A")
	p.git("a/sub", "commit", "-qm", "two")
	require.NotContains(t, of("sub"), "\x00", "nothing differs from the commit")
	require.NotEqual(t, sub, of("sub"))
	p.write("a/sub/.git", "gitdir: "+p.path("lib/.git")+"\n")
	require.Empty(t, of("sub"), "what it names does not point back")
}
