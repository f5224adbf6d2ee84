package checkpoint

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// large is a content that is too large for a pack.
var large = strings.Repeat("large\n", 20<<10)

// A tree before and after a task that does everything that a task can do.
var (
	before = made("a", "one", "gone/", "", "gone/x", "two", "gone/deep/", "", "gone/deep/y", "three", "mode", "same+x", "link", "-> a",
		"swap", "a file", "turn/", "", "turn/z", "four", "moved", "five", "empty/", "", "ro/", "", "ro/f", "one", "ro/shut/", "", "ro/shut/g", "one").
		with(map[string]fs.FileMode{"ro/shut": 0o555})
	after = made("a", "ONE!", "mode", "same+x", "link", "-> mode", "swap/", "", "swap/in", "six", "turn", "a file", "new/", "", "new/moved", "five",
		"new/w", "seven", "ro/", "", "ro/f", "two", "ro/shut/", "", "ro/shut/g", "two").
		with(map[string]fs.FileMode{"mode": 0o600, "ro": 0o500, "ro/shut": 0o555})
)

// A field is a simulated disk with the tree after the task, the contents of the one
// before, and the plan of the way back.
type field struct {
	*crashfs.Disk
	blobs *blob.Store
	plan  *Plan
}

func newField(t require.TestingT, mode crashfs.Mode) field { return newFieldOf(t, mode, before) }

func newFieldOf(t require.TestingT, mode crashfs.Mode, to things) field {
	disk := crashfs.New(mode)
	for _, name := range []string{"blobs", "tree"} {
		require.NoError(t, disk.FS().Mkdir(name, 0o700))
	}
	require.NoError(t, disk.FS().SyncDir("."))
	f := field{Disk: disk}
	f.blobs = blob.New(f.sub(t, "blobs"))
	put(t, f.blobs, to)
	after.lay(t, f.tree(t))
	f.plan = planOf(t, f.blobs, after, to)
	return f.on(t, disk.Crash(crashfs.Variant{})) // all of it is durable
}

func (f field) sub(t require.TestingT, name string) writer.FS {
	dir, err := f.FS().Sub(name)
	require.NoError(t, err)
	return dir
}

func (f field) tree(t require.TestingT) writer.FS { return f.sub(t, "tree") }

// on is the same on another disk.
func (f field) on(t require.TestingT, disk *crashfs.Disk) field {
	f.Disk = disk
	f.blobs = blob.New(f.sub(t, "blobs"))
	return f
}

func (f field) store(t require.TestingT) *Store {
	return New(nil, MainTree, f.blobs, f.tree(t), Options{})
}

func (f field) apply(t require.TestingT) (Applied, error) {
	return f.store(t).Apply(tContext(), f.plan)
}

func (f field) seen(t require.TestingT) things {
	return seen(t, f.on(t, f.Snapshot()).tree(t))
}

// again applies the plan and requires the wanted tree, also after a power cut.
func (f field) again(t require.TestingT, msg string) {
	done, err := f.apply(t)
	require.NoError(t, err, msg)
	require.Empty(t, done.Retained, msg)
	requireThings(t, before, f.seen(t), "%s", msg)
	requireThings(t, before, f.on(t, f.Crash(crashfs.Variant{})).seen(t), "%s, and a power cut", msg)
}

// sparse is how far apart the calls are before which the power is cut, or which fail.
func sparse() int {
	if testing.Short() {
		return 4
	}
	return 1
}

// TestPowerCutInApply cuts the power before every call of Apply, in every variant.
func TestPowerCutInApply(t *testing.T) {
	t.Parallel()
	f := newField(t, crashfs.Ext4)
	var mu sync.Mutex
	points := map[string]*crashfs.Disk{}
	f.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.N > 0 && op.N%sparse() == 0 {
			mu.Lock()
			defer mu.Unlock()
			points[fmt.Sprintf("%d, %s %s", op.N, op.Call, op.Name)] = f.Snapshot()
		}
		return crashfs.Fault{}
	})
	f.again(t, "not cut")
	f.SetHook(nil)
	require.Greater(t, len(points), 60/sparse())
	for at, point := range points {
		for _, v := range point.Variants(nil, 0) {
			f.on(t, point.Crash(v)).again(t, at+", "+v.Name)
		}
		f.on(t, point).again(t, "killed before "+at)
	}
}

// TestApplyFaults fails each call of Apply once. Before anything is in its place the
// tree is as it was; after any fault applying again finishes it.
func TestApplyFaults(t *testing.T) {
	t.Parallel()
	first := newField(t, crashfs.Ext4)
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EIO} {
		failed := 0
		for n := 1; ; n += sparse() {
			f := first.on(t, first.Snapshot())
			var mu sync.Mutex
			count, hit, folder, s := 0, "", false, f.store(t)
			f.SetHook(func(op crashfs.Op) crashfs.Fault {
				mu.Lock()
				defer mu.Unlock()
				if count++; count != n {
					return crashfs.Fault{}
				}
				info, err := f.Snapshot().FS().Lstat(op.Name)
				hit, folder = op.Call+" "+op.Name, err == nil && info.IsDir()
				return crashfs.Fault{Err: errno}
			})
			_, err := s.Apply(tContext(), f.plan)
			f.SetHook(nil)
			if hit == "" {
				require.NoError(t, err)
				require.Greater(t, failed, 100/sparse())
				break
			}
			var e *writer.Error
			switch {
			case err == nil:
				requireThings(t, before, f.seen(t), "no error from %s", hit)
				require.False(t, strings.HasPrefix(hit, "sync") || strings.HasPrefix(hit, "write"), hit)
			case strings.HasPrefix(hit, "stat") || strings.HasPrefix(hit, "readdir"):
				failed++
			default:
				failed++
				require.ErrorIs(t, err, errno, hit)
				require.ErrorAs(t, err, &e, hit)
			}
			if unchanged := e != nil && e.Outcome == writer.NotCommitted; unchanged {
				require.ErrorIs(t, err, ErrUnchanged, hit)
				if !strings.HasPrefix(hit, "chmod") { // which may be the one that closes a folder
					requireThings(t, after, f.seen(t), "%s", hit)
				}
			}
			if folder && strings.HasPrefix(hit, "sync") && e.Outcome == writer.NotDurable {
				// The kernel dropped what it was to write, and no later sync says so: the
				// error did.
				done, err := f.apply(t)
				require.NoError(t, err)
				require.Empty(t, done.Retained)
				requireThings(t, before, f.seen(t), "%s", hit)
				continue
			}
			f.again(t, hit)
		}
	}
}

// A blob that is missing or damaged, and a disk without room, are found before
// anything changes.
func TestNothingChangesWhenItCannotBeDone(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(f field, file string) error{
		"missing": func(f field, file string) error { return f.FS().Remove(file) },
		"damaged": func(f field, file string) error {
			return writer.ReplaceFile(f.FS(), file, []byte(large[1:]+"!"), 0o600)
		},
		"no space":  func(f field, _ string) error { f.Capacity(1, 0); return nil },
		"no inodes": func(f field, _ string) error { f.Capacity(0, 1); return nil },
	} {
		to := maps.Clone(before)
		to["gone/deep/y"] = thing{0o644, large}
		f := newFieldOf(t, crashfs.Ext4, to)
		text := to.print(f.blobs, "gone/deep/y").Hash.String()
		require.NoError(t, spoil(f, "blobs/"+text[:2]+"/"+text[2:]))
		_, err := f.apply(t)
		require.ErrorIs(t, err, ErrUnchanged, name)
		if strings.HasPrefix(name, "no ") {
			require.Equal(t, writer.ClassNoSpace, writer.ClassOf(err), "%s: %v", name, err)
		} else {
			require.ErrorIs(t, err, envelope.ErrCorrupt, name)
			require.ErrorContains(t, err, text, name)
		}
		requireThings(t, after, f.seen(t), "%s", name)
	}
}

// TestApplyDenied denies each call that would change something in one folder. Before
// anything can be seen that is found out; where the plan is content with what is
// permitted all the rest is done, and what is not is named; applying it once more,
// with permission, does that as well.
func TestApplyDenied(t *testing.T) {
	t.Parallel()
	first := newField(t, crashfs.Ext4)
	for folder, want := range map[string][]string{
		"tree/new":  {"new", "new/moved", "new/w"},
		"tree/swap": {"swap", "swap/in"},
		"tree/ro":   {"ro/f"},
		"tree":      {"a", "empty", "gone", "gone/deep", "gone/deep/y", "gone/x", "link", "mode", "moved", "new", "new/moved", "ro", "swap", "turn", "turn/z"},
	} {
		for _, permitted := range []bool{false, true} {
			f := first.on(t, first.Snapshot())
			f.SetHook(func(op crashfs.Op) crashfs.Fault {
				switch op.Call {
				case "create", "mkdir", "remove", "rename", "symlink", "chmod":
					if path.Dir(op.Name) == folder {
						return crashfs.Fault{Err: syscall.EACCES}
					}
				}
				return crashfs.Fault{}
			})
			plan := *f.plan
			plan.Permitted = permitted
			f.plan = &plan
			done, err := f.apply(t)
			f.SetHook(nil)
			if !permitted {
				require.ErrorIs(t, err, ErrUnchanged, folder)
				require.Equal(t, writer.ClassDenied, writer.ClassOf(err), folder)
				requireThings(t, after, f.seen(t), "%s", folder)
			} else {
				require.NoError(t, err, folder)
				var retained []string
				for _, k := range done.Retained {
					require.Equal(t, Denied, k.Why, k.Path)
					retained = append(retained, k.Path)
				}
				slices.Sort(retained)
				require.Equal(t, want, retained, folder)
				require.Equal(t, len(plan.Changes), done.Changes+len(retained))
			}
			f.again(t, folder)
		}
	}
}

// TestApplyClosesWhatItOpened has Apply give itself permissions in folders, and then find
// that something else may not be changed.
func TestApplyClosesWhatItOpened(t *testing.T) {
	t.Parallel()
	f := newField(t, crashfs.Ext4)
	opened := 0
	f.SetHook(func(op crashfs.Op) crashfs.Fault {
		switch {
		case op.Call == "chmod" && strings.HasPrefix(op.Name, "tree/ro"):
			opened++
		case op.Call == "create" && path.Dir(op.Name) == "tree/new":
			return crashfs.Fault{Err: syscall.EACCES}
		}
		return crashfs.Fault{}
	})
	_, err := f.apply(t)
	f.SetHook(nil)
	require.ErrorIs(t, err, ErrUnchanged)
	require.Equal(t, 4+2+1, opened) // and the two files' new contents, and the try of a mode
	requireThings(t, after, f.seen(t), "closed")
	requireThings(t, after, f.on(t, f.Crash(crashfs.Variant{})).seen(t), "closed, durably")
}

// A change that somebody makes while Apply writes the new contents to temporary files is
// kept: Apply looks at each path again before it replaces or removes what is there.
func TestChangedWhileItIsApplied(t *testing.T) {
	t.Parallel()
	from, to := made("a", "two", "b", "two"), made("a", "one")
	blobs, disk := stored(t, to), crashfs.New(crashfs.Ext4)
	tree := disk.FS()
	from.lay(t, tree)
	disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "sync" && strings.Contains(op.Name, tempPrefix) {
			disk.SetHook(nil)
			require.NoError(t, writer.ReplaceFile(tree, "a", []byte("mine"), 0o600))
			require.NoError(t, writer.ReplaceFile(tree, "b", []byte("mine"), 0o600))
		}
		return crashfs.Fault{}
	})
	done, err := New(nil, MainTree, blobs, tree, Options{}).Apply(tContext(), planOf(t, blobs, from, to))
	require.NoError(t, err)
	require.Equal(t, []Retained{{Path: "a", Why: Meanwhile}, {Path: "b", Why: Meanwhile}}, done.Retained)
	requireThings(t, made("a", "mine", "b", "mine").with(map[string]fs.FileMode{"a": 0o600, "b": 0o600}), seen(t, tree), "kept")
}

// Apply reads a file right before it replaces or removes it, and keeps a file that
// changed. This includes a change that left size and times as they were, such as a store
// through a mapping.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	old := time.Now().Add(-time.Hour)
	for name, c := range map[string]struct {
		meanwhile func(at string) error
		want      thing
	}{
		"another content": {func(at string) error { return os.WriteFile(at, []byte("three"), 0o644) }, thing{0o644, "three"}},
		"the same size and time": {func(at string) error {
			_ = os.WriteFile(at, []byte("TWO"), 0o644)
			return os.Chtimes(at, old, old)
		}, thing{0o644, "TWO"}},
		"another mode": {func(at string) error { return os.Chmod(at, 0o600) }, thing{0o600, "two"}},
		"a symlink": {func(at string) error {
			_ = os.Remove(at)
			return os.Symlink("b", at)
		}, thing{fs.ModeSymlink, "b"}},
		"a folder": {func(at string) error {
			_ = os.Remove(at)
			return os.Mkdir(at, 0o755)
		}, thing{fs.ModeDir | 0o755, ""}},
		"already as wanted": {func(at string) error { return os.WriteFile(at, []byte("one"), 0o644) }, thing{0o644, "one"}},
		"only touched":      {func(at string) error { return os.Chtimes(at, time.Now(), time.Now()) }, thing{0o644, "one"}},
	} {
		from, to := made("a", "two", "gone", "two"), made("a", "one")
		blobs, tree := stored(t, to), onDisk(t, from)
		plan := planOf(t, blobs, from, to)
		var retained []Retained
		for _, file := range []string{"a", "gone"} {
			at := filepath.Join(tree.Name(), file)
			require.NoError(t, os.Chtimes(at, old, old))
			require.NoError(t, c.meanwhile(at), name)
			if c.want.text != "one" || file == "gone" && name == "already as wanted" {
				retained = append(retained, Retained{Path: file, Why: Meanwhile})
			}
		}
		done, err := try(tree, blobs).Apply(tContext(), plan)
		require.NoError(t, err)
		require.Equal(t, Applied{Changes: 2 - len(retained), Retained: retained}, done, name)
		want := things{"a": c.want}
		if len(retained) > 0 {
			want["gone"] = c.want
		}
		requireThings(t, want, seen(t, tree), "%s", name)
	}
}

// Apply never follows a symlink that replaced a folder meanwhile, wherever it leads.
func TestNeverThroughASymlink(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"../other", "../../outside"} {
		from, to := made("dir/", "", "dir/old", "two", "dir/gone", "two"), made("dir/", "", "dir/old", "one", "dir/new", "one")
		others := made("dir", "-> "+target, "other/", "", "other/old", "two", "other/gone", "two")
		blobs, tree, outside := stored(t, to), onDisk(t, others), made("old", "two", "gone", "two")
		outer := onDisk(t, outside)
		if target != "../other" {
			others["dir"] = thing{fs.ModeSymlink, outer.Name()}
			require.NoError(t, tree.Remove("dir"))
			require.NoError(t, tree.Symlink(outer.Name(), "dir"))
		}
		done, err := try(tree, blobs).Apply(tContext(), planOf(t, blobs, from, to))
		require.NoError(t, err)
		require.ElementsMatch(t, []Retained{{Path: "dir/new", Why: Meanwhile}, {Path: "dir/old", Why: Meanwhile}}, done.Retained)
		requireThings(t, others, seen(t, tree), "inside")
		requireThings(t, outside, seen(t, outer), "outside")
	}
}

// A folder that has something in it that was never recorded stays, with its mode.
func TestFolderInUse(t *testing.T) {
	t.Parallel()
	modes := map[string]fs.FileMode{"a": 0o555, "b": 0o500}
	from, to := made("a/", "", "a/x", "two", "b/", "", "b/x", "two").with(modes), made("a", "one")
	blobs := stored(t, to)
	plan := planOf(t, blobs, from, to)
	found := made("a/", "", "a/x", "two", "a/mine", "3", "b/", "", "b/x", "two", "b/mine", "3").with(modes)
	tree := onDisk(t, found)
	done, err := try(tree, blobs).Apply(tContext(), plan)
	require.NoError(t, err)
	require.Equal(t, []Retained{{Path: "a", Why: Meanwhile}, {Path: "b", Why: Meanwhile}}, done.Retained)
	requireThings(t, made("a/", "", "a/mine", "3", "b/", "", "b/mine", "3").with(modes), seen(t, tree), "in use")
}

// A plan that needs more space than the disk has changes nothing. Neither does a plan
// whose context is canceled.
func TestRefusedBeforeItBegins(t *testing.T) {
	t.Parallel()
	from, to := made("a", "two", "b", "two"), made("a", "one")
	blobs, tree := stored(t, to), onDisk(t, from)
	plan := planOf(t, blobs, from, to)
	ctx, cancel := context.WithCancel(tContext())
	cancel()
	_, err := try(tree, blobs).Apply(ctx, plan)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, ErrUnchanged)
	requireThings(t, from, seen(t, tree), "called off")

	plan.Changes[0].New.Size = 1 << 60
	_, err = try(tree, blobs).Apply(tContext(), plan)
	require.ErrorIs(t, err, ErrUnchanged)
	if runtime.GOOS == "linux" {
		require.Equal(t, writer.ClassNoSpace, writer.ClassOf(err), "%v", err)
	}
	requireThings(t, from, seen(t, tree), "no room")
}

// A person's file whose name begins like the name of a temporary file stays. So does a
// temporary file that another rewind left.
func TestTemporaryNamesAreTheRewinds(t *testing.T) {
	t.Parallel()
	mine := made("a", "two", tempPrefix+"notes", "mine", tempPrefix+strings.Repeat("0", 32), "mine")
	to := made("a", "one")
	blobs, tree := stored(t, to), onDisk(t, mine)
	plan := planOf(t, blobs, made("a", "two"), to)
	s := try(tree, blobs)
	s.before = func(call, _ string) error {
		if call == "rename" {
			s.left = 0
		}
		return nil
	}
	_, err := s.Apply(tContext(), plan)
	require.NoError(t, err, "the last call that is let through")
	delete(mine, "a")
	other := *plan
	other.id = "c5"
	for _, p := range []*Plan{&other, plan} {
		_, err = try(tree, blobs).Apply(tContext(), p)
		require.NoError(t, err)
		mine["a"] = to["a"]
		requireThings(t, mine, seen(t, tree), "others stay")
	}
}

// No plan, whatever it contains, changes something in .git or .lopen.
func TestReservedNamesAreNotEntered(t *testing.T) {
	t.Parallel()
	from := made(".git/", "", ".git/config", "two", "a/", "", "a/.LOPEN/", "", "a/.LOPEN/x", "two").with(map[string]fs.FileMode{".git": 0o500})
	to := made(".git/", "", ".git/config", "one", "a/", "", "new", "one")
	blobs, tree := stored(t, to), onDisk(t, from)
	done, err := try(tree, blobs).Apply(tContext(), planOf(t, blobs, from, to))
	require.NoError(t, err)
	require.Equal(t, 1, done.Changes)
	require.Len(t, done.Retained, 4)
	from["new"] = to["new"]
	requireThings(t, from, seen(t, tree), "entered")
}

// A file with holes is restored with holes, which take no space.
func TestSparse(t *testing.T) {
	t.Parallel()
	const size = 4 << 20
	to := things{"sparse": {0o644, strings.Repeat("\x00", size) + "middle" + strings.Repeat("\x00", size)}}
	blobs, tree := stored(t, to), onDisk(t, nil)
	_, err := try(tree, blobs).Apply(tContext(), planOf(t, blobs, nil, to))
	require.NoError(t, err)
	requireThings(t, to, seen(t, tree), "sparse")
	require.Less(t, diskBytes(t, filepath.Join(tree.Name(), "sparse")), int64(1<<20))
}
