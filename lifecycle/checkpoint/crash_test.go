package checkpoint

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// simulated opens a project, its checkpoints and the blobs on a simulated disk.
func simulated(t require.TestingT, disk *crashfs.Disk) *Store {
	var all [3]writer.FS
	for i, name := range []string{"checkpoints", "blobs", "tree"} {
		require.NoError(t, writer.MkdirDurable(disk.FS(), name))
		var err error
		all[i], err = disk.FS().Sub(name)
		require.NoError(t, err)
	}
	return New(all[0], blob.New(all[1]), all[2])
}

// lay makes a tree what contents say, durably; see place.write.
func lay(t require.TestingT, tree writer.FS, contents ...string) {
	entries, err := tree.ReadDir(".")
	require.NoError(t, err)
	for _, e := range entries {
		require.NoError(t, tree.RemoveAll(e.Name()))
	}
	for i := 0; i < len(contents); i += 2 {
		name, content := contents[i], contents[i+1]
		switch target, link := strings.CutPrefix(content, "-> "); {
		case strings.HasSuffix(name, "/"):
			require.NoError(t, writer.MkdirDurable(tree, strings.TrimSuffix(name, "/")))
		case link:
			require.NoError(t, writer.ReplaceSymlink(tree, target, name))
		case strings.HasSuffix(content, "+x"):
			require.NoError(t, writer.ReplaceFile(tree, name, []byte(content), 0o755))
		default:
			require.NoError(t, writer.ReplaceFile(tree, name, []byte(content), 0o644))
		}
	}
	require.NoError(t, tree.SyncDir("."))
}

// The trees before and after a task that does everything that a task can do.
var (
	treeBefore = []string{"a", "one", "gone/", "", "gone/x", "two", "gone/deep/", "", "gone/deep/y", "three", "mode", "same+x", "link", "-> a",
		"swap", "a file", "turn/", "", "turn/z", "four", "moved", "five", "empty/", ""}
	treeAfter = []string{"a", "ONE!", "mode", "same+x", "link", "-> mode", "swap/", "", "swap/in", "six", "turn", "a file", "new/", "", "new/moved", "five", "new/w", "seven"}
)

// seen is the tree as it is found.
func seen(t require.TestingT, tree writer.FS) map[string]string {
	all := map[string]string{}
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := tree.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			info, err := tree.Lstat(name)
			require.NoError(t, err)
			var text string
			switch {
			case info.IsDir():
				walk(name)
			case info.Mode()&fs.ModeSymlink != 0:
				text, err = tree.Readlink(name)
			default:
				var data []byte
				data, err = writer.ReadFile(tree, name, 1<<20)
				text = string(data)
			}
			require.NoError(t, err)
			all[name] = fmt.Sprintf("%s %q", info.Mode(), text)
		}
	}
	walk(".")
	return all
}

// task makes both checkpoints of a task; the tree is what the task left.
func task(t require.TestingT, s *Store) (before, after *Manifest, then, now map[string]string) {
	lay(t, s.tree, treeBefore...)
	before, err := s.Create(context.Background(), testMeta, nil, nil)
	require.NoError(t, err)
	then = seen(t, s.tree)
	lay(t, s.tree, treeAfter...)
	f, err := s.tree.OpenFile("mode", 0, 0)
	require.NoError(t, err)
	require.NoError(t, f.Chmod(0o600))
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	after, err = s.Create(context.Background(), testMeta, before, nil)
	require.NoError(t, err)
	return before, after, then, seen(t, s.tree)
}

// again makes the plan of a rewind from what is on the disk, applies it and checks
// that the tree is what it is to be, also after another cut.
func again(t require.TestingT, disk *crashfs.Disk, want map[string]string) error {
	s := simulated(t, disk)
	target, err := s.Load(1)
	if err != nil {
		return err
	}
	last, err := s.Load(2)
	if err != nil {
		return err
	}
	plan := NewPlan(target.Files, last.Files, last.Files, false)
	done, err := s.Apply(context.Background(), plan)
	if err != nil {
		return err
	}
	if len(done.Kept) > 0 {
		return fmt.Errorf("kept: %v", done.Kept)
	}
	for _, d := range []*crashfs.Disk{disk, disk.Crash(crashfs.Variant{})} {
		tree, err := d.FS().Sub("tree")
		if err != nil {
			return err
		}
		if now := seen(t, tree); fmt.Sprint(now) != fmt.Sprint(want) {
			return fmt.Errorf("the tree is %v, not %v", now, want)
		}
	}
	return nil
}

// TestPowerCutInApply cuts the power before every call of Apply, in every variant:
// applying again brings the tree to the target.
func TestPowerCutInApply(t *testing.T) {
	t.Parallel()
	for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
		disk := crashfs.New(mode)
		before, after, then, _ := task(t, simulated(t, disk))
		disk = disk.Crash(crashfs.Variant{}) // all of it is durable
		s := simulated(t, disk)
		var mu sync.Mutex
		type point struct {
			disk *crashfs.Disk
			op   string
		}
		var points []point
		disk.SetHook(func(op crashfs.Op) crashfs.Fault {
			if op.N > 0 {
				mu.Lock()
				defer mu.Unlock()
				points = append(points, point{disk.Snapshot(), op.Call + " " + op.Name})
			}
			return crashfs.Fault{}
		})
		_, err := s.Apply(context.Background(), NewPlan(before.Files, after.Files, after.Files, false))
		require.NoError(t, err)
		disk.SetHook(nil)
		require.Equal(t, then, seen(t, s.tree))
		require.Greater(t, len(points), 40)
		for _, p := range points {
			for _, v := range p.disk.Variants(nil, 0) {
				require.NoError(t, again(t, p.disk.Crash(v), then), "cut before %s, %s", p.op, v.Name)
			}
			require.NoError(t, again(t, p.disk, then), "killed before %s", p.op)
		}
	}
}

// TestApplyFaults fails each call of Apply once. Before anything is in its place the
// tree is as it was; after any fault applying again finishes it.
func TestApplyFaults(t *testing.T) {
	t.Parallel()
	base := crashfs.New(crashfs.Ext4)
	before, after, then, now := task(t, simulated(t, base))
	plan := NewPlan(before.Files, after.Files, after.Files, false)
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EIO} {
		failed := 0
		for n := 1; ; n++ {
			disk := base.Snapshot()
			s := simulated(t, disk)
			var mu sync.Mutex
			count, hit, moved := 0, "", false
			disk.SetHook(func(op crashfs.Op) crashfs.Fault {
				mu.Lock()
				defer mu.Unlock()
				if count++; count == n {
					hit = op.Call + " " + op.Name
					return crashfs.Fault{Err: errno}
				}
				moved = moved || hit == "" && (op.Call == "rename" || op.Call == "mkdir" || (op.Call == "remove" || op.Call == "chmod") && !strings.Contains(op.Name, tempPrefix))
				return crashfs.Fault{}
			})
			_, err := s.Apply(context.Background(), plan)
			disk.SetHook(nil)
			if hit == "" {
				require.NoError(t, err)
				require.Greater(t, failed, 100)
				break
			}
			if err != nil {
				failed++
				var e *writer.Error
				require.ErrorAs(t, err, &e, hit)
				require.ErrorIs(t, err, errno, hit)
				if !moved && e.Outcome == writer.NotCommitted {
					require.Equal(t, now, seen(t, s.tree), hit)
				}
				require.Equal(t, moved, moved && e.Outcome == writer.NotDurable, hit)
			} else {
				require.Equal(t, then, seen(t, s.tree), "no error from %s", hit)
				require.False(t, strings.HasPrefix(hit, "sync") || strings.HasPrefix(hit, "write"), hit)
			}
			if strings.HasPrefix(hit, "syncdir") {
				// The kernel dropped what it was to write, and no later sync says so: the
				// error did.
				require.Error(t, err, hit)
				require.Equal(t, then, seen(t, s.tree), hit)
				continue
			}
			require.NoError(t, again(t, disk, then), hit)
		}
	}
}

// A blob that is missing or damaged, and a disk without room, are found before
// anything changes.
func TestNothingChangesWhenItCannotBeDone(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(disk *crashfs.Disk, file string) error{
		"missing": func(disk *crashfs.Disk, file string) error { return disk.FS().Remove(file) },
		"damaged": func(disk *crashfs.Disk, file string) error {
			return writer.ReplaceFile(disk.FS(), file, []byte("tree"), 0o600)
		},
		"no space":  func(disk *crashfs.Disk, _ string) error { disk.Capacity(1, 0); return nil },
		"no inodes": func(disk *crashfs.Disk, _ string) error { disk.Capacity(0, 1); return nil },
	} {
		disk := crashfs.New(crashfs.Ext4)
		s := simulated(t, disk)
		before, after, _, now := task(t, s)
		text := before.Files.Find("gone/deep/y").Hash.String()
		require.NoError(t, spoil(disk, "blobs/"+text[:2]+"/"+text[2:]))
		_, err := s.Apply(context.Background(), NewPlan(before.Files, after.Files, after.Files, false))
		require.Error(t, err, name)
		if strings.HasPrefix(name, "no ") {
			require.ErrorIs(t, err, writer.ErrNoSpace, name)
		} else {
			require.ErrorIs(t, err, writer.ErrCorrupt, name)
			require.ErrorContains(t, err, text, name)
		}
		require.Equal(t, now, seen(t, s.tree), name)
	}
}

// TestApplyDenied denies each call that would change something in one folder. Before
// anything can be seen that is found out; where the plan is content with what is
// permitted all the rest is done, and what is not is named; applying it once more,
// with permission, does that as well.
func TestApplyDenied(t *testing.T) {
	t.Parallel()
	base := crashfs.New(crashfs.Ext4)
	before, after, then, now := task(t, simulated(t, base))
	for folder, want := range map[string][]string{
		"tree/new":  {"new", "new/moved", "new/w"},
		"tree/swap": {"swap", "swap/in"},
		"tree":      {"a", "empty", "gone", "gone/deep", "gone/deep/y", "gone/x", "link", "moved", "new", "swap", "turn", "turn/z"},
	} {
		for _, permitted := range []bool{false, true} {
			disk := base.Snapshot()
			s := simulated(t, disk)
			disk.SetHook(func(op crashfs.Op) crashfs.Fault {
				switch op.Call {
				case "create", "mkdir", "remove", "rename", "symlink":
					if path.Dir(op.Name) == folder {
						return crashfs.Fault{Err: syscall.EACCES}
					}
				}
				return crashfs.Fault{}
			})
			plan := NewPlan(before.Files, after.Files, after.Files, false)
			plan.Permitted = permitted
			done, err := s.Apply(context.Background(), plan)
			disk.SetHook(nil)
			if !permitted {
				require.ErrorIs(t, err, ErrUnchanged, folder)
				require.ErrorIs(t, err, writer.ErrDenied, folder)
				require.Equal(t, now, seen(t, s.tree), folder)
			} else {
				require.NoError(t, err, folder)
				var kept []string
				for _, k := range done.Kept {
					require.Equal(t, Denied, k.Why, k.Path)
					kept = append(kept, k.Path)
				}
				slices.Sort(kept)
				require.Equal(t, want, kept, folder)
				require.Equal(t, len(plan.Changes), done.Changes+len(kept))
			}
			require.NoError(t, again(t, disk, then), folder)
		}
	}
}

// TestApplyClosesWhatItOpened lets itself into a folder whose mode it changes, and then
// finds that something else may not be changed.
func TestApplyClosesWhatItOpened(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	s := simulated(t, disk)
	lay(t, s.tree, "ro/", "", "ro/f", "one", "top/", "", "top/g", "one")
	before, err := s.Create(context.Background(), testMeta, nil, nil)
	require.NoError(t, err)
	lay(t, s.tree, "ro/", "", "ro/f", "two", "top/", "", "top/g", "two")
	require.NoError(t, chmodFolder(s.tree, "ro", 0o500))
	after, err := s.Create(context.Background(), testMeta, before, nil)
	require.NoError(t, err)
	now := seen(t, s.tree)
	opened := 0
	disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		switch {
		case op.Call == "chmod" && op.Name == "tree/ro":
			opened++
		case op.Call == "create" && path.Dir(op.Name) == "tree/top":
			return crashfs.Fault{Err: syscall.EACCES}
		}
		return crashfs.Fault{}
	})
	_, err = s.Apply(context.Background(), NewPlan(before.Files, after.Files, after.Files, false))
	disk.SetHook(nil)
	require.ErrorIs(t, err, ErrUnchanged)
	require.Equal(t, 2, opened)
	require.Equal(t, now, seen(t, s.tree))
}

// What somebody changes while the new contents are written beside their places is
// kept: each place is looked at once more before anything in it is replaced or removed.
func TestChangedWhileItIsApplied(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	s := simulated(t, disk)
	lay(t, s.tree, "a", "one")
	target, err := s.Create(context.Background(), testMeta, nil, nil)
	require.NoError(t, err)
	lay(t, s.tree, "a", "two", "b", "two")
	last, err := s.Create(context.Background(), testMeta, nil, nil)
	require.NoError(t, err)
	disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "sync" && strings.Contains(op.Name, tempPrefix) {
			disk.SetHook(nil)
			require.NoError(t, writer.ReplaceFile(s.tree, "a", []byte("mine"), 0o600))
			require.NoError(t, writer.ReplaceFile(s.tree, "b", []byte("mine"), 0o600))
		}
		return crashfs.Fault{}
	})
	done, err := s.Apply(context.Background(), NewPlan(target.Files, last.Files, last.Files, false))
	require.NoError(t, err)
	require.Equal(t, []Kept{{Path: "a", Why: Meanwhile}, {Path: "b", Why: Meanwhile}}, done.Kept)
	for _, name := range []string{"a", "b"} {
		data, err := writer.ReadFile(s.tree, name, 100)
		require.NoError(t, err)
		require.Equal(t, "mine", string(data))
	}
}
