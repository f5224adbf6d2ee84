//go:build unix

package repo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/repo"
)

// begun is the repository as a run has it that begins now, and what it says is changed.
func (p *project) begun() (*repo.Repository, *[]string) {
	p.t.Helper()
	r := p.open()
	b, err := r.Begin(p.t.Context())
	require.NoError(p.t, err)
	names := &[]string{}
	return r.From(b, func(changed []string) { *names = changed }), names
}

// sh runs a script in the project. $U is a command that notes in the file $USED that it runs, and hook writes it
// into a file.
func (p *project) sh(script string) {
	p.t.Helper()
	cmd := exec.Command("sh", "-ec", `U="echo used >>'$USED'"; hook() { printf '#!/bin/sh\n%s\n' "$U" >"$1"; chmod +x "$1"; }; `+script)
	cmd.Dir, cmd.Env = p.dir, p.environ
	out, err := cmd.CombinedOutput()
	require.NoError(p.t, err, "%s", out)
}

// tryOn changes the file kept and commits it as a task.
func (p *project) tryOn(r *repo.Repository) (repo.Made, error) {
	p.t.Helper()
	head, err := r.Head(p.t.Context())
	require.NoError(p.t, err)
	p.write("kept", "changed after "+head.Commit+"\n")
	differing, err := r.Differing(p.t.Context())
	require.NoError(p.t, err)
	require.Contains(p.t, differing, "kept")
	return r.CommitFiles(p.t.Context(), repo.Commit{Head: head, Paths: []string{"kept"}, Message: "a task", Session: "m-20260101-1", Task: "a/task"})
}

func (p *project) commitOn(r *repo.Repository) {
	p.t.Helper()
	made, err := p.tryOn(r)
	require.NoError(p.t, err)
	require.NoError(p.t, made.Index)
	require.NotEmpty(p.t, made.Hash)
	head, err := r.Head(p.t.Context())
	require.NoError(p.t, err)
	require.Equal(p.t, made.Hash, head.Commit)
}

// Whatever an agent writes during a run for git to run, git runs none of it, and commits in the name in which it
// did before.
func TestNothingOfTheAgentRuns(t *testing.T) {
	t.Parallel()
	const husky = `mkdir -p .husky/_; printf '#!/bin/sh\n. "$(dirname "$0")/h"\n' >.husky/_/pre-commit; echo '. .husky/pre-commit' >.husky/_/h; chmod +x .husky/_/*; : >.husky/pre-commit; `
	for name, c := range map[string]struct{ before, agent, changed string }{
		"a hook":                      {"", `hook .git/hooks/pre-commit`, ".git/hooks/pre-commit"},
		"a hook of the index":         {"", `hook .git/hooks/post-index-change`, ".git/hooks/post-index-change"},
		"a hook of references":        {"", `hook .git/hooks/reference-transaction`, ".git/hooks/reference-transaction"},
		"a hook that could not run":   {`hook .git/hooks/pre-commit; chmod -x .git/hooks/pre-commit`, `chmod +x .git/hooks/pre-commit`, ".git/hooks/pre-commit"},
		"another hook in its place":   {`hook .git/hooks/pre-commit; echo : >.git/hooks/pre-commit`, `hook .git/hooks/pre-commit`, ".git/hooks/pre-commit"},
		"what a hook leads to":        {`echo : >lint; chmod +x lint; ln -s ../../lint .git/hooks/pre-commit`, `hook lint`, ".git/hooks/pre-commit"},
		"a folder of hooks":           {"", `mkdir h; hook h/pre-commit; git config core.hooksPath h`, "config core.hookspath"},
		"a hook of husky":             {husky + `git config core.hooksPath .husky/_`, `echo "$U" >.husky/pre-commit`, ".husky/pre-commit"},
		"a script of husky":           {husky + `git config core.hooksPath "$PWD/.husky/_"`, `echo "$U" >.husky/_/h`, ".husky/_/h"},
		"what a manager is told":      {`printf '#!/bin/sh\n. ./lefthook.yml\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; : >lefthook.yml`, `echo "$U" >lefthook.yml`, "lefthook.yml"},
		"a filter":                    {"", `git config filter.f.clean "$U; cat"; echo '* filter=f' >.git/info/attributes`, "config filter.f.clean"},
		"a filter of the user's":      {"", `git config --global filter.f.clean "$U; cat"; echo '* filter=f' >.gitattributes`, "config filter.f.clean"},
		"another filter in its place": {`git config filter.f.clean cat; echo '* filter=f' >.gitattributes`, `git config filter.f.clean "$U; cat"`, "config filter.f.clean"},
		"attributes":                  {`git config filter.f.clean "$U; cat"`, `echo '* filter=f' >.git/info/attributes`, ".git/info/attributes"},
		"attributes of the user's":    {`git config filter.f.clean "$U; cat"`, `mkdir -p "$XDG_CONFIG_HOME/git"; echo '* filter=f' >"$XDG_CONFIG_HOME/git/attributes"`, "HOME/.config/git/attributes"},
		"attributes that are named":   {`git config filter.f.clean "$U; cat"; git config core.attributesFile ../a; : >../a`, `echo '* filter=f' >../a`, "../a"},
		"a monitor":                   {"", `hook monitor; git config core.fsmonitor "$PWD/monitor"`, "config core.fsmonitor"},
		"a name":                      {"", `git config user.email other@example.org; git config --global author.email other@example.org`, "config user.email"},
		"a signature":                 {"", `hook sign; git config gpg.program "$PWD/sign"; git config commit.gpgSign true`, "config commit.gpgsign"},
		"a file that is included":     {`git config include.path ../more`, `printf '[user]\n\temail = other@example.org\n' >more`, "config user.email"},
		"one of a work tree":          {"", `git config extensions.worktreeConfig true; git config --worktree user.email other@example.org`, "config user.email"},
		"one of a branch":             {`git config includeIf.onbranch:main.path ../more`, `printf '[user]\n\temail = other@example.org\n' >more`, "config user.email"},
		"a git that tidies up":        {"", `hook .git/hooks/pre-auto-gc; git config gc.autoPackLimit 1; git repack -q; git commit -q --allow-empty -m x; git repack -q`, ".git/hooks/pre-auto-gc"},
		"more than can be compared":   {`mkdir .git/hooks/many; cd .git/hooks/many; seq 5000 | xargs touch; hook ../pre-commit; rm -f "$USED"`, "", "hooks, which are too many to compare"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t)
			used := filepath.Join(t.TempDir(), "used")
			p.environ = append(p.environ, "USED="+used)
			p.sh(c.before)
			r, changed := p.begun()
			if c.agent != "" {
				p.commitOn(r)
				require.Empty(t, *changed)
			}
			p.sh(c.agent + "\nrm -f \"$USED\"")
			p.commitOn(r)
			require.NoFileExists(t, used)
			require.Equal(t, "p@example.com p@example.com", p.git("log", "-1", "--format=%ae %ce"))
			home := filepath.Join(filepath.Dir(p.dir), "home")
			require.Contains(t, *changed, strings.Replace(strings.Replace(c.changed, "HOME", home, 1), "..", filepath.Dir(p.dir), 1))
			p.git("fsck", "--strict")
		})
	}
}

// What git sets by itself, or Git LFS, takes no hook away, and a hook may do so as well.
func TestUnchangedHooksRun(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	log := filepath.Join(t.TempDir(), "log")
	p.hook("pre-commit", "echo ran >>'"+log+"'")
	p.hook("post-commit", "git config lfs.repositoryformatversion 0; git config lfs.https://example.org/x.git/info/lfs.access basic")
	p.write("lefthook.yml", "")
	r, changed := p.begun()
	p.commitOn(r)
	p.sh(`git config branch.main.remote origin; git config submodule.x.active true; git config submodule.x.url y; git config index.sparse false`)
	p.commitOn(r)
	require.Empty(t, *changed)
	ran := func() string {
		data, err := os.ReadFile(log)
		require.NoError(t, err)
		return string(data)
	}
	require.Equal(t, "ran\nran\n", ran())

	// What was changed and is as it was counts again.
	p.sh(`git config submodule.x.update '!true'; echo x >lefthook.yml`)
	require.Equal(t, []string{"config submodule.x.update", "lefthook.yml"}, r.Changed(t.Context()))
	p.commitOn(r)
	require.Equal(t, "ran\nran\n", ran())
	p.sh(`git config --unset submodule.x.update; : >lefthook.yml`)
	p.commitOn(r)
	require.Equal(t, "ran\nran\nran\n", ran())
}

// Without the hooks, filters, attributes, names and signatures are those of the begin, and so is where a filter
// stores what is large.
func TestTheBeginGoesOn(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.sh(`mkdir ../bin; printf '#!/bin/sh\ncat >/dev/null\nprintf "\\n[GNUPG:] SIG_CREATED " >&2\necho signature\n' >../bin/sign; chmod +x ../bin/sign
		printf '#!/bin/sh\ndir=$(git config lfs.storage || echo "$(git rev-parse --git-common-dir)/lfs"); mkdir -p "$dir"; cat >"$dir/object"; echo pointer\n' >../bin/clean; chmod +x ../bin/clean
		git config gpg.program "$PWD/../bin/sign"; git config commit.gpgSign true; git config core.autocrlf true
		git config filter.large.clean "$PWD/../bin/clean"; git config filter.large.required true; git config filter.upper.clean 'tr a-z A-Z'
		echo '*.up filter=upper' >.git/info/attributes; echo '*.big filter=large' >.gitattributes; git config gc.autoPackLimit 1; git config gc.autoDetach false
		git config lfs.storage x; git config --unset lfs.storage`)
	r, changed := p.begun()
	p.sh(`hook .git/hooks/pre-commit; git config core.autocrlf false; git config --unset commit.gpgSign; git config filter.upper.clean cat; git config filter.large.clean cat; rm .git/info/attributes
		git repack -q; git -c commit.gpgSign=false commit -qm x --allow-empty --no-verify; git repack -q`)
	p.write("a.up", "text\r\n")
	p.write("b.big", "content\n")
	head, err := r.Head(t.Context())
	require.NoError(t, err)
	made, err := r.CommitFiles(t.Context(), repo.Commit{Head: head, Paths: []string{"a.up", "b.big"}, Message: "a task"})
	require.NoError(t, err)
	require.NotEmpty(t, *changed)
	require.Equal(t, "TEXT", p.git("show", "HEAD:a.up"))
	require.Equal(t, "pointer", p.git("show", "HEAD:b.big"))
	object, err := os.ReadFile(filepath.Join(p.dir, ".git", "lfs", "object"))
	require.NoError(t, err)
	require.Equal(t, "content\n", string(object))
	require.Contains(t, p.git("cat-file", "commit", made.Hash), "gpgsig signature")
	require.Contains(t, p.git("reflog", "-1"), "a task")
	packs, err := filepath.Glob(filepath.Join(p.dir, ".git", "objects", "pack", "*.pack"))
	require.NoError(t, err)
	require.Len(t, packs, 2, "nothing is tidied up by a git whose references are links")
	left, err := filepath.Glob(filepath.Join(filepath.Dir(p.dir), "home", "state", "lopen", "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// The configuration of the begin is written with the values that git read.
func TestConfigurationIsWritten(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.write(".git/config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[a \"x\\\"y\\\\z.w\tt\"]\n\tbare\n\tempty =\n\tquoted = \" a # b ; c \\\\ \\\" \"\n\tlines = \"1\\n2\\t3\\b\"\n\tmany = 1\n\tmany = 2\n[include]\n\tpath = ../more\n[b.old]\n\tkey = v\n[a-b]\n\tname = \"\r\"\n")
	p.write("more", "[c]\n\tincluded = yes\n")
	own := []string{"core.", "lfs.storage", "gc.auto", "maintenance.auto", "include."}
	list := func(r *repo.Repository) (all []string) {
		out, err := r.Git(t.Context(), repo.Command{Args: []string{"config", "--list", "-z"}})
		require.NoError(t, err)
		for kv := range strings.SplitSeq(string(out), "\x00") {
			if !slices.ContainsFunc(own, func(key string) bool { return strings.HasPrefix(kv, key) }) {
				all = append(all, kv)
			}
		}
		return all
	}
	r, _ := p.begun()
	was := list(r)
	require.Greater(t, len(was), 12)
	p.sh("git config d.later 1")
	require.Equal(t, was, list(r))
	require.Contains(t, p.git("config", "--list"), "d.later=1")
}

// A repository that the agent puts in the place of the project's is not committed to.
func TestAnotherRepositoryInItsPlace(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	r, changed := p.begun()
	p.environ = append(p.environ, "USED="+filepath.Join(t.TempDir(), "used"))
	p.sh(`cp -r .git ../other; hook ../other/hooks/pre-commit; mv .git ../was; echo "gitdir: ../other" >.git`)
	_, err := r.Head(t.Context())
	require.ErrorContains(t, err, "make git's configuration of when the run began")
	require.Contains(t, (*changed)[0], "and was "+filepath.Join(p.dir, ".git"))

	linked := filepath.Join(p.dir, "..", "linked")
	p.sh(`rm .git; mv ../was .git; git worktree add -q -b linked ../linked`)
	p.dir = linked
	r, changed = p.begun()
	p.commitOn(r)
	p.sh(`echo "gitdir: ../other" >.git`)
	p.commitOn(r)
	require.Contains(t, (*changed)[0], "the repository of")
	require.NoFileExists(t, p.environ[len(p.environ)-1][len("USED="):])
	require.Equal(t, "a task\na task\nfirst", p.git("-C", filepath.Join(p.dir, "..", "project"), "log", "--format=%s", "linked"))
}

// A work tree that is made after an agent changed what git runs has its files by the filters of the begin.
func TestAWorkTreeIsMadeOfTheBegin(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.environ = append(p.environ, "USED="+filepath.Join(t.TempDir(), "used"))
	p.sh(`git config filter.upper.smudge 'tr a-z A-Z'; git config filter.upper.clean 'tr A-Z a-z'; git config merge.m.driver "$U; false"; echo 'kept filter=upper' >.gitattributes; git add .; git commit -qm second
		git checkout -qb b; echo b >b; git add b; git commit -qm b; git checkout -q main; echo c >c; git add c; git commit -qm c; rm -f "$USED"`)
	r, changed := p.begun()
	p.sh(`hook .git/hooks/post-checkout; git config filter.upper.smudge "$U; cat"; git config filter.more.smudge "$U; cat"; echo '* filter=more' >.git/info/attributes`)
	base, err := r.Commit(t.Context(), "HEAD")
	require.NoError(t, err)
	merged, conflicts, err := r.Merge(t.Context(), base, "b")
	require.NoError(t, err)
	require.Empty(t, conflicts)
	tree := filepath.Join(filepath.Dir(p.dir), "trees", "s")
	require.NoError(t, r.MakeWorktree(t.Context(), tree, "lopen/s", merged))
	require.NotEmpty(t, *changed)
	kept, err := os.ReadFile(filepath.Join(tree, "kept"))
	require.NoError(t, err)
	require.Equal(t, "KEPT\n", string(kept))
	require.FileExists(t, filepath.Join(tree, "b"))
	require.NoFileExists(t, p.environ[len(p.environ)-1][len("USED="):])
	p.sh(`rm .git/hooks/post-checkout .git/info/attributes; git config filter.upper.smudge 'tr a-z A-Z'; git -C ../trees/s status --porcelain >../status; test ! -s ../status; git worktree list | grep -q trees/s; rm -f "$USED"`)
	all, err := r.Worktrees(t.Context())
	require.NoError(t, err)
	require.Equal(t, []repo.Worktree{{Path: tree, Branch: "lopen/s"}}, all)
}

// In a work tree a hook of the project's may come, as a package manager installs it, and nothing else. In one
// that was made of an agent's commit, its hooks do not count.
func TestHooksOfAWorkTree(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	log := filepath.Join(t.TempDir(), "log")
	p.environ = append(p.environ, "USED="+log)
	p.sh(`mkdir -p .husky/_; hook .husky/_/pre-commit; : >.husky/pre-commit; echo _ >.husky/.gitignore; git config core.hooksPath .husky/_; git add .; git commit -qm second; rm -f "$USED"
		git checkout -qb b; echo agent >.husky/pre-commit; git commit -qam b; git checkout -q main; rm -f "$USED"; git worktree add -q --detach ../tree; git worktree add -q --detach ../made b`)
	home, err := p.open().Begin(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"pre-commit"}, home.Hooks())
	in := func(name string, fresh bool) *repo.Repository {
		p.dir = filepath.Join(filepath.Dir(p.dir), name)
		r := p.open()
		b, err := r.Begin(t.Context())
		require.NoError(t, err)
		require.Empty(t, b.Hooks())
		return r.From(b.In(home, fresh), nil)
	}
	r := in("made", true)
	require.Contains(t, r.Changed(t.Context()), ".husky/pre-commit")
	r = in("made", false) // it is there since before the run
	require.Empty(t, r.Changed(t.Context()))
	r = in("tree", true)
	p.commitOn(r)
	require.NoFileExists(t, log)
	p.sh(`mkdir .husky/_; cp ../project/.husky/_/pre-commit .husky/_`)
	require.Empty(t, r.Changed(t.Context()))
	p.commitOn(r)
	require.FileExists(t, log)
	p.sh(`echo : >>.husky/_/pre-commit; : >.husky/_/commit-msg; rm .husky/pre-commit`)
	require.Equal(t, []string{".husky/_/commit-msg", ".husky/_/pre-commit", ".husky/pre-commit"}, r.Changed(t.Context()))
}

// A named pipe in the place of a file of the configuration holds git once, and no commit.
func TestAConfigurationThatHangs(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.sh("git config include.path ../more; : >more")
	r, changed := p.begun()
	p.sh("rm more; mkfifo more")
	begun := time.Now()
	for range 3 {
		p.sh("date +%N >>kept")
		head, err := r.Head(t.Context())
		require.NoError(t, err)
		made, err := r.CommitFiles(t.Context(), repo.Commit{Head: head, Paths: []string{"kept"}, Message: "a task"})
		require.NoError(t, err)
		require.NotEmpty(t, made.Hash)
	}
	require.NotEmpty(t, *changed)
	require.Less(t, time.Since(begun), 40*time.Second)
	p.sh("rm more; git log --format=%s >../log; grep -c 'a task' ../log | grep -qx 3")
}
