//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWorkTreesOfAnotherUser has another user make the folder of the work trees first, in a folder in which both may
// write: nothing of the project is put there, and nothing of theirs runs.
func TestWorkTreesOfAnotherUser(t *testing.T) {
	t.Parallel()
	oneByOne(t)
	if os.Getuid() != 0 {
		t.Skip("another user takes root")
	}
	dir, lopen, process := asNobody(t)
	base := filepath.Dir(dir)
	require.NoError(t, os.Chmod(base, 0o777|os.ModeSticky))
	sh := func(uid uint32, script string) {
		t.Helper()
		cmd := process()
		cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-ec", script}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	sh(nobody, "git init -q; git config user.email a@b; git config user.name a; echo x >f; git add .; git commit -qm x; printf -- '- [ ] one\\n' >TODO.md")
	lopen(0, "plan", "create", "m", "--from", "TODO.md")
	const other = nobody - 1
	sh(other, "umask 0; mkdir -m 777 ../project-worktrees; mkdir ../theirs")
	out := lopen(2, "run", "m", "--worktree", "--check", "true", "--", "touch", filepath.Join(base, "ran"))
	require.Contains(t, out, "--worktree: "+dir+"-worktrees belongs to uid 65533: another user could put other files in the place of a work tree there")
	require.NoFileExists(t, filepath.Join(base, "ran"))
	entries, err := os.ReadDir(dir + "-worktrees")
	require.NoError(t, err)
	require.Empty(t, entries)

	// A link of theirs to a folder of the user's own does not help.
	sh(other, "rmdir ../project-worktrees; ln -s project/sub ../project-worktrees")
	require.Contains(t, lopen(2, "run", "m", "--worktree", "--check", "true", "--", "true"), "-worktrees belongs to uid 65533")
	sh(other, "rm ../project-worktrees")
	lopen(0, "run", "m", "--worktree", "--check", "true", "--", "touch", "made")
	info, err := os.Stat(dir + "-worktrees")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}
