package checkpoint

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// What somebody renamed after the plan was made stays where it is. Nothing is made at the old path,
// and both paths of a move are named.
func TestRenamedBeforeApply(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, to things
		move     [2]string
		want     things
		kept     []string
	}{
		"replaced":                    {made("a", "two"), made("a", "one"), [2]string{"a", "b"}, made("b", "two"), []string{"a"}},
		"removed":                     {made("a", "two", "b", "one"), made("b", "one"), [2]string{"a", "c"}, made("b", "one", "c", "two"), nil},
		"mode":                        {made("a", "one"), made("a", "one").with(map[string]fs.FileMode{"a": 0o600}), [2]string{"a", "b"}, made("b", "one"), []string{"a"}},
		"untouched":                   {made("u", "mine", "a", "two"), made("u", "mine", "a", "one"), [2]string{"u", "v"}, made("v", "mine", "a", "one"), nil},
		"to be made":                  {made("u", "mine"), made("u", "mine", "a", "one"), [2]string{"u", "a"}, made("a", "mine"), []string{"a"}},
		"moved":                       {made("q", "one"), made("p", "one"), [2]string{"q", "r"}, made("r", "one"), []string{"p", "q"}},
		"moved, of another mode":      {made("q", "one"), made("p", "one").with(map[string]fs.FileMode{"p": 0o600}), [2]string{"q", "r"}, made("r", "one"), []string{"p", "q"}},
		"an empty file":               {made("q/", "", "q/e", ""), made("p/", "", "p/e", ""), [2]string{"q/e", "r"}, made("r", ""), []string{"p", "p/e", "q/e"}},
		"a symlink":                   {made("q", "-> x"), made("p", "-> x"), [2]string{"q", "r"}, made("r", "-> x"), []string{"p", "q"}},
		"moved back":                  {made("q", "one"), made("p", "one"), [2]string{"q", "p"}, made("p", "one"), nil},
		"replaced by one":             {made("a", "two"), made("a", "one", "b", "two"), [2]string{"a", "d"}, made("d", "two"), []string{"a", "b"}},
		"moved, and another one made": {made("a", "new", "q", "one"), made("a", "one"), [2]string{"q", "r"}, made("a", "new", "r", "one"), []string{"a", "q"}},
		"exchanged":                   {made("a", "two", "b", "one"), made("a", "one", "b", "two"), [2]string{"b", "r"}, made("a", "two", "r", "one"), []string{"a", "b"}},
		"moved folder": {made("q/", "", "q/x", "1", "q/s/", "", "q/s/y", "2"), made("p/", "", "p/x", "1", "p/s/", "", "p/s/y", "2"), [2]string{"q", "r"},
			made("r/", "", "r/x", "1", "r/s/", "", "r/s/y", "2"), []string{"p", "p/s", "p/s/y", "p/x", "q/s/y", "q/x"}},
		"moved folder with another file": {made("q/", "", "q/x", "1"), made("p/", "", "p/x", "1", "p/z", "3"), [2]string{"q", "r"},
			made("r/", "", "r/x", "1", "p/", "", "p/z", "3"), []string{"p/x", "q/x"}},
		"folder of the task": {made("q/", "", "q/x", "1"), made(), [2]string{"q", "r"}, made("r/", "", "r/x", "1"), nil},
	} {
		blobs, tree := stored(t, c.to), onDisk(t, c.from)
		plan := planOf(t, blobs, c.from, c.to)
		require.NoError(t, tree.Rename(c.move[0], c.move[1]), name)
		for range 2 {
			done, err := try(tree, blobs).Apply(tContext(), plan)
			require.NoError(t, err, name)
			requireThings(t, c.want, seen(t, tree), "%s", name)
			var kept []string
			for _, k := range done.Retained {
				require.Equal(t, Meanwhile, k.Why, name)
				kept = append(kept, k.Path)
			}
			slices.Sort(kept)
			require.Equal(t, c.kept, kept, name)
		}
	}
}

// A file that a task moved is moved back, with all that it has: it is not written again. One with
// another name is, and so is one of another mode.
func TestMovedBackByRename(t *testing.T) {
	t.Parallel()
	from := made("q/", "", "q/x", "1", "q/l", "-> x", "q/m", "2", "q/h", "3").with(map[string]fs.FileMode{"q/m": 0o600})
	to := made("p/", "", "p/x", "1", "p/l", "-> x", "p/m", "2", "p/h", "3", "other", "3")
	blobs, tree := stored(t, to), onDisk(t, from)
	from["other"] = from["q/h"]
	require.NoError(t, tree.Link("q/h", "other"))
	was := map[string]fs.FileInfo{}
	for _, name := range []string{"x", "l", "m", "h"} {
		info, err := tree.Lstat("q/" + name)
		require.NoError(t, err)
		was[name] = info
	}
	plan := planOf(t, blobs, from, to)
	done, err := try(tree, blobs).Apply(tContext(), plan)
	require.NoError(t, err)
	require.Equal(t, Applied{Changes: len(plan.Changes)}, done)
	requireThings(t, to, seen(t, tree), "moved")
	for name, same := range map[string]bool{"x": true, "l": true, "m": false, "h": false} {
		info, err := tree.Lstat("p/" + name)
		require.NoError(t, err)
		require.Equal(t, same, writer.SameFile(was[name], info), name)
	}
}

// TestRenamedInTheMiddle renames each file and folder after each call of an Apply that changes
// something. What was renamed stays as it is, nothing is lost or there twice, and each path that is
// not what the plan wants is named.
func TestRenamedInTheMiddle(t *testing.T) {
	t.Parallel()
	from := made("a", "A2", "d/", "", "d/e/", "", "d/e/f", "moved 1", "d/e/g", "moved 2", "d/n", "new", "mode", "M", "r", "R2", "t/", "", "t/x", "in t", "u", "mine", "w/", "", "w/v", "mine too")
	to := made("a", "A1", "c/", "", "c/f", "moved 1", "c/h/", "", "c/h/g", "moved 2", "gone", "G", "d/", "", "mode", "M+x", "r", "R1", "s", "R2", "t", "T", "u", "mine", "w/", "", "w/v", "mine too")
	to["mode"] = thing{0o755, "M"}
	blobs := stored(t, from, to)
	plan := planOf(t, blobs, from, to)
	dirs := onDisk(t, nil)
	once := func(n int, victim string) (calls int) {
		require.NoError(t, dirs.Mkdir("tree", 0o700))
		tree, err := dirs.Sub("tree")
		require.NoError(t, err)
		from.lay(t, tree)
		s, then := try(tree, blobs), things(nil)
		s.then = func() {
			if calls++; calls == n && tree.Rename(victim, "renamed") == nil {
				then = seen(t, tree)
			}
		}
		done, err := s.Apply(tContext(), plan)
		require.NoError(t, err, "%d %s", n, victim)
		if then != nil {
			requireRenamed(t, done, from, to, then, seen(t, tree), victim)
		}
		require.NoError(t, tree.Close())
		require.NoError(t, dirs.RemoveAll("tree"))
		return calls
	}
	calls := once(-1, "")
	require.Greater(t, calls, 20)
	for n := 1; n <= calls; n += sparse() {
		for victim := range eitherOf(from, to) {
			once(n, victim)
		}
	}
}

func eitherOf(a, b things) map[string]bool {
	all := map[string]bool{}
	for _, some := range []things{a, b} {
		for name := range some {
			all[name] = true
		}
	}
	return all
}

// requireRenamed checks the tree after an Apply in which a path was renamed. then is the tree right
// after that.
func requireRenamed(t *testing.T, done Applied, from, to, then, end things, victim string) {
	staged := func(name string) bool { return strings.HasPrefix(path.Base(name), tempPrefix) }
	mine := func(name string) bool { return name == "renamed" || strings.HasPrefix(name, "renamed/") }
	at := map[string]string{}
	for name, it := range end {
		if staged(name) || it.mode.IsDir() {
			continue
		}
		require.Empty(t, at[it.text], "%s: %q is at %s, too", victim, it.text, name)
		at[it.text] = name
	}
	for name, it := range then {
		if mine(name) && !staged(name) {
			require.Equal(t, it.text, end[name].text, "%s: what was renamed stays as it is", victim)
		}
		if stays := slices.Contains([]string{"mine", "mine too", "moved 1", "moved 2", "M"}, it.text); stays && !staged(name) {
			require.NotEmpty(t, at[it.text], "%s: %q is lost", victim, it.text)
		}
	}
	for name := range eitherOf(end, to) {
		if mine(name) {
			_, was := then[name]
			require.True(t, was || staged(name), "%s: %s was made", victim, name)
			continue
		}
		named := slices.ContainsFunc(done.Retained, func(k Retained) bool {
			return k.Path == name || strings.HasPrefix(k.Path, name+"/") || strings.HasPrefix(name, k.Path+"/")
		})
		untouched := !alike(then, to, name) && alike(from, to, name) // it was renamed, and is not in the plan
		gone := name == victim || strings.HasPrefix(name, victim+"/")
		require.True(t, alike(end, to, name) || named || untouched || gone || staged(name), "%s: %s is %v, not %v, and not named: %v", victim, name, end[name], to[name], done.Retained)
	}
}

// A file that is saved by a rename while Apply reads what it is about to replace is kept.
func TestSavedWhileItIsRead(t *testing.T) {
	t.Parallel()
	from, to := made("a", "two", "b", "two"), made("a", "one")
	blobs, disk := stored(t, to), crashfs.New(crashfs.Ext4)
	tree := disk.FS()
	from.lay(t, tree)
	begun, saved := false, map[string]bool{}
	disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		begun = begun || op.Call == "sync" && strings.Contains(op.Name, tempPrefix)
		if begun && op.Call == "read" && !saved[op.Name] && from[op.Name].text != "" {
			saved[op.Name] = true
			require.NoError(t, writer.ReplaceFile(tree, op.Name, []byte("2nd"), 0o644))
		}
		return crashfs.Fault{}
	})
	done, err := New(nil, MainTree, blobs, tree, Options{}).Apply(tContext(), planOf(t, blobs, from, to))
	disk.SetHook(nil)
	require.NoError(t, err)
	require.Len(t, saved, 2)
	require.ElementsMatch(t, []Retained{{Path: "a", Why: Meanwhile}, {Path: "b", Why: Meanwhile}}, done.Retained)
	requireThings(t, made("a", "2nd", "b", "2nd"), seen(t, tree), "kept")
}

// What is put at a path in the moment in which a file is made there is not replaced.
func TestPutThereInTheMoment(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ from, to, want things }{
		"made":  {made("u", "mine"), made("u", "mine", "p", "one"), made("p", "mine")},
		"moved": {made("u", "mine", "q", "one"), made("u", "mine", "p", "one"), made("p", "mine", "q", "one")},
	} {
		blobs, tree := stored(t, c.to), onDisk(t, c.from)
		s := try(tree, blobs)
		s.before = func(call, name string) error {
			if call == "rename" && name == "p" {
				_ = tree.Rename("u", "p")
			}
			return nil
		}
		done, err := s.Apply(tContext(), planOf(t, blobs, c.from, c.to))
		require.NoError(t, err, name)
		require.Contains(t, done.Retained, Retained{Path: "p", Why: Meanwhile}, name)
		requireThings(t, c.want, seen(t, tree), "%s", name)
	}
}

// A file that somebody moves to and fro between its two paths is not removed.
func TestMovedToAndFro(t *testing.T) {
	t.Parallel()
	from, to := made("q", "one", "z", "z"), made("p", "one", "z", "y")
	blobs := stored(t, to)
	plan := planOf(t, blobs, from, to)

	// It is back where the plan saw it before Apply begins, and goes on after Apply looked.
	tree := onDisk(t, from)
	require.NoError(t, tree.Rename("q", "p"))
	s := try(tree, blobs)
	s.then = func() { _ = tree.Rename("p", "q") }
	_, err := s.Apply(tContext(), plan)
	require.NoError(t, err)
	requireThings(t, made("q", "one", "z", "y"), seen(t, tree), "after the look")

	// It goes to and fro between the looks at the two paths.
	disk := crashfs.New(crashfs.Ext4)
	from.lay(t, disk.FS())
	require.NoError(t, disk.FS().Link("q", "p"))
	begun, step := false, 0
	disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if begun = begun || op.Call == "rename"; !begun || op.Call != "lstat" {
			return crashfs.Fault{}
		}
		switch {
		case step == 0 && op.Name == "q":
			step = 1
			require.NoError(t, disk.FS().Remove("p"))
		case step == 1 && op.Name == "p":
			step = 2
			require.NoError(t, disk.FS().Rename("q", "p"))
		case step == 2 && op.Name == "q":
			step = 3
			require.NoError(t, disk.FS().Rename("p", "q"))
		}
		return crashfs.Fault{}
	})
	done, err := New(nil, MainTree, blobs, disk.FS(), Options{}).Apply(tContext(), plan)
	disk.SetHook(nil)
	require.NoError(t, err)
	require.Equal(t, 2, step, "the second look found the same file")
	require.Equal(t, []Retained{{Path: "q", Why: Meanwhile}}, done.Retained)
	requireThings(t, made("p", "one", "z", "y"), seen(t, disk.FS()), "between the looks")
}

// The other path of a moved file keeps it if the file cannot be made at the first one.
func TestMovedAndNotMade(t *testing.T) {
	t.Parallel()
	from, to := made("q", "one"), made("p", "one")
	blobs, tree := stored(t, to), onDisk(t, from)
	require.NoError(t, tree.Link("q", "other")) // so that it is written again
	s := try(tree, blobs)
	s.then = func() { _ = tree.Rename("p", "r") }
	done, err := s.Apply(tContext(), planOf(t, blobs, from, to))
	require.NoError(t, err)
	require.Equal(t, []Retained{{Path: "q", Why: Meanwhile}}, done.Retained)
	requireThings(t, made("q", "one", "other", "one", "r", "one"), seen(t, tree), "kept")
}

// A file that is moved across a border of the kernel is written again.
func TestMovedAcrossABorder(t *testing.T) {
	t.Parallel()
	from, to := made("q", "one"), made("p", "one")
	blobs, disk := stored(t, to), crashfs.New(crashfs.Ext4)
	from.lay(t, disk.FS())
	plan := planOf(t, blobs, from, to)
	refused := false
	disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "rename" && !refused {
			refused = true
			return crashfs.Fault{Err: syscall.EXDEV}
		}
		return crashfs.Fault{}
	})
	done, err := New(nil, MainTree, blobs, disk.FS(), Options{}).Apply(tContext(), plan)
	disk.SetHook(nil)
	require.NoError(t, err)
	require.True(t, refused)
	require.Equal(t, Applied{Changes: 2}, done)
	requireThings(t, to, seen(t, disk.FS()), "moved")
}

// A file of which only the mode is to change keeps it if somebody puts another one in its place.
func TestModeOfAnotherFile(t *testing.T) {
	t.Parallel()
	from := made("a", "one", "z", "two")
	to := made("a", "one", "z", "three").with(map[string]fs.FileMode{"a": 0o600})
	blobs, disk := stored(t, to), crashfs.New(crashfs.Ext4)
	from.lay(t, disk.FS())
	plan, opened := planOf(t, blobs, from, to), 0
	disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.Call != "open" || op.Name != "a" {
			return crashfs.Fault{}
		}
		if opened++; opened == 2 {
			require.NoError(t, writer.ReplaceFile(disk.FS(), "a", []byte("mine"), 0o644))
		}
		return crashfs.Fault{}
	})
	done, err := New(nil, MainTree, blobs, disk.FS(), Options{}).Apply(tContext(), plan)
	disk.SetHook(nil)
	require.NoError(t, err)
	require.Equal(t, []Retained{{Path: "a", Why: Meanwhile}}, done.Retained)
	requireThings(t, made("a", "mine", "z", "three"), seen(t, disk.FS()), "kept")
}

// What moves out of a folder that a file replaces is removed with the folder before it is made. An
// Apply after a kill makes it all the same.
func TestMovedOutOfATurn(t *testing.T) {
	t.Parallel()
	from, to := made("t/", "", "t/x", "one"), made("t", "two", "u", "one")
	blobs := stored(t, to)
	plan := planOf(t, blobs, from, to)
	for n := 0; ; n++ {
		tree := onDisk(t, from)
		s := try(tree, blobs)
		s.left = n
		_, err := s.Apply(tContext(), plan)
		finish(t, try(tree, blobs), plan, to, "killed")
		if err == nil {
			break
		}
		require.ErrorIs(t, err, errKilled)
	}
}

// The power is cut before each call of an Apply that moves files into a new folder, in every variant.
// The next Apply finds each of them.
func TestPowerCutInAMove(t *testing.T) {
	t.Parallel()
	from := made("q/", "", "q/x", "one", "q/y", "two").with(map[string]fs.FileMode{"q/y": 0o600})
	to := made("p/", "", "p/s/", "", "p/s/x", "one", "p/s/y", "two")
	blobs, disk := stored(t, to), crashfs.New(crashfs.Ext4)
	from.lay(t, disk.FS())
	plan, points := planOf(t, blobs, from, to), []*crashfs.Disk(nil)
	disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.N > 0 {
			points = append(points, disk.Snapshot())
		}
		return crashfs.Fault{}
	})
	apply := func(disk *crashfs.Disk, msg string) {
		done, err := New(nil, MainTree, blobs, disk.FS(), Options{}).Apply(tContext(), plan)
		require.NoError(t, err, msg)
		require.Equal(t, Applied{Changes: len(plan.Changes)}, done, msg)
	}
	apply(disk, "not cut")
	disk.SetHook(nil)
	for n, point := range points {
		for _, v := range point.Variants(nil, 0) {
			cut := point.Crash(v)
			apply(cut, fmt.Sprint(n, ", ", v.Name))
			requireThings(t, to, seen(t, cut.Crash(crashfs.Variant{}).FS()), "%d, %s", n, v.Name)
		}
	}
}
