package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestNothingOfARepositoryRuns gives a repository each key that names a program, or leads
// git elsewhere, and looks at it: nothing runs, and what is said is right. Where
// git itself runs the program for `git status`, the case says so, and shows it.
func TestNothingOfARepositoryRuns(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	filter := func(kind string) func(p *place, program string) {
		return func(p *place, program string) {
			p.write("a/.gitattributes", "* filter=evil\n")
			p.git("a", "add", "-A")
			p.git("a", "commit", "-qm", "attributes")
			p.git("a", "config", "filter.evil."+kind, program)
			p.git("a", "config", "filter.evil.required", "true")
		}
	}
	key := func(names ...string) func(p *place, program string) {
		return func(p *place, program string) {
			for _, name := range names {
				p.git("a", "config", name, program)
			}
		}
	}
	for name, c := range map[string]struct {
		prepare func(p *place, program string)
		gitRuns bool // for `git status`
	}{
		"fsmonitor":      {key("core.fsmonitor"), true},
		"filter.clean":   {filter("clean"), true},
		"filter.process": {filter("process"), true},
		"filter.smudge":  {filter("smudge"), false},
		"hooks": {func(p *place, program string) {
			p.git("a", "config", "core.hooksPath", p.path("hooks"))
			script, err := os.ReadFile(program)
			require.NoError(p.t, err)
			for _, hook := range []string{"post-index-change", "fsmonitor-watchman", "pre-auto-gc", "reference-transaction"} {
				for _, dir := range []string{"hooks/", "a/.git/hooks/"} {
					p.write(dir+hook, string(script))
					require.NoError(p.t, os.Chmod(p.path(dir+hook), 0o755))
				}
			}
		}, true},
		"commands of others": {key("core.sshCommand", "diff.external", "core.pager", "pager.status", "core.editor", "credential.helper",
			"core.alternateRefsCommand", "gpg.program", "sequence.editor", "core.askPass", "uploadpack.packObjectsHook", "merge.tool", "diff.evil.textconv"), false},
		"alias": {func(p *place, program string) {
			for _, name := range []string{"status", "config", "rev-list"} {
				p.git("a", "config", "alias."+name, "!"+program)
			}
		}, false},
		"include": {func(p *place, program string) {
			p.write("included", "[core]\n\tfsmonitor = "+program+"\n")
			p.git("a", "config", "include.path", p.path("included"))
		}, true},
		"includeIf": {func(p *place, program string) {
			p.write("included", "[core]\n\tfsmonitor = "+program+"\n")
			p.git("a", "config", "includeIf.gitdir:/**.path", p.path("included"))
		}, true},
		"worktreeConfig": {func(p *place, program string) {
			p.git("a", "config", "extensions.worktreeConfig", "true")
			p.git("a", "config", "--worktree", "core.fsmonitor", program)
		}, true},
		"promisor": {func(p *place, program string) {
			p.git("a", "config", "core.repositoryformatversion", "1")
			p.git("a", "config", "extensions.partialClone", "origin")
			p.git("a", "config", "remote.origin.url", "ext::"+program)
			p.git("a", "config", "remote.origin.promisor", "true")
			p.git("a", "config", "protocol.ext.allow", "always")
		}, false},
		"submodule": {func(p *place, program string) {
			p.repository("sub")
			p.git("a", "submodule", "-q", "add", p.path("sub"), "sub")
			p.git("a", "commit", "-qm", "submodule")
			p.git("a/sub", "config", "core.fsmonitor", program)
		}, true},
		"embedded repository": {func(p *place, program string) {
			p.repository("a/embedded")
			p.git("a/embedded", "config", "core.fsmonitor", program)
			p.write("a/.gitignore", "embedded\n")
			p.git("a", "add", ".gitignore")
			p.git("a", "commit", "-qm", "ignore")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			root := p.repository("a")
			marker := p.path("marker")
			program := p.path("program")
			p.write("program", "#!/bin/sh\ntouch "+marker+"\ncat\n")
			require.NoError(t, os.Chmod(program, 0o755))
			c.prepare(p, program)
			head := p.git("a", "rev-parse", "HEAD")
			_ = os.Remove(marker)

			touch := func() { // the index does not know the file's new times, so that contents are compared
				require.NoError(t, os.Chtimes(p.path("a/file"), epoch, epoch))
			}
			touch()
			require.Equal(t, State{Head: head, Branch: "main"}, p.look("a"))
			require.NoFileExists(t, marker)
			id, err := p.identity("a")
			require.NoError(t, err)
			require.Equal(t, root, id.Root)
			require.NoFileExists(t, marker)

			p.write("a/file", "changed\n")
			require.Equal(t, State{Head: head, Branch: "main", Dirty: true}, p.look("a"))
			require.NoFileExists(t, marker)

			if c.gitRuns {
				p.write("a/file", "a\n")
				touch()
				cmd := exec.Command("git", "status")
				cmd.Dir, cmd.Env = p.path("a"), append(os.Environ(), "HOME="+p.home)
				_ = cmd.Run()
				require.FileExists(t, marker, "git itself runs it: else this case shows nothing")
			}
		})
	}
}

// TestNoRepositoryIsFoundElsewhere holds what leads git away from the folder's own .git.
func TestNoRepositoryIsFoundElsewhere(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.repository("mine")
	p.git("mine", "worktree", "add", "-q", p.path("linked"))

	// A bare repository's files in the folder itself.
	p.git("", "init", "-q", "--bare", "bare")
	p.git("bare", "config", "core.bare", "false")
	p.git("bare", "config", "core.worktree", p.path("bare"))
	p.git("bare", "config", "core.fsmonitor", "touch "+p.path("marker"))
	require.Equal(t, State{}, p.look("bare"))
	require.NoFileExists(t, p.path("marker"))

	// A .git that names another repository.
	for name, lead := range map[string]func(dir string) error{
		"file": func(dir string) error {
			return os.WriteFile(dir+"/.git", []byte("gitdir: "+p.path("mine/.git")+"\n"), 0o644)
		},
		"relative file": func(dir string) error { return os.WriteFile(dir+"/.git", []byte("gitdir: ../mine/.git\n"), 0o644) },
		"copy of a linked one's": func(dir string) error {
			return os.WriteFile(dir+"/.git", []byte("gitdir: "+p.path("mine/.git/worktrees/linked")+"\n"), 0o644)
		},
		"symlink": func(dir string) error { return os.Symlink(p.path("mine/.git"), dir+"/.git") },
		"own common": func(dir string) error {
			p.write(dir+"/git/worktrees/x/gitdir", dir+"/.git\n")
			p.write(dir+"/git/worktrees/x/commondir", p.path("mine/.git")+"\n")
			p.write(dir+"/git/worktrees/x/HEAD", "ref: refs/heads/main\n")
			return os.WriteFile(dir+"/.git", []byte("gitdir: git/worktrees/x\n"), 0o644)
		},
	} {
		dir := p.path("leads by " + name)
		require.NoError(t, os.Mkdir(dir, 0o755))
		require.NoError(t, lead(dir))
		require.Equal(t, State{}, p.look(dir), name)
		_, err := p.identity(dir)
		require.ErrorIs(t, err, ErrNone, name)
		_, linked := MainWorkTree(dir)
		require.False(t, linked, name)
	}

	// core.worktree is not followed: the state is of the folder that holds .git.
	p.git("mine", "config", "core.worktree", p.path("bare"))
	require.False(t, p.look("mine").Dirty)
	p.write("mine/untracked", "")
	require.True(t, p.look("mine").Dirty)
}

// TestReferencesStayInside lets HEAD name what is no reference.
func TestReferencesStayInside(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	head := p.repository("a")
	p.write("secret", head+"\n")
	require.NoError(t, os.Symlink(p.path("secret"), p.path("a/.git/refs/heads/link")))
	for _, text := range []string{
		"ref: refs/../../../secret", "ref: ../../secret", "ref: " + p.path("secret"), "ref: refs/heads/main.lock", "ref: refs/heads/.invalid",
		"ref: refs/heads/a\tb", "ref: config", head[:39], head + " ", "",
	} {
		p.write("a/.git/HEAD", text+"\n")
		require.Equal(t, State{}, p.look("a"), text)
	}
	p.write("a/.git/HEAD", "ref: refs/heads/link\n")
	require.Empty(t, p.look("a").Head)
	p.write("a/.git/HEAD", "ref: refs/heads/loop\n")
	p.write("a/.git/refs/heads/loop", "ref: refs/heads/loop\n")
	require.Equal(t, State{}, p.look("a"))
}

// TestAnswersWithoutWaiting puts what cannot be read in the place of each file.
func TestAnswersWithoutWaiting(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.repository("a")
	p.git("a", "pack-refs", "--all")
	for _, name := range []string{"HEAD", "packed-refs", "refs/heads/main", "config", "index", "objects", "info/exclude", "shallow", "."} {
		for kind, put := range unreadable {
			dir := p.path("copy of " + kind + " " + filepath.Base(name))
			require.NoError(t, os.CopyFS(dir, os.DirFS(p.path("a"))))
			file := filepath.Join(dir, Mark, filepath.FromSlash(name))
			require.NoError(t, os.RemoveAll(file))
			put(t, file)
			begun := time.Now()
			_, _ = Look(t.Context(), dir, p.environ())
			_, _ = Identify(t.Context(), dir, p.environ())
			require.Less(t, time.Since(begun), LookPatience, "%s is a %s", name, kind)
		}
	}
}
