//go:build unix

package checkpoint

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// diskBytes is the space that a file takes.
func diskBytes(t *testing.T, path string) int64 {
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Sys().(*syscall.Stat_t).Blocks * 512
}

func modeAt(t *testing.T, name string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(name)
	require.NoError(t, err)
	return info.Mode()
}

// A rewind neither sets nor clears setuid, setgid and sticky; a file that it writes anew
// has none of them.
func TestApplyLeavesSpecialBits(t *testing.T) {
	t.Parallel()
	const special = fs.ModeSetuid | fs.ModeSetgid
	to := made("content", "one", "dir/", "", "dir/a", "one", "mode", "one").with(map[string]fs.FileMode{"mode": 0o755})
	from := to.with(map[string]fs.FileMode{"mode": 0o700, "dir": 0o500})
	from["content"] = thing{0o755, "two"}
	blobs, tree := stored(t, to), onDisk(t, from)
	at := func(name string) string { return filepath.Join(tree.Name(), name) }
	require.NoError(t, os.Chmod(at("mode"), 0o700|special))
	require.NoError(t, os.Chmod(at("content"), 0o755|special))
	require.NoError(t, os.Chmod(at("dir"), 0o500|fs.ModeSetgid|fs.ModeSticky))
	plan := planOf(t, blobs, from, to)
	for i := range plan.Changes {
		plan.Changes[i].New.Mode |= specialBits // no tree has them; none is made
		done, err := try(tree, blobs).Apply(tContext(), &Plan{Changes: plan.Changes[i : i+1]})
		require.NoError(t, err)
		require.Equal(t, Applied{Changes: 1}, done)
	}
	require.Equal(t, 0o755|special, modeAt(t, at("mode")))
	require.Equal(t, fs.FileMode(0o644), modeAt(t, at("content")))
	require.Equal(t, fs.ModeDir|0o755|fs.ModeSetgid|fs.ModeSticky, modeAt(t, at("dir")))
}

// A hard link stays a hard link if neither its content nor its mode changes. If one of them
// changes, the tree gets a file of its own. The other name, which may be outside, keeps
// its content and mode.
func TestApplyLeavesOtherNamesOfAFile(t *testing.T) {
	t.Parallel()
	from := made("content", "two", "mode", "one", "gone", "three", "same", "four", "twin", "four")
	to := made("content", "one", "mode", "one", "same", "four", "twin", "four").with(map[string]fs.FileMode{"mode": 0o666})
	blobs, tree := stored(t, to), onDisk(t, from)
	outside := t.TempDir()
	at := func(name string) string { return filepath.Join(tree.Name(), name) }
	for _, name := range []string{"content", "mode", "gone"} {
		require.NoError(t, os.Link(at(name), filepath.Join(outside, name)))
	}
	require.NoError(t, os.Remove(at("twin")))
	require.NoError(t, os.Link(at("same"), at("twin")))
	plan := planOf(t, blobs, from, to)
	for range 2 {
		done, err := try(tree, blobs).Apply(tContext(), plan)
		require.NoError(t, err)
		require.Equal(t, Applied{Changes: 3}, done)
		requireThings(t, to, seen(t, tree), "inside")
	}
	for _, name := range []string{"content", "mode", "gone"} {
		data, err := os.ReadFile(filepath.Join(outside, name))
		require.NoError(t, err)
		require.Equal(t, from[name], thing{modeAt(t, filepath.Join(outside, name)), string(data)})
	}
	one, err := os.Stat(at("same"))
	require.NoError(t, err)
	other, err := os.Stat(at("twin"))
	require.NoError(t, err)
	require.True(t, os.SameFile(one, other))
}

// A file that gets a hard link right before its mode would change keeps its mode.
func TestLinkedWhileItIsApplied(t *testing.T) {
	t.Parallel()
	from := made("mode", "one")
	to := from.with(map[string]fs.FileMode{"mode": 0o600})
	blobs, tree, other := stored(t, to), onDisk(t, from), filepath.Join(t.TempDir(), "other")
	s := try(tree, blobs)
	s.before = func(string, string) error {
		_ = os.Link(filepath.Join(tree.Name(), "mode"), other)
		return nil
	}
	done, err := s.Apply(tContext(), planOf(t, blobs, from, to))
	require.NoError(t, err)
	require.Equal(t, Applied{Retained: []Retained{{Path: "mode", Why: Meanwhile}}}, done)
	require.Equal(t, fs.FileMode(0o644), modeAt(t, other))
}

// Apply makes its changes also in a folder that forbids them. Afterwards the folder has its
// mode again, also if a kill left it with more permissions.
func TestShutFolders(t *testing.T) {
	t.Parallel()
	modes := map[string]fs.FileMode{"ro": 0o555, "ro/in": 0o500}
	from := made("ro/", "", "ro/f", "two", "ro/in/", "", "ro/in/g", "two").with(modes)
	to := made("ro/", "", "ro/h", "one", "ro/in/", "", "ro/in/g", "one").with(modes)
	blobs := stored(t, to)
	plan := planOf(t, blobs, from, to)
	require.Len(t, plan.shut, 2)
	tree := onDisk(t, from)
	s := try(tree, blobs)
	s.left = 2
	_, err := s.Apply(tContext(), plan)
	require.ErrorIs(t, err, errKilled)
	requireThings(t, from.with(map[string]fs.FileMode{"ro": 0o755, "ro/in": 0o700}), seen(t, tree), "killed")
	_, err = try(tree, stored(t)).Apply(tContext(), plan)
	require.ErrorIs(t, err, ErrUnchanged, "there are no contents")
	requireThings(t, from, seen(t, tree), "closed, as nothing is to be done")
	finish(t, try(tree, blobs), plan, to, "shut")
}
