package crashfs

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
)

// Random calls, some of which fail: whatever happens, keeping all gives what the
// program saw, snapshots do not change, and what is in use is what is there.
func TestRandomCalls(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 0))
		d := New(Mode(seed % 3))
		dir := d.FS()
		for _, name := range []string{"x", "y"} {
			require.NoError(t, dir.Mkdir(name, 0o700))
		}
		d.SetHook(func(op Op) Fault {
			switch op.Call {
			case "sync", "datasync", "syncdir":
				if rng.IntN(4) == 0 {
					return Fault{Err: syscall.EIO}
				}
			}
			return Fault{}
		})
		name := func() string { return []string{"x/", "y/", ""}[rng.IntN(3)] + string("abAB"[rng.IntN(4)]) }
		var open []writer.File
		var snap *Disk
		var before string
		for step := range 60 {
			if step%7 == 0 {
				snap, before = d.Snapshot(), tree(t, d)
			}
			switch rng.IntN(8) {
			case 0, 1:
				if f, err := dir.OpenFile(name(), os.O_CREATE|os.O_RDWR|[]int{0, os.O_TRUNC, os.O_APPEND}[rng.IntN(3)], 0o600); err == nil {
					open = append(open, f)
				}
			case 2, 3:
				if len(open) > 0 {
					f, p := open[rng.IntN(len(open))], make([]byte, rng.IntN(20))
					for k := range p {
						p[k] = byte('a' + rng.IntN(26))
					}
					_, _ = f.WriteAt(p, rng.Int64N(30))
					_, _ = f.Write(p)
				}
			case 4:
				if len(open) > 0 {
					f := open[rng.IntN(len(open))]
					_ = []func() error{f.Sync, f.Datasync, f.Close}[rng.IntN(3)]()
				}
			case 5:
				_ = dir.Rename(name(), name())
			case 6:
				_ = []func(string) error{dir.Remove, func(n string) error { return dir.Link(n, name()) }}[rng.IntN(2)](name())
			case 7:
				_ = dir.SyncDir([]string{".", "x", "y"}[rng.IntN(3)])
			}
			require.Equal(t, tree(t, d), tree(t, all(t, d)), "seed %d, step %d", seed, step)
			require.Equal(t, before, tree(t, snap), "seed %d, step %d", seed, step)
		}
		for _, f := range open {
			_ = f.Close()
		}
		s := d.Snapshot()
		require.Equal(t, [2]int{s.usedBytes, s.usedInodes}, [2]int{d.usedBytes, d.usedInodes}, "seed %d", seed)
		for _, v := range d.Variants(rng, 20) {
			c := d.Crash(v)
			require.Equal(t, tree(t, c), tree(t, nothing(c)), "seed %d, %s", seed, v.Name)
			if d.mode == Folding {
				for _, at := range []string{".", "x", "y"} {
					if _, err := c.FS().Lstat(at); err == nil {
						list := strings.Fields(strings.ToLower(strings.Join(names(t, c.FS(), at), " ")))
						slices.Sort(list)
						require.Len(t, slices.Compact(slices.Clone(list)), len(list), "seed %d, %s", seed, v.Name)
					}
				}
			}
		}
	}
}

// tree is all that a reader finds.
func tree(t *testing.T, d *Disk) string {
	var list []string
	for _, at := range []string{".", "x", "y"} {
		entries, err := d.FS().ReadDir(at)
		if err != nil {
			continue // before its name is synced
		}
		for _, e := range entries {
			line := at + "/" + e.Name()
			if !e.IsDir() {
				line += fmt.Sprintf(" %q", read(t, d.FS(), line))
			}
			list = append(list, line)
		}
	}
	slices.Sort(list)
	return fmt.Sprint(list)
}
