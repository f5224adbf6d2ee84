package checkpoint

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer/blob"
)

// index makes names what git tracks. nil says that git cannot be asked.
func (w *world) index(names ...string) {
	w.outside = []files.IgnoreFile{{Path: files.TrackedPath, Data: files.TrackedNames(names)}}
	if names == nil {
		w.outside[0].Data = nil
	}
}

// TestTracked holds what git tracks although a rule ignores it: the task's changes of it come back, and what the
// task itself does to the index neither hides nor uncovers anything.
func TestTracked(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before []string // what is tracked
		task   func(k *worker)
		want   []string // what the rewind does
	}{
		"changed and removed": {[]string{"dist/a", "dist/b", "none"}, func(k *worker) { k.edit("dist/a", "2", "dist/b", "-", "dist/c", "2") }, []string{"dist/a: overwrite", "dist/b: create"}},
		"git rm --cached":     {[]string{"dist/a"}, func(k *worker) { k.index("x"); k.edit("dist/a", "2") }, []string{"dist/a: overwrite"}},
		"git rm":              {[]string{"dist/a"}, func(k *worker) { k.index("x"); k.edit("dist/a", "-") }, []string{"dist/a: create", "dist: create"}},
		"git add -f":          {[]string{"dist/a"}, func(k *worker) { k.index("dist/a", ".env"); k.edit(".env", "2") }, []string{".env: ignored"}},
		"git is gone":         {[]string{"dist/a"}, func(k *worker) { k.index(); k.edit("dist/a", "2") }, []string{"dist/a: overwrite"}},
		"the repository":      {[]string{"dist/a"}, func(k *worker) { k.outside = nil; k.edit("dist/a", "2") }, []string{"dist/a: overwrite"}},
		"nothing is tracked":  {nil, func(k *worker) { k.edit("dist/a", "2", ".env", "2") }, nil},
		".lopenignore":        {[]string{"dist/a", "own/a"}, func(k *worker) { k.edit("own/a", "2") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newWorld(t).worker("s", 0)
			k.edit("x", "1", ".gitignore", "dist/\n.env\n", ".lopenignore", "own\n", "dist/a", "1", "dist/b", "1", ".env", "1", "own/a", "1")
			k.index(tt.before...)
			before := k.begin()
			tt.task(k)
			after := k.end()
			plan, _ := k.rewind(before, RewindOptions{})
			require.Equal(t, tt.want, summary(plan))
			require.Equal(t, "-rw-r--r-- 1", k.look()["dist/b"])
			k.forget(after.Number)
			require.NoError(t, k.cps.Objects(k.create(Manual, 0), Unseen(map[blob.Hash]struct{}{})))
		})
	}
}

// TestTrackedByAPerson takes a name off the index where no task is at work: then the file is an ignored one.
func TestTrackedByAPerson(t *testing.T) {
	t.Parallel()
	k := newWorld(t).worker("s", 0)
	k.edit("x", "1", ".gitignore", "dist/\n", "dist/a", "1", "dist/b", "1")
	k.index("dist/a", "dist/b")
	before, _ := k.works("dist/a", "2", "dist/b", "2")
	k.index("dist/a")
	k.start() // another process
	k.create(Manual, 0)
	rules := func() [2]string {
		e := k.create(Manual, 0)
		r, err := New(k.checkpoints, MainTree, k.cps.blobs, k.tree, Options{}).Rules(e)
		require.NoError(t, err)
		return [2]string{string(trackedIn(r.InForce.Files())), string(trackedIn(r.Found.Files()))}
	}
	require.Equal(t, [2]string{"dist/a\x00", "dist/a\x00"}, rules())
	plan, _ := k.rewind(before, RewindOptions{})
	require.Equal(t, []string{"dist/a: overwrite", "dist/b: ignored"}, summary(plan))

	k.begin()
	k.index("x")
	k.end()
	require.Equal(t, [2]string{"dist/a\x00x\x00", "x\x00"}, rules(), "what a task takes off stays in force")
	k.index()
	require.Equal(t, [2]string{"dist/a\x00x\x00", "x\x00"}, rules(), "the last known names")
	k.index("y")
	require.Equal(t, [2]string{"dist/a\x00y\x00", "y\x00"}, rules())
}
