package checkpoint

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// snap is a snapshot of files, name and content in turn; a name that ends in / is a
// folder.
func snap(t testing.TB, pairs ...string) *files.Snapshot {
	t.Helper()
	s := &files.Snapshot{At: testMeta.At}
	for i := 0; i < len(pairs); i += 2 {
		f := files.Fingerprint{Path: pairs[i], Mode: 0o644, Size: int64(len(pairs[i+1])), Hash: blob.Hash{}}
		copy(f.Hash[:], pairs[i+1])
		if n := len(f.Path) - 1; f.Path[n] == '/' {
			f = files.Fingerprint{Path: f.Path[:n], Mode: os.ModeDir | 0o755}
		}
		s.Files = append(s.Files, f)
	}
	require.True(t, slices.IsSortedFunc(s.Files, func(a, b files.Fingerprint) int {
		if a.Path < b.Path {
			return -1
		}
		return 1
	}))
	return s
}

// TestPlan says what happens to a path for what the target, the loop's last
// checkpoint and the tree have there.
func TestPlan(t *testing.T) {
	t.Parallel()
	skipped := func(s *files.Snapshot, path string) *files.Snapshot {
		s.Skipped = []files.Skip{{Path: path, Reason: files.Ignored}}
		return s
	}
	within := func(s *files.Snapshot, path string) *files.Snapshot {
		s.Paths = []string{path}
		return s
	}
	type want = []string
	for _, c := range []struct {
		name              string
		target, last, now *files.Snapshot
		want, forced      want
	}{
		{"nothing", snap(t, "a", "1"), snap(t, "a", "2"), snap(t, "a", "1"), nil, nil},
		{"the loop's change", snap(t, "a", "1"), snap(t, "a", "2"), snap(t, "a", "2"), want{"overwrite a"}, want{"overwrite a"}},
		{"another's change", snap(t, "a", "1"), snap(t, "a", "2"), snap(t, "a", "3"), want{"kept a: " + string(Changed)}, want{"overwrite a"}},
		{"the loop's file", snap(t), snap(t, "a", "2"), snap(t, "a", "2"), want{"delete a"}, want{"delete a"}},
		{"the loop's file, changed", snap(t), snap(t, "a", "2"), snap(t, "a", "3"), want{"kept a: " + string(Changed)}, want{"delete a"}},
		{"another's file", snap(t), snap(t), snap(t, "a", "3"), nil, nil},
		{"the loop's deletion", snap(t, "a", "1"), snap(t), snap(t), want{"create a"}, want{"create a"}},
		{"another's deletion", snap(t, "a", "1"), snap(t, "a", "1"), snap(t), want{"kept a: " + string(Gone)}, want{"create a"}},
		{"another's in the place of the deleted", snap(t, "a", "1"), snap(t), snap(t, "a", "3"), want{"kept a: " + string(Changed)}, want{"overwrite a"}},
		{"the loop's move", snap(t, "a", "1"), snap(t, "b", "1"), snap(t, "b", "1"), want{"create a", "delete b"}, want{"create a", "delete b"}},
		{"another's move", snap(t, "a", "1"), snap(t, "a", "1"), snap(t, "b", "1"), want{"kept a: " + string(Moved) + " b"}, want{"create a", "delete b"}},
		{"another's move into a new folder", snap(t, "a", "1"), snap(t, "a", "1"), snap(t, "d/", "", "d/e/", "", "d/e/b", "1"),
			want{"kept a: " + string(Moved) + " d/e/b"}, want{"create a", "delete d", "delete d/e", "delete d/e/b"}},
		{"a move beside a file of another", snap(t, "a", "1"), snap(t, "a", "1"), snap(t, "d/", "", "d/b", "1", "d/c", "4"),
			want{"kept a: " + string(Moved) + " d/b"}, want{"create a", "delete d/b"}},
		{"ignored now", snap(t, "a", "1"), snap(t, "a", "2"), skipped(snap(t), "a"), want{"kept a: " + string(Unknown)}, want{"kept a: " + string(Unknown)}},
		{"ignored then", skipped(snap(t), "a"), snap(t, "a", "2"), snap(t, "a", "2"), nil, nil},
		{"out of scope", within(snap(t, "a", "1"), "a"), snap(t, "a", "2", "b", "2"), snap(t, "a", "2", "b", "2"), want{"overwrite a"}, want{"overwrite a"}},
		{"a folder that is in use", snap(t), snap(t, "d/", "", "d/a", "2"), snap(t, "d/", "", "d/a", "2", "d/b", "3"), want{"delete d/a"}, want{"delete d/a"}},
		{"a folder with what is ignored", snap(t), snap(t, "d/", "", "d/a", "2"), skipped(snap(t, "d/", "", "d/a", "2"), "d/o"), want{"delete d/a"}, want{"delete d/a"}},
		{"a folder in a file's place", snap(t, "a", "1"), snap(t, "a/", "", "a/b", "2"), snap(t, "a/", "", "a/b", "2"), want{"overwrite a", "delete a/b"}, want{"overwrite a", "delete a/b"}},
		{"a folder in a file's place, in use", snap(t, "a", "1"), snap(t, "a/", "", "a/b", "2"), snap(t, "a/", "", "a/b", "2", "a/c", "3"),
			want{"kept a: " + string(Blocked), "delete a/b"}, want{"kept a: " + string(Blocked), "delete a/b"}},
		{"a file in a folder's place", snap(t, "a/", "", "a/b", "1"), snap(t, "a", "2"), snap(t, "a", "2"), want{"overwrite a", "create a/b"}, want{"overwrite a", "create a/b"}},
		{"another's file in a folder's place", snap(t, "a/", "", "a/b", "1"), snap(t), snap(t, "a", "3"),
			want{"kept a: " + string(Changed), "kept a/b: " + string(Blocked)}, want{"overwrite a", "create a/b"}},
		{"a folder that somebody removed", snap(t, "a/", "", "a/b", "1", "a/c", "1"), snap(t, "a/", "", "a/b", "1"), snap(t),
			want{"create a", "kept a/b: " + string(Gone), "create a/c"}, want{"create a", "create a/b", "create a/c"}},
	} {
		for _, force := range []bool{false, true} {
			plan := NewPlan(c.target, c.last, c.now, force)
			byPath := map[string]string{}
			var paths []string
			for _, x := range plan.Changes {
				byPath[x.Path] = string(x.Kind) + " " + x.Path
				paths = append(paths, x.Path)
			}
			for _, k := range plan.Kept {
				require.NotContains(t, byPath, k.Path, c.name)
				byPath[k.Path] = "kept " + k.Path + ": " + string(k.Why)
				if k.To != "" {
					byPath[k.Path] += " " + k.To
				}
				paths = append(paths, k.Path)
			}
			slices.Sort(paths)
			var got want
			for _, path := range paths {
				got = append(got, byPath[path])
			}
			expected := c.want
			if force {
				expected = c.forced
			}
			require.Equal(t, expected, got, "%s, force %v", c.name, force)
		}
	}
}

// What changes between the plan and Apply is kept, whatever it is.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(p place)
		want      string // what stands at a
	}{
		"edited":           {func(p place) { p.write(map[string]string{"a": "new"}) }, `-rw-r--r-- "new"`},
		"of the same size": {func(p place) { p.write(map[string]string{"a": "TWO"}) }, `-rw-r--r-- "TWO"`},
		"of the same size and time": {func(p place) {
			info, err := os.Stat(p.path("a"))
			require.NoError(p.t, err)
			p.write(map[string]string{"a": "TWO"})
			require.NoError(p.t, os.Chtimes(p.path("a"), info.ModTime(), info.ModTime()))
		}, `-rw-r--r-- "TWO"`},
		"another mode":      {func(p place) { require.NoError(p.t, os.Chmod(p.path("a"), 0o600)) }, `-rw------- "two"`},
		"a symlink":         {func(p place) { p.remove("a"); p.write(map[string]string{"a": "-> b"}) }, `Lrwxrwxrwx "b"`},
		"a folder":          {func(p place) { p.remove("a"); p.write(map[string]string{"a/x": ""}) }, `drwxr-xr-x ""`},
		"already as wanted": {func(p place) { p.write(map[string]string{"a": "one"}) }, `-rw-r--r-- "one"`},
		"only touched":      {func(p place) { p.write(map[string]string{"a": "two"}) }, `-rw-r--r-- "one"`},
		"removed":           {func(p place) { p.remove("a") }, `-rw-r--r-- "one"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, t.TempDir())
			p.write(map[string]string{"a": "one"})
			target := p.create(nil)
			p.write(map[string]string{"a": "two"})
			last := p.create(nil)
			plan := NewPlan(target.Files, last.Files, last.Files, false)
			c.meanwhile(p)
			done, err := p.Apply(context.Background(), plan)
			require.NoError(t, err)
			all := look(t, p.root)
			if c.want == "" {
				require.NotContains(t, all, "a")
			} else {
				require.Equal(t, c.want, all["a"])
			}
			kept := []Kept{{Path: "a", Why: Meanwhile}}
			if c.want == `-rw-r--r-- "one"` {
				kept = nil
			}
			require.Equal(t, Applied{Changes: 1 - len(kept), Kept: kept}, done)
		})
	}
}

// A folder that a symlink replaced meanwhile is never written through, wherever it
// leads.
func TestNeverThroughASymlink(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"other", "../outside"} {
		p := newPlace(t, t.TempDir())
		require.NoError(t, os.MkdirAll(p.path("../outside"), 0o755))
		p.write(map[string]string{"dir/new": "one", "dir/old": "one", "other/old": "mine", "../outside/old": "mine"})
		first := p.create(nil)
		p.remove("dir/new")
		p.write(map[string]string{"dir/old": "two", "dir/gone": "two"})
		last := p.create(nil)
		plan := NewPlan(first.Files, last.Files, last.Files, false)
		require.Len(t, plan.Changes, 3)
		p.remove("dir")
		p.write(map[string]string{"dir": "-> " + target, "other/gone": "mine", "../outside/gone": "mine"})
		before := look(t, filepath.Dir(p.root))
		done, err := p.Apply(context.Background(), plan)
		require.NoError(t, err)
		require.Equal(t, []Kept{{Path: "dir/new", Why: Meanwhile}, {Path: "dir/old", Why: Meanwhile}}, done.Kept)
		require.Equal(t, before, look(t, filepath.Dir(p.root)))
	}
}

// What stands in a folder and was never recorded keeps the folder.
func TestFolderInUse(t *testing.T) {
	t.Parallel()
	p := newPlace(t, t.TempDir())
	p.write(map[string]string{"a": "one"})
	target := p.create(nil)
	p.remove("a")
	p.write(map[string]string{"a/x": "two", "b/x": "two"})
	last := p.create(nil)
	plan := NewPlan(target.Files, last.Files, last.Files, false)
	p.write(map[string]string{"a/mine": "3", "b/mine": "3"})
	done, err := p.Apply(context.Background(), plan)
	require.NoError(t, err)
	require.Equal(t, []Kept{{Path: "a", Why: Meanwhile}, {Path: "b", Why: Meanwhile}}, done.Kept)
	require.Equal(t, map[string]string{"a": `drwxr-xr-x ""`, "a/mine": `-rw-r--r-- "3"`, "b": `drwxr-xr-x ""`, "b/mine": `-rw-r--r-- "3"`}, look(t, p.root))
}

// A plan that needs more than the disk has, and one that is called off, change
// nothing.
func TestRefusedBeforeItBegins(t *testing.T) {
	t.Parallel()
	p := newPlace(t, t.TempDir())
	p.write(map[string]string{"a": "one"})
	target := p.create(nil)
	p.write(map[string]string{"a": "two", "b": "two"})
	last := p.create(nil)
	was := look(t, p.root)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := p.Apply(ctx, NewPlan(target.Files, last.Files, last.Files, false))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, was, look(t, p.root))

	huge := *target.Files.Find("a")
	huge.Size = 1 << 60
	plan := NewPlan(&files.Snapshot{At: testMeta.At, Files: []files.Fingerprint{huge}}, last.Files, last.Files, false)
	require.EqualValues(t, 1<<60, plan.Bytes())
	_, err = p.Apply(context.Background(), plan)
	require.Error(t, err)
	if runtime.GOOS == "linux" {
		require.ErrorIs(t, err, writer.ErrNoSpace)
	}
	require.Equal(t, was, look(t, p.root))
}

// A file that somebody moved is kept where it is, or with force brought back; it is
// never there twice. Links and modes of others are kept in the same way.
func TestOthersChanges(t *testing.T) {
	t.Parallel()
	p := newPlace(t, t.TempDir())
	p.write(map[string]string{"moved": "content", "edited": "one", "link": "-> edited", "loop": "one"})
	target := p.create(nil)
	p.write(map[string]string{"loop": "two"})
	last := p.create(target)
	require.NoError(t, os.Mkdir(p.path("dir"), 0o755))
	require.NoError(t, os.Rename(p.path("moved"), p.path("dir/here")))
	p.remove("link")
	p.write(map[string]string{"edited": "mine", "link": "-> moved", "mine": "mine"})
	plan, done := p.rewind(target, last, false)
	require.Equal(t, []Kept{{Path: "edited", Why: Changed}, {Path: "link", Why: Changed}, {Path: "moved", Why: Moved, To: "dir/here"}}, plan.Kept)
	require.Equal(t, Applied{Changes: 1}, done)
	require.Equal(t, map[string]string{"dir": `drwxr-xr-x ""`, "dir/here": `-rw-r--r-- "content"`, "edited": `-rw-r--r-- "mine"`,
		"link": `Lrwxrwxrwx "moved"`, "loop": `-rw-r--r-- "one"`, "mine": `-rw-r--r-- "mine"`}, look(t, p.root))

	plan, done = p.rewind(target, last, true)
	require.Empty(t, plan.Kept)
	require.Equal(t, Applied{Changes: 5}, done)
	require.Equal(t, map[string]string{"moved": `-rw-r--r-- "content"`, "edited": `-rw-r--r-- "one"`,
		"link": `Lrwxrwxrwx "edited"`, "loop": `-rw-r--r-- "one"`, "mine": `-rw-r--r-- "mine"`}, look(t, p.root))
}
