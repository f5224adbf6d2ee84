//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// nobody is who may do only what modes allow: root may do anything.
const nobody = 65534

// asNobody returns a project of nobody's, what runs the command in it and requires an
// exit code, and the command before it is started.
func asNobody(t *testing.T) (dir string, lopen func(code int, args ...string) string, process func(args ...string) *exec.Cmd) {
	t.Helper()
	base, err := os.MkdirTemp("", "denied") // t.TempDir lets nobody in
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(base)) })
	require.NoError(t, os.Chmod(base, 0o755))
	self, err := os.Executable()
	require.NoError(t, err)
	bin := filepath.Join(base, "lopen")
	// By a process of its own: what another test starts has the files of this process open
	// until its exec, and a file that is open for writing cannot be executed.
	out, err := exec.Command("cp", self, bin).CombinedOutput()
	require.NoError(t, err, "%s", out)
	dir = filepath.Join(base, "project")
	for _, name := range []string{dir, filepath.Join(dir, "sub"), filepath.Join(base, "tmp")} {
		require.NoError(t, os.Mkdir(name, 0o755))
		if os.Getuid() == 0 {
			require.NoError(t, os.Chown(name, nobody, nobody))
		}
	}
	process = func(args ...string) *exec.Cmd {
		cmd := command(t, dir, args...)
		cmd.Path = bin
		cmd.Env = append(cmd.Env, "TMPDIR="+filepath.Join(base, "tmp"))
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		return cmd
	}
	return dir, func(code int, args ...string) string {
		t.Helper()
		out, err := process(args...).CombinedOutput()
		if code == 0 {
			require.NoError(t, err, "%s", out)
		} else {
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "%s", out)
			require.Equal(t, code, exit.ExitCode(), "%s", out)
		}
		return string(out)
	}, process
}

// TestRewindWithoutPermission rewinds what tasks did that left a folder read-only: the
// rewind lets itself in. Where the folder belongs to somebody else nothing is changed and
// nobody held up, or with --force all that may be.
func TestRewindWithoutPermission(t *testing.T) {
	t.Parallel()
	oneByOne(t)
	dir, lopen, _ := asNobody(t)
	files := func() string {
		var all []string
		for _, name := range []string{"g", "sub/f", "sub/one", "sub/two"} {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				data = []byte("-")
			}
			all = append(all, strings.TrimSpace(string(data)))
		}
		info, err := os.Stat(filepath.Join(dir, "sub"))
		require.NoError(t, err)
		return strings.Join(append(all, info.Mode().Perm().String()), " ")
	}
	for name, text := range map[string]string{"TODO.md": "- [ ] one\n- [ ] two\n", "g": "0", "sub/f": "0"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		if os.Getuid() == 0 {
			require.NoError(t, os.Chown(filepath.Join(dir, name), nobody, nobody))
		}
	}
	lopen(0, "plan", "create", "m", "--from", "TODO.md")
	sh := func(code int, script string) {
		lopen(code, "run", "m", "--max-iterations", "1", "--", "sh", "-c", script)
	}
	work := "chmod 755 sub; echo $LOPEN_TASK >sub/f; echo $LOPEN_TASK >g; echo $LOPEN_TASK >sub/$LOPEN_TASK; chmod 555 sub"
	sh(2, work)
	sh(0, work)
	require.Equal(t, "two two one two -r-xr-xr-x", files())

	lopen(0, "checkpoint", "rewind", "before:one", "--yes")
	require.Equal(t, "0 0 - - -rwxr-xr-x", files())
	lopen(0, "undo", "--yes")
	require.Equal(t, "two two one two -r-xr-xr-x", files())

	// A folder that keeps its mode is opened for the change, and closed again.
	lopen(0, "checkpoint", "rewind", "before:two", "--yes")
	require.Equal(t, "one one one - -r-xr-xr-x", files())
	lopen(0, "undo", "--yes")
	require.Equal(t, "two two one two -r-xr-xr-x", files())

	if os.Getuid() != 0 {
		return // who owns a folder may open it
	}
	require.NoError(t, os.Chown(filepath.Join(dir, "sub"), 0, 0))
	out := lopen(14, "checkpoint", "rewind", "before:two", "--yes")
	require.Contains(t, out, "no file was changed: rewind "+filepath.Join(dir, "sub"))
	require.Contains(t, out, "permission denied")
	require.Equal(t, "two two one two -r-xr-xr-x", files())
	lopen(0, "checkpoint", "create") // the session is free

	out = lopen(0, "checkpoint", "rewind", "before:two", "--yes", "--force")
	require.Contains(t, out, "keep      sub/f (the system does not allow it: permission denied)")
	require.Contains(t, out, "keep      sub/two (the system does not allow it: permission denied)")
	require.Equal(t, "one two one two -r-xr-xr-x", files())
	lopen(0, "undo", "--yes")
	require.NoError(t, os.Chown(filepath.Join(dir, "sub"), nobody, nobody))
	lopen(0, "checkpoint", "rewind", "before:two", "--yes", "--force")
	require.Equal(t, "one one one - -r-xr-xr-x", files())
}

// TestStoreThatMayNotBeRead is named in full.
func TestStoreThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	dir, lopen, _ := asNobody(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".lopen"), 0o000))
	if os.Getuid() == 0 {
		require.NoError(t, os.Chown(filepath.Join(dir, ".lopen"), nobody, nobody))
	}
	require.Contains(t, lopen(14, "session", "list"), "open "+filepath.Join(dir, ".lopen")+": openat: permission denied")
}

// TestMovedThatCannotBeRemoved deletes the session of which a rewind moved a folder away, with read-only
// folders in it: they go too. What belongs to somebody else is named, keeps no content of a checkpoint, and
// goes once it may.
func TestMovedThatCannotBeRemoved(t *testing.T) {
	t.Parallel()
	oneByOne(t)
	dir, lopen, process := asNobody(t)
	plan := process()
	plan.Path, plan.Args = "/bin/sh", []string{"sh", "-c", "echo '- [ ] one\n- [ ] two' >TODO.md"}
	require.NoError(t, plan.Run())
	lopen(0, "plan", "create", "m", "--from", "TODO.md")
	const scaffold = `echo deps/ >.gitignore; mkdir -p deps/shut/in; cd deps/shut; i=0; while [ $i -lt 1001 ]; do i=$((i+1)); echo 1234 >$i; done
echo x >in/x; chmod 500 . in`
	found := func(pattern string) []string {
		t.Helper()
		all, err := filepath.Glob(filepath.Join(dir, ".lopen", pattern))
		require.NoError(t, err)
		return all
	}
	moves := func() string {
		t.Helper()
		lopen(2, "run", "m", "--no-resume", "--max-iterations", "1", "--check", "true", "--", "sh", "-c", scaffold)
		require.Contains(t, lopen(0, "checkpoint", "rewind", "before:one", "--yes"), "move-away deps (1,002 files, 5007 bytes)")
		require.Len(t, found("moved/[^.]*"), 1)
		return filepath.Base(found("sessions/m-*")[0])
	}
	require.NotContains(t, lopen(0, "session", "delete", moves(), "--yes"), "cannot be removed")
	require.Empty(t, found("moved/[^.]*"))

	if os.Getuid() != 0 {
		return // nobody else is there
	}
	id := moves()
	in := filepath.Join(found("moved/[^.]*")[0], "shut/in")
	require.NoError(t, os.Chown(in, 0, 0))
	require.Contains(t, lopen(0, "session", "delete", id, "--yes"), "cannot be removed; the next prune tries again error=\"remove "+in)
	require.FileExists(t, filepath.Join(in, "x"))
	require.Empty(t, found("blobs/packs/*"), "the checkpoints' contents go")
	require.NoError(t, os.Chown(in, nobody, nobody))
	require.NotContains(t, lopen(0, "session", "prune"), "cannot be removed")
	require.Empty(t, found("moved/[^.]*"))
}
