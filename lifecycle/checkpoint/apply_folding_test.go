package checkpoint

import (
	"io/fs"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// renames are rewinds in which names differ only in case.
var renames = map[string]struct{ from, to things }{
	"a file":             {made("a", "one"), made("A", "one")},
	"a file, back":       {made("A", "one"), made("a", "one")},
	"and its content":    {made("a", "two"), made("A", "one")},
	"a symlink":          {made("a", "-> b"), made("A", "-> c")},
	"a folder":           {made("dir/", "", "dir/x", "one", "dir/sub/", "", "dir/sub/y", "two"), made("DIR/", "", "DIR/x", "one", "DIR/sub/", "", "DIR/sub/Y", "three")},
	"a folder to a file": {made("a/", "", "a/x", "one"), made("A", "one")},
	"a file to a folder": {made("a", "one"), made("A/", "", "A/x", "one")},
	"a shut folder":      {made("dir/", "", "dir/x", "one").with(map[string]fs.FileMode{"dir": 0o500}), made("Dir/", "", "Dir/x", "one").with(map[string]fs.FileMode{"Dir": 0o555})},
	"among others":       {made("ab", "mine", "b/", "", "b/C", "one", "b/d", "one"), made("ab", "mine", "b/", "", "b/c", "one", "b/d", "two")},
}

// Where names fold, a rename that changes only the case is a rename. The renamed file is
// never lost.
func TestRenameOfCase(t *testing.T) {
	t.Parallel()
	for name, c := range renames {
		disk := crashfs.New(crashfs.Folding)
		c.from.lay(t, disk.FS())
		cutPower(t, garden{Rand: rand.New(rand.NewPCG(1, 3))}, disk.Crash(crashfs.Variant{}), c.from, c.to, name)
	}
}

// requireRenames makes the same rewinds in a folder of a real file system, which may
// have neither modes nor symlinks.
func requireRenames(t *testing.T, dir writer.FS, modes bool) {
	for name, c := range renames {
		if !modes {
			c.from, c.to = c.from.flat(), c.to.flat()
		}
		require.NoError(t, dir.Mkdir(name, 0o700))
		tree, err := dir.Sub(name)
		require.NoError(t, err)
		c.from.lay(t, tree)
		blobs := stored(t, c.to)
		done, err := New(nil, MainTree, blobs, tree, Options{}).Apply(tContext(), planOf(t, blobs, c.from, c.to))
		require.NoError(t, err, name)
		require.Empty(t, done.Retained, name)
		requireThings(t, c.to, seen(t, tree), "%s", name)
		require.NoError(t, tree.Close())
	}
}

// flat returns the tree without symlinks and with the same mode for all files.
func (all things) flat() things {
	flat := things{}
	for name, it := range all {
		if it.mode.Type() != fs.ModeSymlink {
			flat[name] = thing{it.mode.Type() | 0o755, it.text}
		}
	}
	return flat
}

// What a plan wants at another spelling of a name that it does not remove is not made,
// and what stands there is left as it is, also what is beneath it.
func TestRetainedUnderAnotherSpelling(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found, from, to things // found: what somebody made of from
		retained        []string
	}{
		"a file": {made("a", "mine"), made(), made("A", "one"), []string{"A"}},
		"a folder": {made("dir/", "", "dir/x", "one", "dir/mine", ""), made("dir/", "", "dir/x", "one"),
			made("dir/", "", "DIR/", "", "DIR/x", "one"), []string{"DIR", "DIR/x", "dir/x"}},
		"a folder that somebody renamed": {made("DIR/", "", "DIR/x", "one"), made("dir/", "", "dir/x", "one"),
			made("dir/", "", "dir/x", "two"), []string{"dir/x"}},
		"a removal": {made("A", "one"), made("a", "one"), made(), nil},
	} {
		disk := crashfs.New(crashfs.Folding)
		c.found.lay(t, disk.FS())
		blobs := stored(t, c.to)
		done, err := New(nil, MainTree, blobs, disk.FS(), Options{}).Apply(tContext(), planOf(t, blobs, c.from, c.to))
		require.NoError(t, err, name)
		var retained []string
		for _, k := range done.Retained {
			require.Equal(t, Blocked, k.Why, name)
			retained = append(retained, k.Path)
		}
		require.Equal(t, c.retained, retained, name)
		requireThings(t, c.found, seen(t, disk.FS()), "%s", name)
	}
}
