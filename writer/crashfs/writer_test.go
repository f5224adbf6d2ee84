package crashfs

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
)

// cuts runs fn and looks at every outcome of a power cut before each call of it
// and after the last.
func cuts(t *testing.T, d *Disk, random int, fn func(dir writer.FS) error, look func(dir writer.FS, done bool) error) (bad []string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 6))
	check := func(s *Disk, at string, done bool) {
		for _, v := range s.Variants(rng, random) {
			if err := look(s.Crash(v).FS(), done); err != nil {
				bad = append(bad, fmt.Sprintf("%s, %s: %v", at, v.Name, err))
			}
		}
	}
	d.SetHook(func(op Op) Fault {
		if op.N > 0 {
			check(d.Snapshot(), fmt.Sprintf("before %d %s %s", op.N, op.Call, op.Name), false)
		}
		return Fault{}
	})
	require.NoError(t, fn(d.FS()))
	d.SetHook(nil)
	check(d, "after the last", true)
	return bad
}

func oldOrNew(t *testing.T, was, now string) func(writer.FS, bool) error {
	return func(dir writer.FS, done bool) error {
		got := read(t, dir, "a")
		if got == now || !done && got == was {
			return nil
		}
		return fmt.Errorf("%d bytes: %.20q", len(got), got)
	}
}

func TestReplaceFileEveryCut(t *testing.T) {
	was, now := strings.Repeat("old ", 300), strings.Repeat("new ", 500)
	for _, mode := range []Mode{Ext4, XFS} {
		t.Run(mode.String(), func(t *testing.T) {
			d := New(mode)
			require.NoError(t, writer.ReplaceFile(d.FS(), "a", []byte(was), 0o600))
			bad := cuts(t, d, 30, func(dir writer.FS) error {
				return writer.ReplaceFile(dir, "a", []byte(now), 0o644)
			}, oldOrNew(t, was, now))
			require.Empty(t, bad)
		})
	}
}

func TestCreateFileEveryCut(t *testing.T) {
	now := strings.Repeat("new ", 500)
	d := New(Ext4)
	require.Empty(t, cuts(t, d, 30, func(dir writer.FS) error {
		return writer.CreateFile(dir, "a", []byte(now), 0o600)
	}, oldOrNew(t, "-", now)))
	require.ErrorIs(t, writer.CreateFile(d.FS(), "a", nil, 0o600), fs.ErrExist)
	require.Equal(t, []string{"a"}, names(t, d.FS(), "."))
}

// The variants find each step that a replacement leaves out.
func TestBrokenReplaceIsCaught(t *testing.T) {
	was, now := strings.Repeat("old ", 300), strings.Repeat("new ", 500)
	for _, skip := range []string{"none", "temp", "sync", "syncdir"} {
		t.Run(skip, func(t *testing.T) {
			d := New(Ext4)
			require.NoError(t, writer.ReplaceFile(d.FS(), "a", []byte(was), 0o600))
			bad := cuts(t, d, 0, func(dir writer.FS) error {
				name := "b"
				if skip == "temp" {
					name = "a"
				}
				f, err := dir.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
				if err == nil {
					_, err = f.Write([]byte(now))
				}
				if err == nil && skip != "sync" {
					err = f.Sync()
				}
				if err == nil {
					err = f.Close()
				}
				if err == nil && skip != "temp" {
					err = dir.Rename("b", "a")
				}
				if err == nil && skip != "syncdir" {
					err = dir.SyncDir(".")
				}
				return err
			}, oldOrNew(t, was, now))
			require.Equal(t, skip == "none", len(bad) == 0, "%v", bad)
		})
	}
}

func TestWriterLock(t *testing.T) {
	d := New(Ext4)
	dir := d.FS()
	lock, err := writer.TryLock(dir, "lock", writer.OwnerOf(os.Getpid(), "test"))
	require.NoError(t, err)
	_, err = writer.TryLock(dir, "lock", writer.OwnerOf(os.Getpid(), "other"))
	require.ErrorIs(t, err, writer.ErrBusy)
	owner, held, err := writer.Holder(dir, "lock")
	require.NoError(t, err)
	require.True(t, held)
	require.Equal(t, "test", owner.Command)
	require.NoError(t, lock.Check(dir, "lock"))
	after, err := writer.TryLock(all(t, d).FS(), "lock", writer.OwnerOf(os.Getpid(), "test"))
	require.NoError(t, err, "no lock outlives its machine")
	require.NoError(t, after.Unlock())
	require.NoError(t, dir.Remove("lock"))
	require.Error(t, lock.Check(dir, "lock"))
	require.NoError(t, lock.Unlock())
}

func TestWriterFolders(t *testing.T) {
	d := New(XFS)
	dir := d.FS()
	require.NoError(t, writer.MkdirDurable(dir, "s"))
	require.NoError(t, writer.MkdirDurable(dir, "s"))
	require.NoError(t, writer.ReplaceFile(dir, "s/a", []byte("1"), 0o600))
	require.NoError(t, writer.ReplaceSymlink(dir, "s/a", "latest"))
	require.NoError(t, writer.ReplaceSymlink(dir, "s", "latest"))
	name, err := writer.Quarantine(dir, "s", "q", "s", []byte("{}"))
	require.NoError(t, err)
	left := nothing(d).FS()
	require.Equal(t, "1", read(t, left, name+"/a"))
	require.Equal(t, "{}", read(t, left, name+".json"))
	data, err := writer.ReadFile(left, name+"/a", 10)
	require.NoError(t, err)
	require.Equal(t, "1", string(data))
	require.NoError(t, writer.RemoveTemps(left, ".", nil))
}

func benchDisk(b *testing.B) *Disk {
	d := New(Ext4)
	for n := range 20 {
		putSynced(b, d.FS(), fmt.Sprint("file-", n), strings.Repeat("x", 1000))
	}
	putFile(b, d.FS(), "new", strings.Repeat("y", 3000))
	require.NoError(b, d.FS().Rename("new", "file-3"))
	return d
}

func BenchmarkSnapshotAndCrash(b *testing.B) {
	d := benchDisk(b)
	v := d.Variants(nil, 0)
	for n := 0; b.Loop(); n++ {
		d.Snapshot().Crash(v[n%len(v)])
	}
}

func BenchmarkVariants(b *testing.B) {
	d := benchDisk(b)
	rng := rand.New(rand.NewPCG(1, 1))
	for b.Loop() {
		d.Variants(rng, 20)
	}
}
