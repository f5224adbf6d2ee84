package checkpoint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/mount/mounttest"
)

// TestHiddenMeetsAMount moves away what is hidden where the kernel refuses the rename: .lopen is on
// another file system, or the path became a mount point after it was looked at. It is named and left,
// and the rest of the plan is done.
func TestHiddenMeetsAMount(t *testing.T) {
	mounttest.Run(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			mount func(t *testing.T, s *trial)
			cause unix.Errno
		}{
			"another file system": {func(t *testing.T, s *trial) {
				at := t.TempDir()
				mounttest.Tmpfs(t, at)
				lopen, err := writer.OpenFS(at)
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, lopen.Close()) })
				s.opts.Lopen = lopen
			}, unix.EXDEV},
			"a mount point by now": {func(t *testing.T, s *trial) {
				s.opts.Lopen = &cutFS{FS: s.opts.Lopen, cutter: &cutter{left: -1, before: func(call, _ string) error {
					if call == "mkdir" {
						at := filepath.Join(s.tree.Name(), "deps")
						mounttest.Bind(t, at, at)
					}
					return nil
				}}}
			}, unix.EBUSY},
		} {
			t.Run(name, func(t *testing.T) {
				from, to := made("deps/", "", "deps/a", "two", "z", "two"), made("z", "one")
				blobs, tree := stored(t, from, to), onDisk(t, from)
				s := try(tree, blobs)
				plan := moving(t, &s, planOf(t, blobs, from, to), "deps")
				c.mount(t, &s)
				done, err := s.Apply(tContext(), plan)
				require.NoError(t, err)
				require.Equal(t, []Retained{{Path: "deps", Why: Fixed, Cause: c.cause.Error()}}, done.Retained)
				requireThings(t, made("deps/", "", "deps/a", "two", "z", "one"), seen(t, tree), "named and left")
			})
		}
	})
}

// TestHiddenChangedMeanwhile adds a file to a hidden folder after the plan was made, and takes one out
// of what was moved away. Neither is moved.
func TestHiddenChangedMeanwhile(t *testing.T) {
	t.Parallel()
	from, to := made("deps/", "", "deps/a", "two", "z", "two"), made("z", "one")
	blobs, tree := stored(t, from, to), onDisk(t, from)
	s := try(tree, blobs)
	plan := moving(t, &s, planOf(t, blobs, from, to), "deps")
	more := filepath.Join(tree.Name(), "deps/more")
	require.NoError(t, os.WriteFile(more, nil, 0o600))
	done, err := s.Apply(tContext(), plan)
	require.NoError(t, err)
	require.Equal(t, []Retained{{Path: "deps", Why: Meanwhile}}, done.Retained)
	require.FileExists(t, more)

	require.NoError(t, os.Remove(more))
	done, err = s.Apply(tContext(), plan)
	require.NoError(t, err)
	require.Empty(t, done.Retained)
	require.NoDirExists(t, filepath.Dir(more))
	require.EqualValues(t, len("two"), s.grown.Load())
	all, err := filepath.Glob(filepath.Join(s.opts.Lopen.Name(), movedDir, "*"))
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.NoError(t, os.Remove(filepath.Join(all[0], "a")))
	away := plan.Changes[len(plan.Changes)-1]
	done, err = s.Apply(tContext(), &Plan{id: "b5", Changes: []Change{{Kind: KindBack, Path: "deps", New: away.Old}}})
	require.NoError(t, err)
	require.Equal(t, []Retained{{Path: "deps", Why: Lost}}, done.Retained)
	require.DirExists(t, all[0])
	require.NoDirExists(t, filepath.Dir(more))
}
