package checkpoint

import (
	"context"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
)

// restless is a tree in which something happens after the names of a folder were read.
type restless struct {
	writer.FS
	do func(dir string)
}

func (r restless) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := r.FS.ReadDir(name)
	r.do(name)
	return all, err
}

// storm keeps a folder of the tree from settling while fn runs.
func (w *world) storm(dir string, fn func()) {
	calm := w.tree.FS
	w.tree.FS = restless{calm, func(name string) {
		if name == dir {
			require.NoError(w.t, calm.Mkdir(dir+"/passes", 0o755))
			require.NoError(w.t, calm.Remove(dir+"/passes"))
		}
	}}
	fn()
	w.tree.FS = calm
}

// What is not found in a folder that never settled was not deleted, and not created by the task
// after it: it is kept, and named.
func TestUnstableFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.edit("a/f", "f", "a/sub/x", "x", "z/g", "g")
	k := w.worker("s", 0)
	var target *Entry
	w.storm("a", func() { target = k.begin() })
	require.Equal(t, 1, target.Unstable)
	unstable, err := k.cps.Tree(target.Root).Unstable()
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, unstable)
	for path, known := range map[string]bool{"a/f": true, "a/sub/y": true, "z/h": true, "a/new": false, "a/new/x": false} {
		_, is, err := k.cps.Tree(target.Root).Find(path)
		require.NoError(t, err)
		require.Equal(t, known, is, path)
	}
	w.edit("a/new", "new", "z/h", "h", "a/f", "changed", "a/sub/x", "-")
	after := k.end()
	require.Zero(t, after.Unstable)
	require.Equal(t, 3, after.Changed, "a/new may have been there")
	plan := k.preview(target, RewindOptions{})
	require.Equal(t, []string{"a/f: overwrite", "a/new: unsettled", "a/sub/x: create", "z/h: unsettled"}, summary(plan), "z/h is older than the target, and may have been in a")
	require.Equal(t, []string{"a/f: overwrite", "a/new: unsettled", "a/sub/x: create", "z/h: unsettled"}, summary(k.preview(target, RewindOptions{Force: true})))

	// The next checkpoints are of a tree that has settled.
	second := k.begin()
	w.edit("a/two", "two", "a/new", "-")
	k.end()
	require.Equal(t, []string{"a/new: create", "a/two: delete"}, summary(k.preview(second, RewindOptions{})))
}

// What is missing in an unstable folder now is not made again, and what was moved out of it is
// not removed where it is.
func TestUnstableNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.edit("a/f", "precious", "a/e", "", "z/g", "g", "k/only", "k")
	k := w.worker("s", 0)
	target := k.begin()
	require.Zero(t, target.Unstable)
	w.edit("z/f", "<- a/f", "z/e", "<- a/e", "z/made", "made", "k/only", "-")
	w.storm("a", func() {
		require.Equal(t, 1, k.end().Unstable)
		require.Equal(t, []string{"a/e: unsettled", "a/f: unsettled", "k/only: create", "z/e: unsettled", "z/f: unsettled", "z/made: delete"}, summary(k.preview(target, RewindOptions{})))
	})
	require.Equal(t, []string{"a/e: create", "a/f: create", "k/only: create", "z/e: delete", "z/f: delete", "z/made: delete"}, summary(k.preview(target, RewindOptions{})))

	// A file that the look missed, because it went where the names had been read, is not made twice.
	calm := w.tree.FS
	w.edit("a/only", "k")
	w.tree.FS = restless{calm, func(name string) {
		if name == "a" {
			require.NoError(t, calm.Rename("a/only", "a/gone"))
			require.NoError(t, calm.Rename("a/gone", "a/only"))
		}
	}}
	hidden := &hides{w.tree.FS, "a", "only"}
	w.tree.FS = hidden
	require.Contains(t, summary(k.preview(target, RewindOptions{})), "k/only: unsettled")
}

// hides leaves a name out of a folder's names.
type hides struct {
	writer.FS
	dir, name string
}

func (h *hides) ReadDir(name string) (left []fs.DirEntry, err error) {
	all, err := h.FS.ReadDir(name)
	for _, e := range all {
		if name != h.dir || e.Name() != h.name {
			left = append(left, e)
		}
	}
	return left, err
}

// Folders that are moved, and hard links, right before a checkpoint are rewound completely.
func TestMovedFoldersAreRewound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.edit("src/a/f", "f", "src/a/g", "g", "src/b/h", "h", "lib/x", "x")
	k := w.worker("s", 0)
	before := w.look()
	target := k.begin()
	w.edit("lib/src", "<- src", "lib/src/a/f2", "<- lib/src/a/f", "x", "<- lib/x")
	require.NoError(t, w.tree.Link("lib/src/a/g", "lib/src/linked"))
	k.end()
	k.rewind(target, RewindOptions{})
	require.Equal(t, before, w.look())
}

// A comparison believes no absence in an unstable folder, in either direction.
func TestUnstableDiff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.edit("f", "f")
	k := w.worker("s", 0)
	var first *Entry
	w.storm(".", func() {
		var err error
		first, err = k.cps.Create(context.Background(), k.meta(Manual, 0))
		require.NoError(t, err)
	})
	w.edit("g", "g", "d/h", "h")
	second := k.create(Manual, 0)
	for _, pair := range [][2]*Entry{{first, second}, {second, first}} {
		diff, err := Diff(k.cps.Tree(pair[0].Root), k.cps.Tree(pair[1].Root))
		require.NoError(t, err)
		require.Equal(t, []files.Change(nil), diff)
	}
}

// A file that somebody moves between what is seen and what a rule of the task hides, after the one was
// looked at and before the other, is in the entry once. If that goes on, nothing is believed absent.
func TestMovedBetweenSeenAndHidden(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at    [2]string // where it is, and where it goes
		times int
	}{
		"into what is hidden":            {[2]string{"a/f", "d/f"}, 1},
		"out of what is hidden":          {[2]string{"d/f", "a/f"}, 1},
		"out of what is hidden, forever": {[2]string{"d/f", "a/f"}, 99},
	} {
		k := hiding(t, 9)
		k.edit("a/x", "x", "z", "z")
		k.begin()
		k.edit(".gitignore", "d/\n", "d/y", "y", c.at[0], "moved")
		calm, at, left := k.tree.FS, c.at, 2*c.times
		k.tree.FS = restless{calm, func(dir string) {
			if dir == "d" && left > 0 {
				if left--; left%2 == 1 { // the first of the two readings of each look measures
					require.NoError(t, calm.Rename(at[0], at[1]), name)
					at[0], at[1] = at[1], at[0]
				}
			}
		}}
		e := k.end()
		k.tree.FS = calm
		if c.times > 1 {
			require.NotZero(t, e.Unstable, name)
			continue
		}
		require.Zero(t, e.Unstable, name)
		require.ElementsMatch(t, []string{".gitignore", "a/x", "d/y", c.at[1], "z"}, captured(t, k.cps.Tree(e.Root)), name)
	}
}
