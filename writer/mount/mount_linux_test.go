package mount_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/mount"
	"github.com/lopen-dev/lopen/writer/mount/mounttest"
)

// write makes a file and the folders that it needs.
func write(t *testing.T, name string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(name), 0o600))
	return name
}

// TestRemoveCrossesNoMount removes folders in which a folder, the folder itself, a single file and a
// file system in memory are mounted. What is mounted is as it was, what it hides too, and the error
// names it; the rest is gone.
func TestRemoveCrossesNoMount(t *testing.T) {
	mounttest.Run(t, func(t *testing.T) {
		for name, on := range map[string]struct {
			at    string // the mount point in the folder
			mount func(t *testing.T, volume, at string)
		}{
			"folder": {"a/b/data", func(t *testing.T, volume, at string) { mounttest.Bind(t, volume, at) }},
			"itself": {"", func(t *testing.T, volume, at string) { mounttest.Bind(t, volume, at) }},
			"of the same folder": {"a/b/data", func(t *testing.T, _, at string) {
				mounttest.Bind(t, at, at) // the device and the inode are those of what it hides
			}},
			"file": {"a/b/file", func(t *testing.T, volume, at string) { mounttest.Bind(t, filepath.Join(volume, "photo"), at) }},
			"memory": {"a/b/data", func(t *testing.T, _, at string) {
				mounttest.Tmpfs(t, at)
				write(t, filepath.Join(at, "photo"))
			}},
		} {
			t.Run(name, func(t *testing.T) {
				top := t.TempDir()
				volume, tree := filepath.Join(top, "volume"), filepath.Join(top, "tree")
				at := filepath.Join(tree, on.at)
				stays := []string{write(t, filepath.Join(volume, "photo")), write(t, filepath.Join(volume, "deep/photo"))}
				write(t, filepath.Join(tree, "a/other/goes"))
				write(t, filepath.Join(tree, "goes"))
				if name != "file" {
					write(t, filepath.Join(at, "hidden"))
				}
				on.mount(t, volume, at)
				if info, err := os.Stat(at); err == nil && info.IsDir() {
					entries, err := os.ReadDir(at)
					require.NoError(t, err)
					for _, e := range entries {
						stays = append(stays, filepath.Join(at, e.Name()))
					}
				}

				dir, err := writer.OpenFS(top)
				require.NoError(t, err)
				defer dir.Close()
				found, err := mount.Find(dir, "tree")
				require.NoError(t, err)
				require.Equal(t, filepath.Join("tree", on.at), found)
				err = dir.RemoveAll("tree")
				require.ErrorIs(t, err, mount.ErrMounted)
				require.ErrorContains(t, err, at+": ")
				require.ErrorIs(t, mount.RemoveAll(tree), mount.ErrMounted)
				for _, name := range append(stays, at) {
					require.FileExists(t, filepath.Join(top, "volume/photo"))
					_, err := os.Lstat(name)
					require.NoError(t, err)
				}
				if on.at != "" {
					require.NoFileExists(t, filepath.Join(tree, "goes"))
					require.NoDirExists(t, filepath.Join(tree, "a/other"))
				}
				mounttest.Unmount(t, at)
				require.NoError(t, dir.RemoveAll("tree"))
				require.NoDirExists(t, tree)
				require.FileExists(t, filepath.Join(volume, "deep/photo"))
			})
		}
	})
}

// A removal follows no symlink, removes what has no rights to be read as os.RemoveAll does, and says
// nothing of what is not there.
func TestRemove(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	outside := write(t, filepath.Join(top, "outside/file"))
	write(t, filepath.Join(top, "tree/sub/file"))
	require.NoError(t, os.Symlink("../outside", filepath.Join(top, "tree/link")))
	require.NoError(t, os.Symlink("outside", filepath.Join(top, "link")))
	require.NoError(t, mount.RemoveAll(filepath.Join(top, "tree")))
	require.NoError(t, mount.RemoveAll(filepath.Join(top, "link")))
	require.NoError(t, mount.RemoveAll(filepath.Join(top, "missing/one")))
	require.NoError(t, mount.RemoveAll(filepath.Join(top, "missing")))
	require.FileExists(t, outside)
	entries, err := os.ReadDir(top)
	require.NoError(t, err)
	require.Len(t, entries, 1)

	dir, err := os.OpenRoot(top)
	require.NoError(t, err)
	defer dir.Close()
	require.Error(t, mount.RemoveIn(dir, "."))
	require.Error(t, mount.RemoveIn(dir, "../"+filepath.Base(top)+"/outside"))
	require.NoError(t, mount.RemoveIn(dir, "outside/file"))
	require.NoError(t, mount.RemoveIn(dir, "outside"))
	_, err = os.Stat(outside)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestVolume: one volume has the same identity wherever and whenever it is mounted, two have different
// ones, also if the second one has the device and inode number of the first; a path that is no mount
// point has none, and between boots nothing is known.
func TestVolume(t *testing.T) {
	mounttest.Run(t, func(t *testing.T) {
		top := t.TempDir()
		for _, name := range []string{"one/file", "two/file", "at/file", "at/memory/file", "again/file"} {
			write(t, filepath.Join(top, name))
		}
		in := func(name string) string { return filepath.Join(top, name) }
		dir, err := writer.OpenFS(top)
		require.NoError(t, err)
		defer dir.Close()
		is := func(name string) string { return mount.Volume(dir, name) }
		require.Empty(t, is("at"))
		require.Empty(t, is("missing"))
		mounttest.Bind(t, in("one"), in("at"))
		mounttest.Bind(t, in("one"), in("again"))
		one := is("at")
		require.NotEmpty(t, one)
		require.Equal(t, one, is("again"))
		require.Empty(t, is("at/file"), "it is on the mount, and no mount point")
		sub, err := dir.Sub("at")
		require.NoError(t, err)
		defer sub.Close()
		require.Equal(t, one, sub.Volume("."))
		mounttest.Bind(t, in("two"), in("at"))
		require.NotEqual(t, one, is("at"))
		require.False(t, mount.SameVolume(one, is("at")))
		mounttest.Unmount(t, in("at"))
		require.Equal(t, one, is("at"))
		mounttest.Bind(t, in("two/file"), in("at/file"))
		require.NotEmpty(t, is("at/file"))

		require.True(t, mount.SameVolume(one, one))
		require.True(t, mount.SameVolume("", one))
		require.True(t, mount.SameVolume(one, ""))
		require.True(t, mount.SameVolume(one, "0:1/2/3.4/another"))

		mounttest.Tmpfs(t, in("two"))
		was := is("two")
		if strings.Contains(was, "/0.000000000/") {
			t.Skip("this kernel names no time of birth")
		}
		numbers := func(volume string) []string { return strings.Split(volume, "/")[:2] }
		require.Eventually(t, func() bool { // the clock of the kernel has ticks, and others may take the number
			mounttest.Unmount(t, in("two"))
			mounttest.Tmpfs(t, in("two"))
			before := was
			was = is("two")
			return slices.Equal(numbers(before), numbers(was)) && !mount.SameVolume(before, was)
		}, 20*time.Second, time.Millisecond)
	})
}
