package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRewindOfAnImmutableFile is refused and changes nothing, and says what to do. With --force it
// changes everything else.
func TestRewindOfAnImmutableFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("TODO.md", "- [ ] one\n- [ ] two\n")
	for _, name := range []string{"a", "m", "z"} {
		write(name, "1")
	}
	lopen := in(t, dir)
	lopen(0, "plan", "create", "mod", "--from", "TODO.md")
	lopen(2, "run", "mod", "--max-iterations", "1", "--", "sh", "-c", "for f in a m z; do printf 2 > $f; done")
	if out, err := exec.Command("chattr", "+i", filepath.Join(dir, "m")).CombinedOutput(); err != nil {
		t.Skipf("no file can be made immutable here: %s", out)
	}
	allow := func() { require.NoError(t, exec.Command("chattr", "-i", filepath.Join(dir, "m")).Run()) }
	t.Cleanup(allow)
	require.Equal(t, "2 2 2", contents(t, dir, "a", "m", "z"))

	require.Contains(t, lopen(14, "checkpoint", "rewind", "before:one", "--dry-run"), "no file was changed: rewind "+filepath.Join(dir, "m")+": it is immutable")
	require.Contains(t, lopen(0, "checkpoint", "rewind", "before:one", "--dry-run", "--force"), "keep      m (the system does not allow it: it is immutable")
	out := lopen(14, "checkpoint", "rewind", "before:one", "--yes")
	require.Contains(t, out, "no file was changed: rewind "+filepath.Join(dir, "m")+": it is immutable; chattr -i "+filepath.Join(dir, "m"))
	require.NotContains(t, out, "make the folder writable", "one advice is enough")
	require.Contains(t, out, "--force leaves what may not be changed as it is and does the rest")
	require.Equal(t, "2 2 2", contents(t, dir, "a", "m", "z"))
	lopen(0, "checkpoint", "create") // the session is free

	out = lopen(0, "checkpoint", "rewind", "before:one", "--yes", "--force")
	require.Contains(t, out, "keep      m (the system does not allow it: it is immutable; chattr -i")
	require.Equal(t, "1 2 1", contents(t, dir, "a", "m", "z"))
	require.Contains(t, lopen(0, "session", "log"), "kept, the system does not allow it: it is immutable: m")
	allow()
	lopen(0, "undo", "--yes")
	require.Equal(t, "2 2 2", contents(t, dir, "a", "m", "z"))
}

// TestNightWithAMountedFile has a task write through a file that is a mount, and fail for good.
// Its other files are set back, the mount is kept and named, and the other tasks run.
func TestNightWithAMountedFile(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("mounting takes root")
	}
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.WriteFile(outside, []byte("1"), 0o600))
	for name, text := range map[string]string{"TODO.md": "- [ ] one\n- [ ] two\n- [ ] three\n", "a": "1", "config": "x"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	in(t, dir)(0, "plan", "create", "mod", "--from", "TODO.md")
	const work = "case $LOPEN_TASK_ID in *one) printf 2 > config; printf broken > a;; *) : > ${LOPEN_TASK_ID##*/};; esac"
	cmd := command(t, dir, "run", "mod", "--unattended", "--agent", "none", "--failure-threshold", "1", "--check", "! grep -q broken a", "--", "sh", "-c", work)
	// A mount namespace of its own: the mount goes with the command.
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip("unshare is not installed")
	}
	cmd.Args = append([]string{unshare, "-m", "sh", "-c", `mount --bind "$0" config && exec "$@"`, outside, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = unshare
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s", out)
	require.Equal(t, 2, exit.ExitCode(), "%s", out)
	require.Contains(t, string(out), "kept as one left them, because the system does not allow it: config (it is a mount point; umount "+filepath.Join(dir, "config"))
	require.Equal(t, "1", contents(t, dir, "a"))
	require.FileExists(t, filepath.Join(dir, "two"))
	require.FileExists(t, filepath.Join(dir, "three"))
	require.Contains(t, strings.Join(strings.Fields(in(t, dir)(0, "report")), " "),
		"but for: config (the system does not allow it: it is a mount point)")
}

func contents(t *testing.T, dir string, names ...string) string {
	t.Helper()
	var all []string
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			data = []byte("-")
		}
		all = append(all, string(data))
	}
	return strings.Join(all, " ")
}

// in returns what runs the command in a folder and requires an exit code.
func in(t *testing.T, dir string) func(code int, args ...string) string {
	return func(code int, args ...string) string {
		t.Helper()
		cmd := command(t, dir, args...)
		out, _ := cmd.CombinedOutput()
		require.Equal(t, code, cmd.ProcessState.ExitCode(), "%s: %s", args, out)
		return string(out)
	}
}

// unfinished begins a rewind of a to 1 that cannot be finished before the plan may be changed.
func unfinished(t *testing.T, dir string) (lopen func(code int, args ...string) string, chattr func(flag string) error) {
	t.Helper()
	for name, text := range map[string]string{"TODO.md": "- [ ] one\n- [ ] two\n", "a": "1"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	lopen = in(t, dir)
	lopen(0, "plan", "create", "mod", "--from", "TODO.md")
	lopen(2, "run", "mod", "--max-iterations", "1", "--", "sh", "-c", "printf 2 > a")
	plans, err := filepath.Glob(filepath.Join(dir, ".lopen", "*", "mod*", "plan.md"))
	require.NoError(t, err)
	require.Len(t, plans, 1)
	chattr = func(flag string) error { return exec.Command("chattr", flag, plans[0]).Run() }
	if err := chattr("+i"); err != nil {
		t.Skipf("no file can be made immutable here: %v", err)
	}
	t.Cleanup(func() { _ = chattr("-i") })
	return lopen, chattr
}

// TestRewindIsGivenAgain finishes a rewind that was cut off with the command that says so: what a
// person wrote since stays, although that command has --force.
func TestRewindIsGivenAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lopen, chattr := unfinished(t, dir)
	out := lopen(14, "checkpoint", "rewind", "before:one", "--yes", "--force")
	require.Equal(t, "1", contents(t, dir, "a"))
	require.NoError(t, chattr("-i"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("a person's"), 0o600))
	_, command, found := strings.Cut(out, "as it is: lopen ")
	require.True(t, found, out)
	command, _, _ = strings.Cut(command, ";")
	require.Contains(t, command, "--force --yes")
	require.Contains(t, lopen(0, strings.Fields(command)...), "keep      a (changed since the plan was made)")
	require.Equal(t, "a person's", contents(t, dir, "a"))
	lopen(0, "checkpoint", "rewind", "before:one", "--force", "--yes")
	require.Equal(t, "1", contents(t, dir, "a"), "it is finished: this is another one")
}

// TestRewindThatIsNotFinished is named by all that look, with the commands that finish it and give
// it up. Giving it up changes no file, says how far it came, and frees the session.
func TestRewindThatIsNotFinished(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lopen, chattr := unfinished(t, dir)

	// Its box cannot be unticked, so that the files go back to what they were.
	out := lopen(14, "checkpoint", "rewind", "before:one", "--yes")
	require.Contains(t, out, "what the rewind had changed was taken back")
	require.Equal(t, "2", contents(t, dir, "a"))
	require.NotContains(t, lopen(0), "rewind")

	// With --force it goes on as soon as it can.
	out = lopen(14, "checkpoint", "rewind", "before:one", "--yes", "--force")
	require.Equal(t, "1", contents(t, dir, "a"))
	giveUp := "lopen checkpoint rewind --give-up --session mod-"
	require.Contains(t, out, giveUp)
	for _, look := range []struct {
		code int
		args []string
	}{{0, nil}, {3, []string{"doctor"}}, {0, []string{"session", "list"}}, {0, []string{"session", "verify"}}, {14, []string{"checkpoint", "create"}}} {
		out := lopen(look.code, look.args...)
		require.Contains(t, out, "rewind", "%s", look.args)
		require.Contains(t, out, giveUp, "%s", look.args)
		require.Contains(t, out, "lopen checkpoint create --session mod-", "%s", look.args)
	}
	lopen(64, "checkpoint", "rewind", "before:one", "--give-up")
	out = lopen(0, "checkpoint", "rewind", "--give-up")
	require.Contains(t, out, "rewound     a\n")
	require.Contains(t, out, "is given up; no file was changed")
	require.Equal(t, "1", contents(t, dir, "a"))
	require.NotContains(t, lopen(0), "rewind")
	require.NoError(t, chattr("-i"))
	lopen(0, "checkpoint", "create")
	lopen(0, "undo", "--yes", "--scope", "files")
	require.Equal(t, "2", contents(t, dir, "a"))
}
