package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/mount/mounttest"
)

// TestMountedVolume mounts a volume in a project whose tasks fail, in a work tree that is removed, and
// in the folder of a session that is deleted. Whatever lopen does, the volume is as it was.
func TestMountedVolume(t *testing.T) {
	mounttest.Run(t, func(t *testing.T) {
		t.Run("a task mounts it and fails", mountedByATask)
		t.Run("a task mounts another one in its place", mountedInItsPlace)
		t.Run("a rewind is cut off", mountedBeforeARewindEnds)
		t.Run("without checkpoints", mountedWithoutCheckpoints)
		t.Run("a work tree is removed", mountedInAWorktree)
		t.Run("a session is deleted", mountedInASession)
		t.Run("in what only a task's rule hides", mountedInHidden)
	})
}

// aVolume returns a project with a plan of two tasks, and a folder to be mounted in it.
func aVolume(t *testing.T) (dir, volume string) {
	t.Helper()
	dir, volume = t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		filepath.Join(dir, "TODO.md"):            "- [ ] one\n- [ ] two\n",
		filepath.Join(dir, "data/hidden"):        "hidden",
		filepath.Join(volume, "photos/1.jpg"):    "photo",
		filepath.Join(volume, "photos/2/11.jpg"): "photo",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	return dir, volume
}

func wholeVolume(t *testing.T, volume string) {
	t.Helper()
	require.Equal(t, "photo photo", contents(t, volume, "photos/1.jpg", "photos/2/11.jpg"))
}

func mountedByATask(t *testing.T) {
	dir, volume := aVolume(t)
	lopen := in(t, dir)
	lopen(0, "plan", "create", "mod", "--from", "TODO.md")
	const work = `mountpoint -q data || mount --bind "$0" data; printf 1 > out-${LOPEN_TASK_ID##*/}`
	t.Cleanup(func() { _ = exec.Command("umount", filepath.Join(dir, "data")).Run() })
	out := lopen(2, "run", "mod", "--unattended", "--agent", "none", "--failure-threshold", "1", "--check", "! test -e out-one", "--", "sh", "-c", work, volume)
	require.Contains(t, out, "kept, with what is on it, because something was mounted or unmounted there since: data\n")
	require.NoFileExists(t, filepath.Join(dir, "out-one"))
	require.FileExists(t, filepath.Join(dir, "out-two"))
	require.Contains(t, lopen(0, "session", "log"), "kept, something was mounted or unmounted there since: data")
	require.NotContains(t, lopen(0, "checkpoint", "diff", "before:one", "failed:one"), "data")
	require.Contains(t, lopen(0, "checkpoint", "rewind", "before:one", "--yes", "--force"), "keep      data (something was mounted or unmounted there since)")
	wholeVolume(t, volume)
	require.NoError(t, exec.Command("umount", filepath.Join(dir, "data")).Run())
	require.Equal(t, "hidden", contents(t, dir, "data/hidden"))
}

// mountedInItsPlace has a volume of the project in whose place a task mounts another one, and fails.
func mountedInItsPlace(t *testing.T) {
	dir, volume := aVolume(t)
	other, at := t.TempDir(), filepath.Join(dir, "data")
	require.NoError(t, os.MkdirAll(filepath.Join(other, "photos"), 0o755))
	for _, name := range []string{"photos/1.jpg", "only"} {
		require.NoError(t, os.WriteFile(filepath.Join(other, name), []byte("of the other"), 0o600))
	}
	mounttest.Bind(t, volume, at)
	lopen := in(t, dir)
	lopen(0, "plan", "create", "mod", "--from", "TODO.md")
	const work = `umount data; mount --bind "$0" data; printf 1 > out`
	t.Cleanup(func() { _ = exec.Command("umount", at).Run() })
	out := lopen(2, "run", "mod", "--unattended", "--agent", "none", "--failure-threshold", "1", "--max-iterations", "1", "--check", "false", "--", "sh", "-c", work, other)
	require.Contains(t, out, "kept, with what is on it, because something was mounted or unmounted there since: data\n")
	require.NoFileExists(t, filepath.Join(dir, "out"))
	require.NotContains(t, lopen(0, "checkpoint", "diff", "before:one", "failed:one"), "data")
	require.Equal(t, "of the other of the other", contents(t, other, "photos/1.jpg", "only"))
	require.NoDirExists(t, filepath.Join(other, "photos/2"))
	wholeVolume(t, volume)
}

// mountedBeforeARewindEnds has a rewind that is cut off. What is mounted since is named by the run that finishes it.
func mountedBeforeARewindEnds(t *testing.T) {
	dir, volume := aVolume(t)
	lopen, chattr := unfinished(t, dir)
	lopen(14, "checkpoint", "rewind", "before:one", "--yes", "--force")
	require.NoError(t, chattr("-i"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("2"), 0o600)) // as if it had not come so far
	mounttest.Bind(t, filepath.Join(volume, "photos/1.jpg"), filepath.Join(dir, "a"))
	out := lopen(2, "run", "mod", "--agent", "none", "--max-iterations", "1", "--", "true")
	require.Contains(t, out, " was cut off and is finished now\nkeep      a (something was mounted or unmounted there since)\n")
	require.Contains(t, out, "the rewind left a path as it is: something was mounted or unmounted there since")
	wholeVolume(t, volume)
}

func mountedWithoutCheckpoints(t *testing.T) {
	dir, volume := aVolume(t)
	lopen := in(t, dir)
	lopen(0, "plan", "create", "mod", "--from", "TODO.md")
	t.Cleanup(func() { _ = exec.Command("umount", filepath.Join(dir, "data")).Run() })
	out := lopen(2, "run", "mod", "--unattended", "--agent", "none", "--no-checkpoint", "--failure-threshold", "1", "--require-change", "--",
		"sh", "-c", `case $LOPEN_TASK_ID in *one) mount --bind "$0" data;; *) printf 1 > data/of-two;; esac`, volume)
	require.Contains(t, out, "2 of 2 tasks failed", "neither what it hides nor what is on it is a change")
	wholeVolume(t, volume)
}

func mountedInAWorktree(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir, volume := aVolume(t)
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("data/\n.lopen/\n.xdg/\n.home/\n"), 0o600))
	git("init", "-q", "-b", "main")
	git("config", "user.name", "a")
	git("config", "user.email", "a@example.com")
	git("add", ".")
	git("commit", "-qm", "one")
	t.Cleanup(func() { _ = os.RemoveAll(dir + "-worktrees") })
	lopen := in(t, dir)
	lopen(0, "plan", "create", "mod", "--from", "TODO.md")
	lopen(0, "run", "mod", "--agent", "none", "--worktree", "--", "true")
	found, err := filepath.Glob(dir + "-worktrees/mod-*")
	require.NoError(t, err)
	require.Len(t, found, 1)
	at := filepath.Join(found[0], "data/volume")
	mounttest.Bind(t, volume, at)
	out := lopen(1, "worktree", "remove", "mod")
	require.Contains(t, out, at+": something is mounted there; unmount it and try again")
	wholeVolume(t, volume)
	require.FileExists(t, filepath.Join(filepath.Dir(filepath.Dir(at)), "TODO.md"), "nothing is removed")
	mounttest.Unmount(t, at)
	lopen(0, "worktree", "remove", "mod")
	require.NoDirExists(t, filepath.Dir(filepath.Dir(at)))
	wholeVolume(t, volume)
}

func mountedInASession(t *testing.T) {
	dir, volume := aVolume(t)
	lopen := in(t, dir)
	lopen(0, "plan", "create", "mod", "--from", "TODO.md")
	lopen(2, "run", "mod", "--agent", "none", "--max-iterations", "1", "--", "true")
	found, err := filepath.Glob(filepath.Join(dir, ".lopen/sessions/mod-*"))
	require.NoError(t, err)
	require.NotEmpty(t, found)
	at := filepath.Join(found[0], "output/data")
	mounttest.Bind(t, volume, at)
	out := lopen(1, "session", "delete", filepath.Base(found[0]), "--yes")
	require.Contains(t, out, "output/data: something is mounted there; unmount it and try again")
	wholeVolume(t, volume)
	lopen(0, "session", "show", filepath.Base(found[0]))
	mounttest.Unmount(t, at)
	lopen(0, "session", "delete", filepath.Base(found[0]), "--yes")
	require.NoDirExists(t, found[0])
	wholeVolume(t, volume)
}

// mountedInHidden has a volume in a folder that a rewind would move away whole: the task mounts it and fails,
// a person does since, and in what was moved away. It is named and left each time, until it is unmounted.
func mountedInHidden(t *testing.T) {
	const scaffold = `echo deps/ >.gitignore; mkdir -p deps/data; i=0; while [ $i -lt 1001 ]; do i=$((i+1)); printf 12345 >deps/$i; done`
	made := func(dir string) string { return contents(t, dir, "deps/2", "deps/1001") }
	for at, how := range map[string]string{"deps/data": "-t tmpfs tmpfs", "deps/1": `--bind "$0/photos/1.jpg"`} { // the one is empty
		dir, volume := aVolume(t)
		lopen := in(t, dir)
		t.Cleanup(func() { _ = exec.Command("umount", filepath.Join(dir, at)).Run() })
		lopen(0, "plan", "create", "mod", "--from", "TODO.md")
		out := lopen(2, "run", "mod", "--unattended", "--agent", "none", "--failure-threshold", "1", "--max-iterations", "1",
			"--check", "! test -e deps", "--", "sh", "-c", scaffold+"; mount "+how+" "+at, volume)
		require.Contains(t, out, "kept as one left them: deps (it cannot be moved away as a whole)")
		require.NoFileExists(t, filepath.Join(dir, ".gitignore"))
		require.NoError(t, exec.Command("mountpoint", "-q", filepath.Join(dir, at)).Run())
		require.Equal(t, "12345 12345", made(dir))
		wholeVolume(t, volume)
	}

	dir, volume := aVolume(t)
	lopen := in(t, dir)
	lopen(0, "plan", "create", "mod", "--from", "TODO.md")
	lopen(2, "run", "mod", "--agent", "none", "--max-iterations", "1", "--check", "true", "--", "sh", "-c", scaffold)
	lopen(0, "checkpoint", "rewind", "before:one", "--scope", "files", "--yes")
	found, err := filepath.Glob(filepath.Join(dir, ".lopen/moved/[^.]*"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	at := filepath.Join(found[0], "data")
	mounttest.Bind(t, volume, at)
	require.Contains(t, lopen(0, "undo", "--scope", "files", "--yes"), "keep      deps (")
	wholeVolume(t, volume)
	held, err := filepath.Glob(filepath.Join(dir, ".lopen/sessions/mod-*"))
	require.NoError(t, err)
	require.Len(t, held, 1)
	out := lopen(0, "session", "delete", filepath.Base(held[0]), "--yes")
	require.Contains(t, out, at+": something is mounted there; unmount it and try again")
	wholeVolume(t, volume)
	mounttest.Unmount(t, at)
	lopen(0, "session", "prune")
	require.NoDirExists(t, found[0])

	require.NoError(t, os.Remove(filepath.Join(dir, ".gitignore"))) // which is not the next task's
	lopen(0, "run", "mod", "--no-resume", "--agent", "none", "--check", "true", "--", "sh", "-c", scaffold)
	mounttest.Bind(t, volume, filepath.Join(dir, "deps/data"))
	out = lopen(0, "checkpoint", "rewind", "before:two", "--scope", "files", "--yes", "--force")
	require.Contains(t, out, "keep      deps (it cannot be moved away as a whole)")
	require.Equal(t, "12345 12345", made(dir))
	wholeVolume(t, volume)
}
