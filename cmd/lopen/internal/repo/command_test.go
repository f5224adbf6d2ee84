//go:build unix

package repo_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/repo"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.write("a/b/c", "c")
	r, err := repo.Open(t.Context(), filepath.Join(p.dir, "a", "b"), p.environ)
	require.NoError(t, err)
	git := filepath.Join(p.dir, ".git")
	require.Equal(t, []string{p.dir, git, git, "a/b/"}, []string{r.Top, r.Dir, r.Common, r.Prefix})

	linked := filepath.Join(p.dir, "..", "linked work tree")
	p.git("worktree", "add", "-q", "-b", "linked", linked)
	r, err = repo.Open(t.Context(), linked, p.environ)
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Clean(linked), git, ""}, []string{r.Top, r.Common, r.Prefix})
	require.Equal(t, filepath.Join(git, "worktrees"), filepath.Dir(r.Dir))

	for name, dir := range map[string]string{"no repository": t.TempDir(), "the git directory itself": git} {
		_, err = repo.Open(t.Context(), dir, p.environ)
		require.ErrorIs(t, err, repo.ErrNone, name)
	}
	_, err = repo.Open(t.Context(), p.dir, append(p.environ, "PATH="+t.TempDir()))
	require.ErrorIs(t, err, repo.ErrNone)
	require.ErrorContains(t, err, "install git")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = repo.Open(ctx, p.dir, p.environ)
	require.ErrorIs(t, err, context.Canceled)
}

// lopen may run under git itself, in a hook or a rebase of another repository.
func TestAnotherRepositoryIsNotUsed(t *testing.T) {
	t.Parallel()
	p, other := newProject(t), newProject(t)
	p.environ = append(p.environ, "GIT_DIR="+other.dir+"/.git", "GIT_WORK_TREE="+other.dir, "GIT_INDEX_FILE="+other.dir+"/.git/index", "GIT_PREFIX=x/",
		"GIT_OBJECT_DIRECTORY=/nowhere", "GIT_CONFIG_PARAMETERS='core.bare'='true'", "GIT_LITERAL_PATHSPECS=1", "GIT_TERMINAL_PROMPT=1", "GPG_TTY=/dev/tty",
		"GIT_AUTHOR_NAME=Kept", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=a.kept", "GIT_CONFIG_VALUE_0=kept")
	r := p.open()
	require.Equal(t, p.dir, r.Top)
	p.write("../home/.gitconfig", "[alias]\n\tenv = !env\n")
	out, err := r.Git(t.Context(), repo.Command{Args: []string{"env"}})
	require.NoError(t, err)
	var have []string
	for line := range strings.SplitSeq(string(out), "\n") {
		name, _, _ := strings.Cut(line, "=")
		if strings.HasPrefix(name, "GIT_") && name != "GIT_EXEC_PATH" || strings.Contains(name, "ASKPASS") || name == "GPG_TTY" || name == "LOPEN_KEEPER" {
			have = append(have, line)
		}
	}
	require.ElementsMatch(t, []string{
		"GIT_ASKPASS=false", "SSH_ASKPASS=false", "SSH_ASKPASS_REQUIRE=never", "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=true",
		"GIT_MERGE_AUTOEDIT=no", "GIT_PAGER=cat", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Kept",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=a.kept", "GIT_CONFIG_VALUE_0=kept", "GIT_PREFIX=",
	}, have)
}

func TestGitHasNoTerminal(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	seen := filepath.Join(t.TempDir(), "seen")
	p.hook("pre-commit", `exec >'`+seen+`'; (: </dev/tty) 2>/dev/null && echo /dev/tty; [ -t 2 ] && echo stderr; echo "stdin: $(cat)"`)
	p.write("kept", "changed")
	_, err := p.open().Git(t.Context(), repo.Command{Args: []string{"commit", "-q", "-a", "-m", "x"}})
	require.NoError(t, err)
	said, err := os.ReadFile(seen)
	require.NoError(t, err)
	require.Equal(t, "stdin: \n", string(said))
	out, err := p.open().Git(t.Context(), repo.Command{Args: []string{"commit", "--amend", "--no-verify"}, Limit: 10 * time.Second})
	require.NoError(t, err, "the editor gives the text back as it is")
	require.Contains(t, string(out), "x")
}

func TestGitFails(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	r := p.open()
	_, err := r.Git(t.Context(), repo.Command{Args: []string{"rev-parse", "--verify", "nothing"}})
	require.Equal(t, 128, repo.ExitOf(err))
	require.ErrorContains(t, err, "git rev-parse --verify nothing: exit 128; fatal: Needed a single revision")

	out, err := r.Git(t.Context(), repo.Command{Args: []string{"hash-object", "--stdin"}, Input: []byte("text")})
	require.NoError(t, err)
	require.Equal(t, "f3a34851d44d6b97c90fbb99dd3d18c261b9a237\n", string(out))
	out, err = r.Git(t.Context(), repo.Command{Args: []string{"write-tree"}, Index: filepath.Join(t.TempDir(), "index")})
	require.NoError(t, err)
	require.Equal(t, "4b825dc642cb6eb9a060e54bf8d69288fbee4904\n", string(out), "the tree of an empty index")

	p.hook("pre-commit", "yes 'a long line' | head -c 9000; echo the end; exit 1")
	p.write("kept", "changed")
	_, err = r.Git(t.Context(), repo.Command{Args: []string{"commit", "-a", "-m", "x"}})
	require.Equal(t, 1, repo.ExitOf(err))
	require.ErrorContains(t, err, "the end")
	require.Less(t, len(err.Error()), 3000)

	_, err = r.Git(t.Context(), repo.Command{Args: []string{"-c", "alias.much=!head -c 70000000 /dev/zero", "much"}})
	require.ErrorContains(t, err, "more than 67108864 bytes")
	require.Equal(t, -1, repo.ExitOf(err))
}

// A hook that hangs is ended with all that it started in its group.
func TestAHookThatHangs(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	seen := filepath.Join(t.TempDir(), "seen")
	p.hook("pre-commit", "trap '' TERM; echo at work; mkfifo '"+seen+"'; cat '"+seen+"' & cat '"+seen+"'")
	p.write("kept", "changed")
	r := p.open()
	_, err := r.Git(t.Context(), repo.Command{Args: []string{"commit", "-a", "-m", "x"}, Limit: 2 * time.Second})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "did not end within 2s and was killed")
	require.ErrorContains(t, err, "at work")
	require.Equal(t, "first", p.git("log", "--format=%s"))
	_, err = os.OpenFile(seen, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	require.ErrorIs(t, err, syscall.ENXIO, "nobody reads it any more")

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.NoError(t, os.Remove(seen))
	_ = os.Remove(filepath.Join(p.dir, ".git", "index.lock"))
	_, err = r.Git(ctx, repo.Command{Args: []string{"commit", "-a", "-m", "x"}})
	require.Equal(t, context.DeadlineExceeded, err, "the caller's own limit is the caller's error")
}

// A lopen that is killed leaves no git and no hook behind, which would commit later, and no lock of
// git's: HEAD.lock is there when the hook runs.
func TestGitEndsWithUs(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	reads := fifo(t)
	p.hook("reference-transaction", "trap '' TERM; [ ! -e .git/HEAD.lock ] || cat '"+reads+"'")
	p.killedInCommit(reads)
	require.Equal(t, "first", p.git("log", "--format=%s"))
	require.NoFileExists(t, filepath.Join(p.dir, ".git", "HEAD.lock"))
	p.hook("reference-transaction", ":")
	p.git("commit", "-qam", "second")
}

// What ignores the signal is killed.
func TestGitThatIgnoresASignalEndsWithUs(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	path, err := exec.LookPath("git")
	require.NoError(t, err)
	bin, reads := t.TempDir(), fifo(t)
	script := "#!/bin/sh\n[ \"$1\" = commit ] || exec '" + path + "' \"$@\"\ntrap '' TERM\nexec cat '" + reads + "'\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o700))
	p.killedInCommit(reads, "PATH="+bin+":"+os.Getenv("PATH"))
}

func fifo(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	return path
}

// killedInCommit kills a process that commits once something reads the FIFO, and requires that the
// reader ends.
func (p *project) killedInCommit(reads string, env ...string) {
	p.t.Helper()
	p.write("kept", "changed")
	exe, err := os.Executable()
	require.NoError(p.t, err)
	lopen := exec.Command(exe)
	lopen.Dir, lopen.Env = p.dir, slices.Concat(p.environ, []string{commitEnv + "=1"}, env)
	require.NoError(p.t, lopen.Start())
	pipe, err := os.OpenFile(reads, os.O_WRONLY, 0)
	require.NoError(p.t, err)
	defer pipe.Close()
	require.NoError(p.t, lopen.Process.Kill())
	_ = lopen.Wait()
	require.True(p.t, unread(p.t, pipe), "somebody still reads")
}

// unread waits up to ten seconds until nobody reads a pipe any more.
func unread(t *testing.T, pipe *os.File) bool {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pipe.Fd())}}, 10_000)
		if !errors.Is(err, unix.EINTR) {
			require.NoError(t, err)
			return n == 1
		}
	}
}

// The lock under which a work tree is made is also that of the git which makes it: that of a lopen that
// was killed may still take its half away. Here a hook leaves a program that has it, for which nobody
// waits for ever.
func TestMakeWorktreeWaits(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	reads := fifo(t)
	p.hook("post-checkout", "cat '"+reads+"' >/dev/null 2>&1 &")
	r := p.open()
	base, err := r.Commit(t.Context(), "HEAD")
	require.NoError(t, err)
	trees := filepath.Join(filepath.Dir(p.dir), "trees")
	made := func(name string, limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return r.MakeWorktree(ctx, filepath.Join(trees, name), "lopen/"+name, base)
	}
	require.NoError(t, made("s", time.Minute))
	left, err := os.OpenFile(reads, os.O_WRONLY, 0) // returns when the program reads
	require.NoError(t, err)
	defer left.Close()
	p.hook("post-checkout", ":")
	require.ErrorIs(t, made("late", 200*time.Millisecond), context.DeadlineExceeded)
	require.NoDirExists(t, filepath.Join(trees, "late"))
	require.NoError(t, made("late", time.Minute), "it goes on in the end")
	require.NoError(t, left.Close())
	require.NoError(t, made("free", time.Minute))
}
