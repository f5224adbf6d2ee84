package crashfs

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDurability(t *testing.T) {
	tests := []struct {
		name             string
		do               func(t *testing.T, d *Disk)
		nothing, visible string
		may, never       []string
	}{
		{"unsynced write", func(t *testing.T, d *Disk) {
			f := open(t, d.FS(), "a", os.O_WRONLY)
			_, err := f.Write([]byte("new"))
			require.NoError(t, err)
		}, "old!", "new!", []string{"old!", "new!"}, []string{"", "-"}},
		{"synced write", func(t *testing.T, d *Disk) {
			f := open(t, d.FS(), "a", os.O_WRONLY)
			_, err := f.WriteAt([]byte("new"), 1)
			require.NoError(t, err)
			require.NoError(t, f.Datasync())
		}, "onew", "onew", []string{"onew"}, []string{"old!"}},
		{"truncated", func(t *testing.T, d *Disk) {
			putFile(t, d.FS(), "a", "new")
		}, "old!", "new", []string{"old!", "new", "", "\x00\x00\x00", "new!"}, []string{"-"}},
		{"removed", func(t *testing.T, d *Disk) {
			require.NoError(t, d.FS().Remove("a"))
		}, "old!", "-", []string{"old!", "-"}, []string{""}},
		{"removed and synced", func(t *testing.T, d *Disk) {
			require.NoError(t, d.FS().Remove("a"))
			require.NoError(t, d.FS().SyncDir("."))
		}, "-", "-", []string{"-"}, []string{"old!"}},
		{"renamed without a sync of the data", func(t *testing.T, d *Disk) {
			putFile(t, d.FS(), "b", "new")
			require.NoError(t, d.FS().Rename("b", "a"))
		}, "old!", "new", []string{"old!", "new", "", "\x00\x00\x00"}, []string{"-"}},
		{"renamed after a sync of the data", func(t *testing.T, d *Disk) {
			f := open(t, d.FS(), "b", os.O_CREATE|os.O_WRONLY)
			_, err := f.Write([]byte("new"))
			require.NoError(t, err)
			require.NoError(t, f.Sync())
			require.NoError(t, d.FS().Rename("b", "a"))
		}, "old!", "new", []string{"old!", "new"}, []string{"-", ""}},
	}
	for _, tt := range tests {
		for _, mode := range []Mode{Ext4, XFS} {
			t.Run(tt.name+" "+mode.String(), func(t *testing.T) {
				d := New(mode)
				putSynced(t, d.FS(), "a", "old!")
				tt.do(t, d)
				require.Equal(t, tt.nothing, read(t, nothing(d).FS(), "a"))
				require.Equal(t, tt.visible, read(t, all(t, d).FS(), "a"))
				found := outcomes(t, d, "a", 200)
				for _, want := range tt.may {
					require.Contains(t, found, want)
				}
				for _, bad := range tt.never {
					require.NotContains(t, found, bad)
				}
				require.Equal(t, tt.visible, read(t, d.FS(), "a"), "the disk itself is as it was")
			})
		}
	}
}

func TestNameOfNewFile(t *testing.T) {
	d := New(Ext4)
	f := open(t, d.FS(), "a", os.O_CREATE|os.O_WRONLY)
	_, err := f.Write([]byte("data"))
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.Equal(t, "-", read(t, nothing(d).FS(), "a"), "a sync of a file does not sync its name")
	require.Len(t, outcomes(t, d, "a", 50), 2)
	require.NoError(t, d.FS().SyncDir("."))
	require.Equal(t, "data", read(t, nothing(d).FS(), "a"))
	require.Len(t, d.Variants(nil, 50), 1, "nothing is unsynced")
}

// A rename is one change, also from folder to folder, and also when one before it
// is lost.
func TestRenameAtomic(t *testing.T) {
	for _, synced := range []string{"", "x", "y"} {
		t.Run("sync of "+synced, func(t *testing.T) {
			d := New(XFS)
			dir := d.FS()
			require.NoError(t, dir.Mkdir("x", 0o700))
			require.NoError(t, dir.Mkdir("y", 0o700))
			require.NoError(t, dir.Mkdir("x/f", 0o700))
			putSynced(t, dir, "x/f/data", "1")
			for _, name := range []string{"x/f", "x", "y"} {
				require.NoError(t, dir.SyncDir(name))
			}
			putFile(t, dir, "y/earlier", "")
			require.NoError(t, dir.Rename("x/f", "y/f"))
			require.NoError(t, dir.Rename("y/f", "y/g"))
			if synced != "" {
				require.NoError(t, dir.SyncDir(synced))
			}
			seen := map[string]bool{}
			for _, v := range d.Variants(rand.New(rand.NewPCG(3, 4)), 100) {
				got := d.Crash(v).FS()
				at := read(t, got, "x/f/data") + read(t, got, "y/f/data") + read(t, got, "y/g/data")
				require.Equal(t, 1, strings.Count(at, "1"), "%s: %s", v.Name, at)
				seen[at] = true
				if synced != "" {
					require.NotEqual(t, "-", read(t, got, "y/earlier"), "%s: what is before a shared rename is synced with it", v.Name)
				}
			}
			switch synced {
			case "":
				require.Len(t, seen, 3)
			case "x": // the second rename is y's alone, and later
				require.Equal(t, map[string]bool{"-1-": true, "--1": true}, seen)
			case "y":
				require.Equal(t, map[string]bool{"--1": true}, seen)
			}
		})
	}
}

func TestTornWrites(t *testing.T) {
	d := New(Ext4)
	putSynced(t, d.FS(), "a", strings.Repeat("o", 100))
	f := open(t, d.FS(), "a", os.O_WRONLY|os.O_APPEND)
	_, err := f.Write([]byte(strings.Repeat("n", 1500)))
	require.NoError(t, err)
	found := outcomes(t, d, "a", 0)
	old, until := strings.Repeat("o", 100), func(end int) string { return strings.Repeat("n", end-100) }
	for _, end := range []int{512, 1024, 1536} {
		require.Contains(t, found, old+until(end))
		require.Contains(t, found, old+until(end)+strings.Repeat("\x00", 1600-end))
	}
	require.NotContains(t, found, old+until(600), "a block is whole or not there")
	require.Contains(t, found, old+until(512)+strings.Repeat("\x00", 512)+strings.Repeat("n", 1600-1024), "a hole")
	garbage := 0
	for got, name := range found {
		require.True(t, strings.HasPrefix(got, old), "%s: what was durable stays", name)
		if strings.Contains(name, "garbage") {
			garbage++
			require.Len(t, got, 1600)
		}
	}
	require.Equal(t, 1, garbage)
	require.Equal(t, found, outcomes(t, d, "a", 0), "the same seed, the same variants")
}

func TestTears(t *testing.T) {
	at := func(off, n int) change { return change{off: int64(off), data: make([]byte, n)} }
	require.Empty(t, tears(at(0, 512), 8))
	require.Empty(t, tears(at(100, 412), 8))
	require.Equal(t, []int64{512}, tears(at(0, 513), 8))
	require.Equal(t, []int64{1024}, tears(at(512, 513), 8))
	many := tears(at(0, 512*101), 8)
	require.Len(t, many, 8)
	require.Equal(t, int64(512), many[0])
	require.Equal(t, int64(512*100), many[7])
}

// A change alone may be lost while later ones are kept, but not what builds on it.
func TestReordering(t *testing.T) {
	d := New(Ext4)
	dir := d.FS()
	for _, name := range []string{"a", "b", "c"} {
		putFile(t, dir, name, "")
	}
	seen := map[string]bool{}
	for _, v := range d.Variants(nil, 0) {
		seen[strings.Join(names(t, d.Crash(v).FS(), "."), "")] = true
	}
	require.Equal(t, map[string]bool{"": true, "a": true, "ab": true, "abc": true, "ac": true, "bc": true}, seen)
}

func TestWritesReorder(t *testing.T) {
	d := New(Ext4)
	putSynced(t, d.FS(), "a", "____")
	f := open(t, d.FS(), "a", os.O_WRONLY)
	for k, s := range []string{"1", "2", "3"} {
		_, err := f.WriteAt([]byte(s), int64(k))
		require.NoError(t, err)
	}
	found := outcomes(t, d, "a", 0)
	for _, want := range []string{"____", "123_", "_23_", "1_3_", "12__"} {
		require.Contains(t, found, want)
	}
}

func TestSnapshotIsIndependent(t *testing.T) {
	d := New(Ext4)
	putSynced(t, d.FS(), "a", "1")
	f := open(t, d.FS(), "a", os.O_RDWR|os.O_APPEND)
	var snaps []*Disk
	for _, s := range []string{"2", "3", "4", "5"} {
		snaps = append(snaps, d.Snapshot())
		_, err := f.Write([]byte(s))
		require.NoError(t, err)
		if s == "3" {
			require.NoError(t, f.Sync())
		}
	}
	_, err := f.Write([]byte("6"))
	require.NoError(t, err)
	require.NoError(t, d.FS().Remove("a"))
	for k, s := range snaps {
		want := "12345"[:k+1]
		require.Equal(t, want, read(t, s.FS(), "a"))
		g := open(t, s.FS(), "a", os.O_WRONLY|os.O_APPEND)
		_, err := g.Write([]byte("x"))
		require.NoError(t, err)
		putFile(t, s.FS(), "b", "")
		require.Equal(t, want+"x", read(t, s.FS(), "a"))
		require.Equal(t, "12345"[:1+2*(k/2)], read(t, nothing(s).FS(), "a"))
	}
	require.Empty(t, names(t, d.FS(), "."))
}

// Simulated power cuts one after the other, each on what the last one left.
func TestCrashOfCrash(t *testing.T) {
	d := New(XFS)
	putSynced(t, d.FS(), "a", "1")
	putFile(t, d.FS(), "b", "2")
	d = all(t, d)
	require.Len(t, d.Variants(nil, 10), 1, "what is found is durable")
	require.Equal(t, "2", read(t, nothing(d).FS(), "b"))
	require.NoError(t, d.FS().Remove("b"))
	require.Equal(t, "2", read(t, nothing(d).FS(), "b"))
	require.NoError(t, d.FS().SyncDir("."))
	require.Equal(t, "-", read(t, nothing(d).FS(), "b"))
	require.Len(t, d.inodes, 2, "what no cut can bring back is forgotten")
}
