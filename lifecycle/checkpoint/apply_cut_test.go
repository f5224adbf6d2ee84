package checkpoint

import (
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

var (
	rewinds = flag.Int("rewinds", 6, "how many random rewinds TestApplyKilledAnywhere kills at each call, and TestApplyPowerCutAnywhere cuts the power of")
	images  = flag.Int("images", 3, "how many outcomes of each power cut are looked at; 0 is all")
)

// finish applies a plan again and requires the wanted tree.
func finish(t require.TestingT, s trial, plan *Plan, want things, msg string) {
	done, err := s.Apply(tContext(), plan)
	require.NoError(t, err, msg)
	require.Equal(t, Applied{Changes: len(plan.Changes)}, done, msg)
	requireThings(t, want, seen(t, s.fs), "%s", msg)
}

// TestApplyKilledAnywhere kills random rewinds before each call that changes something,
// on the file system of temporary folders. Applying again, with another kill in between,
// makes just the tree that was wanted, and no other name of a file is touched.
func TestApplyKilledAnywhere(t *testing.T) {
	t.Parallel()
	for seed := range uint64(*rewinds) {
		g := garden{Rand: rand.New(rand.NewPCG(seed, 1))}
		from := g.grow()
		to := g.edited(from)
		if g.IntN(4) == 0 {
			to = g.grow()
		}
		umask := []fs.FileMode{0o777, 0o022, 0, 0o277}[seed%4]
		blobs := stored(t, from, to)
		plan := planOf(t, blobs, from, to)
		killed := func(n, again int) (calls int) {
			dir, err := os.MkdirTemp(t.TempDir(), "")
			require.NoError(t, err)
			tree, err := writer.OpenFS(dir)
			require.NoError(t, err)
			defer func() {
				seen(t, unlocked{tree})
				require.NoError(t, tree.Close())
				require.NoError(t, os.RemoveAll(dir))
			}()
			from.lay(t, try(tree, blobs))
			linked := links(t, g, dir, from)
			msg := fmt.Sprintf("seed %d, umask %o, killed at %d and %d", seed, umask, n, again)
			for _, left := range []int{n, again} {
				s := try(tree, blobs)
				s.left, s.umask = left, umask
				_, err := s.Apply(tContext(), plan)
				if err != nil {
					require.ErrorIs(t, err, errKilled, msg)
				}
				calls = max(calls, s.calls)
			}
			s := try(tree, blobs)
			s.umask = umask
			finish(t, s, plan, to, msg)
			linked(msg)
			return calls
		}
		calls := killed(-1, -1)
		for n := range calls {
			killed(n, g.IntN(calls))
		}
	}
}

// links makes hard links outside the tree to some of its files, and checks later that what
// the links name did not change.
func links(t *testing.T, g garden, dir string, all things) (check func(msg string)) {
	outside := t.TempDir()
	was := map[string]thing{}
	for i, name := range all.paths() {
		if all[name].mode.IsRegular() && g.IntN(3) == 0 {
			other := filepath.Join(outside, fmt.Sprint(i))
			if os.Link(filepath.Join(dir, name), other) == nil { // not from a folder that is shut
				was[other] = all[name]
			}
		}
	}
	return func(msg string) {
		for other, it := range was {
			info, err := os.Lstat(other)
			require.NoError(t, err)
			require.Equal(t, it.mode, info.Mode(), msg)
			data, err := os.ReadFile(other)
			require.NoError(t, err)
			require.True(t, it.text == string(data), msg)
		}
	}
}

// TestApplyPowerCutAnywhere cuts the power before each call of random rewinds on
// simulated disks, one of which folds names. Applying again makes just the tree that was
// wanted, durably.
func TestApplyPowerCutAnywhere(t *testing.T) {
	t.Parallel()
	for seed := range uint64(*rewinds) {
		mode := []crashfs.Mode{crashfs.Folding, crashfs.Ext4}[seed%2]
		g := garden{rand.New(rand.NewPCG(seed, 2)), mode == crashfs.Folding}
		from := g.grow()
		to := g.edited(from)
		if g.IntN(4) == 0 {
			to = g.grow()
		}
		disk := crashfs.New(mode)
		from.lay(t, disk.FS())
		disk = disk.Crash(crashfs.Variant{})
		requireThings(t, from, seen(t, disk.Snapshot().FS()), "seed %d, before", seed)
		cutPower(t, g, disk, from, to, fmt.Sprintf("seed %d, %s", seed, mode))
	}
}

func cutPower(t require.TestingT, g garden, disk *crashfs.Disk, from, to things, msg string) {
	blobs := stored(t, from, to)
	plan := planOf(t, blobs, from, to)
	var mu sync.Mutex
	points := map[string]*crashfs.Disk{}
	disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.N > 0 {
			mu.Lock()
			defer mu.Unlock()
			points[fmt.Sprintf("%d, %s %s", op.N, op.Call, op.Name)] = disk.Snapshot()
		}
		return crashfs.Fault{}
	})
	_, err := New(nil, MainTree, blobs, disk.FS(), Options{}).Apply(tContext(), plan)
	disk.SetHook(nil)
	require.NoError(t, err, msg)
	points["the end"] = disk.Crash(crashfs.Variant{})
	for at, point := range points {
		found := []crashfs.Variant{}
		found = append(found, point.Variants(g.Rand, 2)...)
		g.Shuffle(len(found), func(i, k int) { found[i], found[k] = found[k], found[i] })
		if *images > 0 {
			found = found[:min(len(found), *images)]
		}
		disks := map[string]*crashfs.Disk{"killed": point}
		for _, v := range found {
			disks[v.Name] = point.Crash(v)
		}
		for name, d := range disks {
			done, err := New(nil, MainTree, blobs, d.FS(), Options{}).Apply(tContext(), plan)
			require.NoError(t, err, "%s, %s, %s", msg, at, name)
			require.Equal(t, Applied{Changes: len(plan.Changes)}, done, "%s, %s, %s", msg, at, name)
			requireThings(t, to, seen(t, d.Snapshot().FS()), "%s, %s, %s", msg, at, name)
			requireThings(t, to, seen(t, d.Crash(crashfs.Variant{}).FS()), "%s, %s, %s, and cut at the end", msg, at, name)
		}
	}
}
