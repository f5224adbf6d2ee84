package backup_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/backup"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

var deep = flag.Bool("deep", false, "look at every outcome where a short run draws a few")

// draw returns the first variant, which loses nothing or everything, and one of the others.
func draw(all []crashfs.Variant, n int) []crashfs.Variant {
	if *deep || len(all) < 3 {
		return all
	}
	return []crashfs.Variant{all[0], all[1+n%(len(all)-1)]}
}

// on creates or opens the backup of a simulated disk.
func on(disk *crashfs.Disk, o backup.Options) (*backup.Folder, error) {
	dir, err := disk.FS().Sub("backup")
	if err != nil {
		return nil, err
	}
	return backup.CreateOn(dir, o)
}

func newDisk(t require.TestingT, mode crashfs.Mode) *crashfs.Disk {
	disk := crashfs.New(mode)
	require.NoError(t, writer.MkdirDurable(disk.FS(), "backup"))
	return disk
}

// small are contents that make packs, an object with a file of its own, and two batches.
func small(n int) []item {
	return []item{{"shared", noise(1, 700)}, {"own", noise(10+n, 600)}, {"", noise(2, 66_000)}, {"", noise(20+n, 100)}}
}

// A life is what is done with a backup in these tests. done is called with what was
// acknowledged: the contents of the snapshots that must be there, by number.
func life(disk *crashfs.Disk, o backup.Options, done func(map[uint64][]item)) error {
	there := map[uint64][]item{}
	for n := range 2 {
		f, err := on(disk, o)
		if err != nil {
			return err
		}
		made, err := storeBy(f, 1000, noon, small(n))
		if err != nil {
			return err
		}
		there[made.Number] = small(n)
		done(there)
	}
	f, err := on(disk, o)
	if err != nil {
		return err
	}
	delete(there, 1) // it may be there or not from now on
	done(there)
	_, _, err = f.Prune(context.Background(), backup.Retention{Backups: 1}, false)
	return err
}

// check reads what has to be there, and everything else that is listed; then it makes another
// backup, which has to survive the next cut.
func check(disk *crashfs.Disk, o backup.Options, there map[uint64][]item) error {
	f, err := on(disk, o)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	all, err := f.List()
	if err != nil {
		return err
	}
	listed := map[uint64]bool{}
	for _, s := range all {
		got, err := read(f, s.Number)
		if err != nil {
			return fmt.Errorf("snapshot %d of %d that are listed: %w", s.Number, len(all), err)
		}
		if want := there[s.Number]; want != nil && !slices.Equal(got, want) {
			return fmt.Errorf("snapshot %d has other contents", s.Number)
		}
		listed[s.Number] = true
	}
	for n := range there {
		if !listed[n] {
			return fmt.Errorf("snapshot %d is gone: %w", n, fs.ErrNotExist)
		}
	}
	// The backup that was perhaps cut off is made again, and then another one. The first may have
	// nothing to store: what it finds has to be durable nevertheless.
	for n := range 3 {
		made, err := storeBy(f, 1000, noon, small(n))
		if err != nil {
			return fmt.Errorf("another backup: %w", err)
		}
		cut, err := on(disk.Crash(crashfs.Variant{}), o)
		if err != nil {
			return err
		}
		got, err := read(cut, made.Number)
		if err == nil && !slices.Equal(got, small(n)) {
			err = errors.New("other contents")
		}
		if err != nil {
			return fmt.Errorf("the new snapshot of %d after another cut: %w", n, err)
		}
	}
	_, _, err = f.Prune(context.Background(), backup.Retention{Backups: 1}, false)
	return err
}

func clone(m map[uint64][]item) map[uint64][]item {
	c := map[uint64][]item{}
	for k, v := range m {
		c[k] = v
	}
	return c
}

// TestPowerCutAnywhere kills the process, or cuts the power, before every call of two backups and a pruning, in every
// variant. What was acknowledged is there and whole, and so is everything that is listed; the
// next backup works.
func TestPowerCutAnywhere(t *testing.T) {
	t.Parallel()
	explored := 0
	for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
		disk := newDisk(t, mode)
		type point struct {
			disk  *crashfs.Disk
			op    string
			there map[uint64][]item
		}
		var points []point
		var mu sync.Mutex
		there := map[uint64][]item{}
		disk.SetHook(func(op crashfs.Op) crashfs.Fault {
			if op.N > 0 {
				mu.Lock()
				points = append(points, point{disk.Snapshot(), op.Call + " " + op.Name, there})
				mu.Unlock()
			}
			return crashfs.Fault{}
		})
		require.NoError(t, life(disk, at(noon), func(now map[uint64][]item) { there = clone(now) }))
		disk.SetHook(nil)
		for n, p := range append(points, point{disk, "the end", there}) {
			if testing.Short() && n%4 != 0 && n < len(points) {
				continue
			}
			if mode == crashfs.Ext4 || *deep {
				require.NoError(t, check(p.disk.Snapshot(), at(noon), p.there), "%v: killed before %s", mode, p.op)
			}
			variants := p.disk.Variants(nil, 0)
			if n < len(points) {
				variants = draw(variants, n)
			}
			for _, v := range variants {
				explored++
				require.NoError(t, check(p.disk.Crash(v), at(noon), p.there), "%v: cut before %s, %s", mode, p.op, v.Name)
			}
		}
	}
	t.Logf("%d states", explored)
	require.Greater(t, explored, 80)
}

// TestFaultAnywhere fails each call of such a life, once and then for good, as a disk that is
// full or taken away does. The error names the folder. Nothing that was there is harmed, also by
// a power cut after another backup.
func TestFaultAnywhere(t *testing.T) {
	t.Parallel()
	for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.ENODEV} {
			if errno != syscall.EIO && (errno == syscall.ENOSPC) == (mode == crashfs.XFS) && !*deep {
				continue
			}
			t.Run(fmt.Sprint(mode, " ", errno), func(t *testing.T) {
				t.Parallel()
				step := 1
				if testing.Short() {
					step = 4
				}
				for n := 1; ; n += step {
					if !faultAt(t, mode, errno, errno == syscall.ENODEV, n) {
						require.Greater(t, n, 50)
						return
					}
				}
			})
		}
	}
}

// faultAt fails the n-th call, and all later ones if lasting is set. It reports whether there is
// such a call.
func faultAt(t *testing.T, mode crashfs.Mode, errno syscall.Errno, lasting bool, n int) bool {
	disk := newDisk(t, mode)
	var mu sync.Mutex
	calls, failed := 0, ""
	disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		mu.Lock()
		defer mu.Unlock()
		if op.N == 0 {
			return crashfs.Fault{}
		}
		if calls++; calls != n && (calls < n || !lasting) {
			return crashfs.Fault{}
		}
		if failed == "" {
			failed = op.Call + " " + op.Name
		}
		return crashfs.Fault{Err: errno}
	})
	there := map[uint64][]item{}
	err := life(disk, at(noon), func(now map[uint64][]item) { there = clone(now) })
	disk.SetHook(nil)
	if failed == "" {
		require.NoError(t, err)
		return false
	}
	if err != nil {
		require.ErrorContains(t, err, "/sim/backup", "%s fails", failed)
	}
	if !lasting { // a disk that is back was mounted again, and nothing is cached
		require.NoError(t, check(disk.Snapshot(), at(noon), there), "%s fails with %v", failed, err)
	}
	variants := draw(disk.Variants(nil, 0), n)
	if !*deep {
		variants = variants[len(variants)-1:]
	}
	for _, v := range variants {
		require.NoError(t, check(disk.Crash(v), at(noon), there), "%s fails with %v, then %s", failed, err, v.Name)
	}
	return true
}
