//go:build unix

package repo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/repo"
)

// commit commits files in the name of a task.
func (p *project) commit(paths ...string) repo.Made {
	p.t.Helper()
	made, err := p.tryCommit(paths...)
	require.NoError(p.t, err)
	return made
}

func (p *project) tryCommit(paths ...string) (repo.Made, error) {
	p.t.Helper()
	r := p.open()
	head, err := r.Head(p.t.Context())
	require.NoError(p.t, err)
	return r.CommitFiles(p.t.Context(), repo.Commit{Head: head, Paths: paths, Message: "# a task\n", Session: "m-20260101-1", Task: "a/task"})
}

// status is what git says of the work tree, a line each.
func (p *project) status() string { return p.git("status", "--porcelain", "-uall") }

func (p *project) remove(name string) {
	p.t.Helper()
	require.NoError(p.t, os.Remove(filepath.Join(p.dir, name)))
}

func TestCommit(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.write("old name", "content\n")
	p.write("script", "#!/bin/sh\n")
	p.write("dir/file", "in a folder\n")
	p.write("gone", "gone\n")
	p.write("staged", "1\n")
	p.write("both", "1\n")
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "second")

	// A person is at work: one file is staged, one is staged and changed again, one is new.
	p.write("staged", "2\n")
	p.write("both", "2\n")
	p.git("add", "staged", "both")
	p.write("both", "3\n")
	p.write("intended", "later\n")
	p.git("add", "-N", "intended")
	p.write("theirs", "not mine\n")
	// The task.
	require.NoError(t, os.Rename(filepath.Join(p.dir, "old name"), filepath.Join(p.dir, "-new\tname")))
	require.NoError(t, os.Chmod(filepath.Join(p.dir, "script"), 0o755))
	p.remove("gone")
	p.remove("dir/file")
	p.remove("dir")
	p.write("dir", "a file now\n")
	p.remove("kept")
	p.write("kept/inside", "a folder now\n")
	require.NoError(t, os.Symlink("nowhere", filepath.Join(p.dir, "link")))
	p.write(".gitignore", "*.log\n")
	p.write("debug.log", "noise")
	paths := []string{"old name", "-new\tname", "script", "gone", "dir/file", "dir", "kept", "kept/inside", "link", ".gitignore", "debug.log", "never was"}
	made := p.commit(paths...)

	require.Equal(t, []string{"debug.log"}, made.Ignored)
	require.NoError(t, made.Index)
	require.Empty(t, made.More)
	require.False(t, made.Rewritten)
	require.Equal(t, made.Hash, p.git("rev-parse", "HEAD"))
	require.Equal(t, "main", p.git("branch", "--show-current"))
	require.Equal(t, "# a task\n\nLopen-Session: m-20260101-1\nLopen-Task: a/task", p.git("log", "-1", "--format=%B"))
	require.Equal(t, "m-20260101-1 a/task P", p.git("log", "-1", "--format=%(trailers:key=Lopen-Session,valueonly,separator=) %(trailers:key=Lopen-Task,valueonly,separator=) %an"))
	require.Equal(t, strings.TrimSpace(`
:000000 100644 A	"-new\tname"
:000000 100644 A	.gitignore
:000000 100644 A	dir
:100644 000000 D	dir/file
:100644 000000 D	gone
:100644 000000 D	kept
:000000 100644 A	kept/inside
:000000 120000 A	link
:100644 000000 D	old name
:100644 100755 M	script`), p.changes("HEAD"))
	require.Equal(t, "MM both\n A intended\nM  staged\n?? theirs", p.status(), "what the person has at work is as it was")
	require.Equal(t, "2", p.git("show", ":both"))
	left, err := filepath.Glob(filepath.Join(filepath.Dir(p.dir), "home", "state", "lopen", "*"))
	require.NoError(t, err)
	require.Empty(t, left)

	made = p.commit(paths...)
	require.Empty(t, made.Hash, "nothing is left to commit")
	found, err := p.open().Find(t.Context(), p.git("rev-parse", "HEAD^"), "m-20260101-1", "a/task")
	require.NoError(t, err)
	require.Equal(t, p.git("rev-parse", "HEAD"), found)
	found, err = p.open().Find(t.Context(), "HEAD", "m-20260101-1", "a/task")
	require.NoError(t, err)
	require.Empty(t, found)
}

// changes are the files of a commit, without the names of objects.
func (p *project) changes(commit string) string {
	var lines []string
	for line := range strings.SplitSeq(p.git("diff-tree", "-r", "--no-renames", "--no-commit-id", "--root", commit), "\n") {
		words := strings.SplitN(line, " ", 5)
		lines = append(lines, words[0]+" "+words[1]+" "+words[4])
	}
	return strings.Join(lines, "\n")
}

// What a person staged stays staged, also of a file that a hook adds to the commit.
func TestWhatIsStagedStaysStaged(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.write("theirs", "staged\n")
	p.git("add", "theirs")
	p.write("theirs", "newer\n")
	p.hook("pre-commit", "git add theirs")
	p.write("kept", "the task's\n")
	made := p.commit("kept")
	require.Equal(t, []string{"theirs"}, made.More)
	require.Equal(t, "newer", p.git("show", "HEAD:theirs"))
	require.Equal(t, "MM theirs", p.status())
	require.Equal(t, "staged", p.git("show", ":theirs"))
	require.Empty(t, made.Unstaged)
}

// What an agent staged on the way is not staged after the commit: the person's next one would
// take back what is committed.
func TestWhatTheAgentStagedIsNotStaged(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.write("sub/kept", "on the way\n")
	p.write("sub/same", "the same\n")
	p.git("add", "sub")
	blob := p.git("rev-parse", ":sub/kept")
	p.write("sub/kept", "in the end\n")
	top := p.dir
	p.dir = filepath.Join(top, "sub")
	made := p.commit("kept", "same")
	require.Equal(t, []string{"kept (" + blob[:10] + ")"}, made.Unstaged)
	require.Empty(t, p.status())
	require.Equal(t, "on the way", p.git("cat-file", "blob", blob[:10]))
}

// After a kill between the commit and the refresh of the index, what was staged on the way is not
// staged any more. What differs from the commit in the work tree or in HEAD is a person's.
func TestRefreshAfterAKill(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	names := []string{"same", "half", "exec", "gone", "edited", "moved"}
	for _, name := range names {
		p.write(name, "0\n")
	}
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "second")
	for _, name := range names {
		p.write(name, "on the way\n")
	}
	p.git("add", "half", "exec", "gone", "edited", "moved")
	blob := p.git("rev-parse", ":half")[:10]
	for _, name := range names {
		p.write(name, "in the end\n")
	}
	p.remove("gone")
	index, err := os.ReadFile(filepath.Join(p.dir, ".git", "index"))
	require.NoError(t, err)
	made := p.commit(names...)
	p.write("moved", "the person's\n")
	p.git("commit", "-q", "-m", "the person's", "moved")
	p.write("moved", "in the end\n")
	p.write("edited", "later\n")
	require.NoError(t, os.Chmod(filepath.Join(p.dir, "exec"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(p.dir, ".git", "index"), index, 0o644))

	unstaged, err := p.open().Refresh(t.Context(), made.Hash)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"half (" + blob + ")", "gone (" + blob + ")"}, unstaged)
	require.Equal(t, "MM edited\nMM exec\nMM moved", p.status())
}

// A hook that hangs after the commit does not make it unmade.
func TestAHookAfterTheCommitHangs(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.hook("post-commit", "cat '"+fifo(t)+"'")
	p.write("kept", "changed\n")
	r := p.open()
	head, err := r.Head(t.Context())
	require.NoError(t, err)
	made, err := r.CommitFiles(t.Context(), repo.Commit{Head: head, Paths: []string{"kept"}, Message: "a task", Session: "m-20260101-1", Task: "a/task", Limit: 5 * time.Second})
	require.NoError(t, err)
	require.ErrorContains(t, made.Late, "and was killed")
	require.Equal(t, p.git("rev-parse", "HEAD"), made.Hash)
	require.NotEqual(t, head.Commit, made.Hash)
	require.Empty(t, p.status())
}

func TestTheFirstCommit(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.git("checkout", "-q", "--orphan", "new")
	p.git("rm", "-q", "--cached", "kept")
	p.write("staged", "staged\n")
	p.git("add", "staged")
	p.write("a", "a\n")
	made := p.commit("a")
	require.Equal(t, ":000000 100644 A\ta", p.changes("HEAD"))
	require.Equal(t, made.Hash, p.git("rev-list", "HEAD"))
	require.Equal(t, "A  staged\n?? kept", p.status())
}

// A folder of the repository, and a linked work tree.
func TestCommitElsewhere(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	top := p.dir
	p.git("worktree", "add", "-q", "-b", "linked", "../linked")
	p.dir = filepath.Join(p.dir, "..", "linked")
	p.write("sub/a", "a\n")
	p.write("sub/theirs", "theirs\n")
	p.write("theirs", "theirs\n")
	p.dir = filepath.Join(p.dir, "sub")
	differing, err := p.open().Differing(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"a", "theirs"}, differing)
	p.commit("a", "../outside")
	require.Equal(t, ":000000 100644 A\tsub/a", p.changes("linked"))
	require.Equal(t, "?? sub/theirs\n?? theirs", p.status())
	p.dir = top
	require.Equal(t, "first", p.git("log", "--format=%s", "main"))
	require.Empty(t, p.status())
}

func TestHooksOfACommit(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	log := filepath.Join(t.TempDir(), "log")
	for _, name := range []string{"pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"} {
		p.hook(name, "echo "+name+" >>'"+log+"'")
	}
	p.hook("pre-commit", "echo pre-commit >>'"+log+"'; git diff --cached --name-only >>'"+log+"'; echo formatted >>kept; echo new >by-hook; git add kept by-hook")
	p.write("kept", "kept, changed\n")
	made := p.commit("kept")
	data, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, "pre-commit\nkept\nprepare-commit-msg\ncommit-msg\npost-commit\n", string(data))
	require.Equal(t, []string{"by-hook"}, made.More)
	require.True(t, made.Rewritten)
	require.Equal(t, "kept, changed\nformatted", p.git("show", "HEAD:kept"))
	require.Empty(t, p.status())

	p.hook("commit-msg", "echo 'a word of the hook'; exit 1")
	p.hook("pre-commit", "")
	p.write("kept", "more\n")
	_, err = p.tryCommit("kept")
	require.ErrorContains(t, err, "a word of the hook")
	require.Equal(t, made.Hash, p.git("rev-parse", "HEAD"))
	require.Equal(t, "M kept", p.status(), "nothing is staged")

	p.hook("commit-msg", "echo only this >\"$1\"")
	made = p.commit("kept")
	require.Equal(t, p.git("rev-parse", "HEAD"), made.Hash, "without its trailers")
}

func TestSigning(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.git("config", "commit.gpgsign", "true")
	sign := filepath.Join(t.TempDir(), "sign")
	p.write("../sign", "#!/bin/sh\ncat >/dev/null\nprintf '\\n[GNUPG:] SIG_CREATED ' >&2\necho signature\n")
	require.NoError(t, os.Rename(filepath.Join(p.dir, "..", "sign"), sign))
	require.NoError(t, os.Chmod(sign, 0o755))
	p.git("config", "gpg.program", sign)
	p.write("kept", "1\n")
	p.commit("kept")
	require.Contains(t, p.git("cat-file", "commit", "HEAD"), "gpgsig signature")
	p.git("config", "gpg.program", "false")
	p.write("kept", "2\n")
	_, err := p.tryCommit("kept")
	require.ErrorContains(t, err, "gpg failed to sign the data")
}

// A file that is changed to the same size within the second in which the index was written is
// committed. Git, which need not compare fractions of a second, knows such a one by the time of the index.
func TestAChangeWithinASecondIsCommitted(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.git("config", "core.trustctime", "false") // this time cannot be set
	second := time.Now().Add(-time.Hour).Truncate(time.Second)
	at := func(name string) { require.NoError(t, os.Chtimes(filepath.Join(p.dir, name), second, second)) }
	p.write("kept", "1\n")
	at("kept")
	first := p.commit("kept")
	p.write("kept", "2\n")
	at("kept")
	at(".git/index")
	require.NotEqual(t, first.Hash, p.commit("kept").Hash)
	require.Equal(t, "2", p.git("show", "HEAD:kept"))
	require.Empty(t, p.status())
}

func TestTheIndexIsLocked(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.write("kept", "changed\n")
	p.write(".git/index.lock", "")
	made := p.commit("kept")
	require.ErrorContains(t, made.Index, "index.lock")
	require.Equal(t, made.Hash, p.git("rev-parse", "HEAD"))

	// An editor looks at the files and ends.
	p.write("kept", "changed again\n")
	lock := filepath.Join(p.dir, ".git", "index.lock")
	go func() {
		for head := made.Hash; head == made.Hash; {
			out, _ := p.try("rev-parse", "HEAD")
			head = out
		}
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // as long as git of an editor takes
		_ = os.Remove(lock)
	}()
	require.NoError(t, p.commit("kept").Index)
	require.Empty(t, p.status())
}

// HEAD moves between the index and the commit, which would undo what it moved to.
func TestHeadMovesMeanwhile(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	bin := t.TempDir()
	git, err := exec.LookPath("git")
	require.NoError(t, err)
	p.write("../git", "#!/bin/sh\nif [ \"$1\" = commit ] && [ ! -e '"+bin+"/done' ]; then\n\t: >'"+bin+"/done'\n\techo theirs >theirs; env -u GIT_INDEX_FILE "+git+" add theirs; env -u GIT_INDEX_FILE "+git+" commit -q -m theirs\nfi\nexec "+git+" \"$@\"\n")
	require.NoError(t, os.Rename(filepath.Join(p.dir, "..", "git"), filepath.Join(bin, "git")))
	require.NoError(t, os.Chmod(filepath.Join(bin, "git"), 0o755))
	p.write("kept", "changed\n")
	p.environ = append(p.environ, "PATH="+bin+":"+os.Getenv("PATH"))
	p.commit("kept")
	require.Equal(t, "# a task\ntheirs\nfirst", p.git("log", "--format=%s"))
	require.Equal(t, ":100644 100644 M\tkept", p.changes("HEAD"))
	require.Equal(t, "theirs", p.git("show", "HEAD:theirs"))
	require.Empty(t, p.status())
}

func TestUnfinished(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	require.NoError(t, p.open().CanCommit(t.Context()))
	p.git("checkout", "-q", "-b", "other")
	p.write("kept", "other\n")
	p.git("commit", "-q", "-a", "-m", "other")
	p.git("checkout", "-q", "main")
	p.write("kept", "main\n")
	p.git("commit", "-q", "-a", "-m", "main")
	for what, begin := range map[string][]string{
		"a merge": {"merge", "other"}, "a rebase": {"rebase", "other"}, "a cherry-pick": {"cherry-pick", "other"}, "a bisect": {"bisect", "start"},
	} {
		_, _ = p.try(begin...)
		require.Equal(t, what, p.open().Unfinished())
		require.ErrorContains(t, p.open().CanCommit(t.Context()), what+" is in progress")
		p.write("new", what)
		_, err := p.tryCommit("new")
		require.ErrorContains(t, err, what)
		p.remove("new")
		_, err = p.try(begin[0], "--abort")
		if err != nil {
			p.git(begin[0], "reset")
		}
		require.Empty(t, p.open().Unfinished())
	}
	p.environ = append(p.environ, "GIT_COMMITTER_EMAIL=", "GIT_COMMITTER_NAME=", "GIT_CONFIG_GLOBAL=/dev/null")
	require.Error(t, p.open().CanCommit(t.Context()), "nobody is named")
}

// How git converts, compares and leaves out files is the person's configuration.
func TestContentsAreConverted(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.git("config", "core.autocrlf", "true")
	p.git("config", "filter.upper.clean", "tr a-z A-Z")
	p.git("config", "filter.upper.smudge", "tr A-Z a-z")
	p.write(".gitattributes", "*.up filter=upper\n")
	p.write("a.up", "text\r\n")
	p.commit("a.up", ".gitattributes")
	require.Equal(t, "TEXT", p.git("cat-file", "blob", "HEAD:a.up"))
	require.Empty(t, p.status())

	p.git("update-index", "--assume-unchanged", "kept")
	p.write("kept", "hidden\n")
	require.Empty(t, p.commit("kept").Hash, "git was told that it does not change")

	p.write("sparse/in/file", "1\n")
	p.write("sparse/out/file", "1\n")
	p.commit("sparse/in/file", "sparse/out/file")
	p.git("sparse-checkout", "set", "sparse/in")
	p.write("sparse/in/file", "2\n")
	p.commit("sparse/in/file", "sparse/out/file")
	require.Equal(t, ":100644 100644 M\tsparse/in/file", p.changes("HEAD"), "what is not checked out is not deleted")

	p.git("config", "filter.upper.clean", "false")
	p.git("config", "filter.upper.required", "true")
	p.write("a.up", "more\n")
	_, err := p.tryCommit("a.up")
	require.ErrorContains(t, err, "clean filter 'upper' failed")
}

func TestSwitch(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.write("kept", "dirty\n")
	r := p.open()
	require.NoError(t, r.Switch(t.Context(), "lopen/m-1"))
	require.NoError(t, r.Switch(t.Context(), "lopen/m-1"))
	head, err := r.Head(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{p.git("rev-parse", "main"), "lopen/m-1"}, []string{head.Commit, head.Branch})
	require.Equal(t, "M kept", p.status())

	p.commit("kept")
	p.git("checkout", "-q", "main")
	require.ErrorContains(t, r.Switch(t.Context(), "lopen/m-1"), "type git switch lopen/m-1")
	p.git("merge", "-q", "lopen/m-1")
	p.git("commit", "-q", "--allow-empty", "-m", "on")
	require.NoError(t, r.Switch(t.Context(), "lopen/m-1"))
	require.Equal(t, p.git("rev-parse", "main"), p.git("rev-parse", "lopen/m-1"))

	p.git("checkout", "-q", "--detach")
	head, err = r.Head(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{p.git("rev-parse", "main"), ""}, []string{head.Commit, head.Branch})
	p.git("branch", "lopen/taken/by")
	require.ErrorContains(t, r.Switch(t.Context(), "lopen/taken"), "lopen/taken")

	p.git("checkout", "-q", "--orphan", "new")
	head, err = r.Head(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"", "new"}, []string{head.Commit, head.Branch})
	require.NoError(t, r.Switch(t.Context(), "lopen/m-2"))
	require.Equal(t, "lopen/m-2", p.git("branch", "--show-current"))
}

// The commits that an agent made itself.
func TestSince(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	base := p.git("rev-parse", "HEAD")
	p.write("sub/a", "a\n")
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "a")
	p.write("other", "b\n")
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "b")
	p.dir = filepath.Join(p.dir, "sub")
	r := p.open()
	for commit, has := range map[string]bool{base: true, "HEAD": true, p.git("commit-tree", "-m", "other", "HEAD^{tree}"): false} {
		have, err := r.Has(t.Context(), commit)
		require.NoError(t, err)
		require.Equal(t, has, have)
	}
	of, err := r.Since(t.Context(), base, []string{"a", "nothing"})
	require.NoError(t, err)
	require.Equal(t, []string{p.git("rev-parse", "HEAD^")}, of)
	of, err = r.Since(t.Context(), "", []string{"a", "../other"})
	require.NoError(t, err)
	require.Len(t, of, 2)
}

// TestSubmoduleIsNotCommitted changes a submodule: its entry stays as HEAD has it, and the work tree's index too.
func TestSubmoduleIsNotCommitted(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.write("sub/file", "1\n")
	p.git("init", "-q", "sub")
	p.git("-C", "sub", "add", "-A")
	p.git("-C", "sub", "commit", "-qm", "one")
	p.git("add", "sub")
	p.git("commit", "-qm", "sub")
	entry := p.git("ls-tree", "HEAD", "sub")
	require.Contains(t, entry, "160000 commit")
	p.write("sub/file", "2\n")
	p.git("-C", "sub", "commit", "-qam", "two")
	p.write("new", "")
	made := p.commit("sub", "new")
	require.Equal(t, []string{"sub"}, made.Submodules)
	require.Equal(t, entry, p.git("ls-tree", "HEAD", "sub"))
	require.Equal(t, "new", p.git("show", "--format=", "--name-only", "HEAD"))
	require.Equal(t, "M sub", strings.TrimSpace(p.status()))
}
