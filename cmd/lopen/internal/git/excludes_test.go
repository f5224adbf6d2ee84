package git

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/files"
)

func (p *place) excludes(dir string) map[string]string {
	all := map[string]string{}
	for _, f := range Of(p.path(dir), p.environ(), zerolog.Nop()).Outside(p.t.Context()) {
		if f.Path != files.TrackedPath {
			all[f.Path] = string(f.Data)
		}
	}
	return all
}

// requireAsGit compares what git leaves out of a folder by its own files with what it
// leaves out by the patterns that Outside returns for it.
func (p *place) requireAsGit(dir string) {
	p.t.Helper()
	var all bytes.Buffer
	for _, f := range Of(p.path(dir), p.environ(), zerolog.Nop()).Outside(p.t.Context()) {
		if f.Path != files.TrackedPath {
			all.Write(f.Data)
			all.WriteString("\n")
		}
	}
	copied := "copies/" + dir
	require.NoError(p.t, os.RemoveAll(p.path("copies")))
	require.NoError(p.t, os.CopyFS(p.path(copied), os.DirFS(p.path(dir))))
	require.NoError(p.t, os.RemoveAll(p.path(copied+"/.git")))
	p.git(copied, "init", "-q")
	p.write("patterns", all.String())
	want := p.git(dir, "ls-files", "--others", "--ignored", "--exclude-standard", "--", ".")
	require.NotEmpty(p.t, want, "else this shows nothing")
	require.Equal(p.t, want, p.git(copied, "ls-files", "--others", "--ignored", "--exclude-from="+p.path("patterns"), "--", "."))
}

// TestExcludes holds what counts, as git has it.
func TestExcludes(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	require.Empty(t, p.excludes(""), "no repository")

	p.repository("a")
	require.Equal(t, []string{"//info/exclude"}, keys(p.excludes("a")), "git's template")
	for _, name := range []string{"x", "y", "z", "sub/x", "sub/y", "sub/in/x", "sub/in/y", "other/x"} {
		p.write("a/"+name, "")
	}
	p.write("a/.git/info/exclude", "x\n!/sub/x\n/sub/in/y\n")
	p.write(filepath.Join(p.home, ".config/git/ignore"), "y\nsub/x\n")
	require.Equal(t, map[string]string{"//core.excludesFile": "y\nsub/x\n", "//info/exclude": "x\n!/sub/x\n/sub/in/y\n"}, p.excludes("a"))
	require.Equal(t, "//core.excludesFile", Of(p.path("a"), p.environ(), zerolog.Nop()).Outside(p.t.Context())[0].Path, "the weakest first")
	p.requireAsGit("a")
	p.requireAsGit("a/sub")
	p.requireAsGit("a/sub/in")

	p.write("a/.gitignore", "/sub/in/z\n!y\n*.log\n")
	p.write("a/sub/.gitignore", "y\n!z\n/in/w\n")
	for _, name := range []string{"z", "w", "1.log"} {
		p.write("a/sub/in/"+name, "")
	}
	require.ElementsMatch(t, []string{"//above/.gitignore", "//above/sub/.gitignore", "//core.excludesFile", "//info/exclude"}, keys(p.excludes("a/sub/in")))
	require.Equal(t, "/z\n!y\n*.log\n", p.excludes("a/sub/in")["//above/.gitignore"])
	p.requireAsGit("a/sub/in")
	require.ElementsMatch(t, []string{"//core.excludesFile", "//info/exclude"}, keys(p.excludes("a")))
	require.NoError(t, os.Remove(p.path("a/.gitignore")))
	require.NoError(t, os.Symlink("sub/.gitignore", p.path("a/.gitignore")))
	require.NotContains(t, p.excludes("a/sub/in"), "//above/.gitignore", "git follows no symlink")
	for _, name := range []string{"a/.gitignore", "a/sub/.gitignore"} {
		require.NoError(t, os.Remove(p.path(name)))
	}

	p.write(filepath.Join(p.home, "mine"), "z\n")
	p.git("a", "config", "--global", "core.excludesFile", "~/mine")
	require.Equal(t, "z\n", p.excludes("a")["//core.excludesFile"])
	p.requireAsGit("a")
	p.git("a", "config", "--global", "core.excludesFile", "")
	require.Equal(t, []string{"//info/exclude"}, keys(p.excludes("a")), "none at all")

	p.write("a/in-tree", "sub/in\n")
	p.git("a", "config", "core.excludesFile", "in-tree")
	require.Equal(t, "sub/in\n", p.excludes("a")["//core.excludesFile"])
	p.git("a", "config", "core.excludesFile", p.path("a/.git/none"))
	require.Equal(t, []string{"//info/exclude"}, keys(p.excludes("a")), "it is named and not there")
	p.write("a/.git/none", "other\n")
	require.Equal(t, "other\n", p.excludes("a")["//core.excludesFile"])

	p.git("a", "worktree", "add", "-q", p.path("linked"))
	require.Equal(t, "other\n", p.excludes("linked")["//core.excludesFile"])
	require.Equal(t, "x\n!/sub/x\n/sub/in/y\n", p.excludes("linked")["//info/exclude"], "of the common directory")
}

// TestFoldsCase holds what the repository says of the case of letters.
func TestFoldsCase(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.repository("a")
	for value, folds := range map[string]bool{"true": true, "yes": true, "1": true, "false": false} {
		p.git("a", "config", "core.ignorecase", value)
		require.Equal(t, folds, p.excludes("a")[files.FoldPath] != "", value)
	}
}

// TestBelow holds patterns for a folder of the work tree.
func TestBelow(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"x": "x", "x/": "x/", "!x": "!x", "# of a/b": "", "/a/b/x": "/x", "a/b/x/": "/x/", "!/a/b/x": "!/x", "*/?/x": "/x", "a/**/x": "/**/x", "**/x": "/**/x",
		"/a": "", "/a/b": "", "a/b/": "", "/a/c/x": "", "a/b/*": "/*", "[": "[", "[/x": "",
	} {
		require.Equal(t, want, strings.TrimSuffix(string(below([]byte(pattern+"\r\n"), "a/b")), "\n"), pattern)
	}
}

// TestExcludesWithoutGit takes the program away: the default file stays.
func TestExcludesWithoutGit(t *testing.T) {
	p := newPlace(t)
	p.repository("a")
	p.write(filepath.Join(p.home, ".config/git/ignore"), "y\n")
	p.git("a", "config", "--global", "core.excludesFile", "~/mine")
	p.git("a", "config", "core.excludesFile", "in-tree")
	t.Setenv("PATH", t.TempDir())
	require.Equal(t, "y\n", p.excludes("a")["//core.excludesFile"])
}

// TestExcludesOfTheRepository lets a repository name files that are none of its own: what
// is in them is not read, and the user's own file counts.
func TestExcludesOfTheRepository(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(filepath.Join(p.home, ".config/git/ignore"), "mine\n")
	p.write(filepath.Join(p.home, ".ssh/id"), "secret\n")
	p.repository("a")
	p.write("outside", "secret\n")
	require.NoError(t, os.Symlink(p.path("outside"), p.path("a/link")))
	for _, name := range []string{p.path("outside"), "../outside", "~/.ssh/id", "a/../../outside", "/proc/self/environ"} {
		p.git("a", "config", "core.excludesFile", name)
		require.Equal(t, "mine\n", p.excludes("a")["//core.excludesFile"], name)
	}
	p.write("more", "[core]\n\texcludesFile = in-tree\n")
	p.git("a", "config", "--unset", "core.excludesFile")
	p.git("a", "config", "include.path", p.path("more"))
	require.Equal(t, "mine\n", p.excludes("a")["//core.excludesFile"], "nothing is included")

	// A repository in the git directory, where git might look for one.
	p.git("", "init", "-q", "--bare", "a/.git/none")
	p.git("a/.git/none", "config", "core.excludesFile", p.path("outside"))
	p.git("a", "config", "--unset", "include.path")
	require.Equal(t, "mine\n", p.excludes("a")["//core.excludesFile"])

	// A link in the tree that leads out, named by the repository or by the user.
	p.git("a", "config", "core.excludesFile", "link")
	require.Equal(t, []string{"//info/exclude"}, keys(p.excludes("a")))
	p.git("a", "config", "--unset", "core.excludesFile")
	p.git("a", "config", "--global", "core.excludesFile", "link")
	require.Equal(t, []string{"//info/exclude"}, keys(p.excludes("a")))
	require.NoError(t, os.Remove(p.path("a/.git/info/exclude")))
	require.NoError(t, os.Symlink(p.path("outside"), p.path("a/.git/info/exclude")))
	require.Empty(t, p.excludes("a"))
}

// TestExcludesAnswerWithoutWaiting puts what cannot be read in the place of each file.
func TestExcludesAnswerWithoutWaiting(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.repository("a")
	p.git("a", "config", "core.excludesFile", "in-tree")
	for _, name := range []string{"a/in-tree", "a/.git/info/exclude", "a/.git/config", filepath.Join(p.home, ".config/git/ignore")} {
		for kind, put := range unreadable {
			config, err := os.ReadFile(p.path("a/.git/config"))
			require.NoError(t, err)
			require.NoError(t, os.RemoveAll(p.path(name)))
			require.NoError(t, os.MkdirAll(filepath.Dir(p.path(name)), 0o755))
			put(t, p.path(name))
			begun := time.Now()
			require.Less(t, len(p.excludes("a")), 2, "%s is a %s", name, kind)
			require.Less(t, time.Since(begun), LookPatience, "%s is a %s", name, kind)
			require.NoError(t, os.RemoveAll(p.path(name)))
			require.NoError(t, os.WriteFile(p.path("a/.git/config"), config, 0o644))
		}
	}
	p.write("a/in-tree", strings.Repeat("x\n", maxExcludes/2))
	require.Len(t, p.excludes("a"), 1)
	p.write("a/in-tree", strings.Repeat("x\n", maxExcludes/2)+"y")
	require.Empty(t, p.excludes("a"))
}

func keys(all map[string]string) (names []string) {
	for name := range all {
		names = append(names, name)
	}
	return names
}
