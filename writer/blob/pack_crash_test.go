package blob_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// packed returns a disk with packs and a loose blob, all durable. live are the hashes that
// are needed. A sweep removes one of the packs, rewrites some and leaves one as it is.
func packed(t *testing.T, mode crashfs.Mode) (disk *crashfs.Disk, live map[blob.Hash]struct{}) {
	t.Helper()
	disk = crashfs.New(mode)
	require.NoError(t, writer.MkdirDurable(disk.FS(), "blobs"))
	live = map[blob.Hash]struct{}{}
	s := on(t, disk)
	for i, keep := range []int{0, 20, 10, 600} { // needed bytes; 500 other bytes are not needed
		var contents []string
		if keep > 0 {
			contents = append(contents, strings.Repeat("L", keep)+fmt.Sprint(i))
		}
		hashes, err := storeAll(s, append(contents, strings.Repeat("D", 500)+fmt.Sprint(i))...)
		require.NoError(t, err)
		if keep > 0 {
			live[hashes[0]] = struct{}{}
		}
	}
	hashes, err := storeAll(s, strings.Repeat("large", 500), strings.Repeat("large and dead", 200))
	require.NoError(t, err)
	live[hashes[0]] = struct{}{}
	return disk, live
}

func storeAll(s *blob.Store, contents ...string) (hashes []blob.Hash, err error) {
	h, err := s.Hold(context.Background())
	if err != nil {
		return nil, err
	}
	b := h.Batch()
	defer b.Discard()
	for _, c := range contents {
		hash, _, perr := b.Put(strings.NewReader(c), blob.Hash{})
		hashes, err = append(hashes, hash), errors.Join(err, perr)
	}
	return hashes, errors.Join(err, b.Commit(), h.Release())
}

func sweep(s *blob.Store, live map[blob.Hash]struct{}) error {
	_, err := s.Sweep(func() (map[blob.Hash]struct{}, error) { return live, nil })
	return err
}

func verifyAll(s *blob.Store, live map[blob.Hash]struct{}) error {
	for h := range live {
		if err := s.Verify(h); err != nil {
			return err
		}
	}
	return nil
}

// TestPowerCutInSweep cuts the power before every call of a sweep and at its end, in every
// variant. Needed contents are whole, also after the next sweep and the next cut.
func TestPowerCutInSweep(t *testing.T) {
	t.Parallel()
	explored := 0
	for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
		disk, live := packed(t, mode)
		type point struct {
			disk *crashfs.Disk
			op   string
		}
		var points []point
		disk.SetHook(func(op crashfs.Op) crashfs.Fault {
			if op.N > 0 {
				points = append(points, point{disk.Snapshot(), op.Call + " " + op.Name})
			}
			return crashfs.Fault{}
		})
		require.NoError(t, sweep(on(t, disk), live))
		disk.SetHook(nil)
		for _, p := range append(points, point{disk, "the end"}) {
			for _, v := range p.disk.Variants(nil, 0) {
				explored++
				found := p.disk.Crash(v)
				require.NoError(t, verifyAll(on(t, found), live), "cut before %s, %s", p.op, v.Name)
				require.NoError(t, sweep(on(t, found), live), "cut before %s, %s", p.op, v.Name)
				again := on(t, found.Crash(crashfs.Variant{}))
				require.NoError(t, verifyAll(again, live), "cut before %s, %s, and after a sweep", p.op, v.Name)
			}
		}
		require.Equal(t, len(live)+1, objects(t, on(t, disk)), "one dead content is in a pack that stays")
	}
	require.Greater(t, explored, 150)
}

// TestFaultInSweep fails each call of a sweep and then cuts the power, in every variant. The
// only copy of a content is never one that a failed sync has lost.
func TestFaultInSweep(t *testing.T) {
	t.Parallel()
	for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
		for n := 1; ; n++ {
			disk, live := packed(t, mode)
			op, err := failing(disk, n, func() error { return sweep(on(t, disk), live) })
			for _, v := range disk.Variants(nil, 0) {
				require.NoError(t, verifyAll(on(t, disk.Crash(v)), live), "%s fails, %s", op, v.Name)
			}
			if op == "" {
				require.NoError(t, err)
				require.Greater(t, n, 20)
				break
			}
		}
	}
}

// failing runs fn while the n-th call fails, and returns the name of that call.
func failing(disk *crashfs.Disk, n int, fn func() error) (op string, err error) {
	var mu sync.Mutex
	var calls int
	disk.SetHook(func(x crashfs.Op) crashfs.Fault {
		mu.Lock()
		defer mu.Unlock()
		if x.N == 0 {
			return crashfs.Fault{}
		}
		if calls++; calls != n {
			return crashfs.Fault{}
		}
		op = x.Call + " " + x.Name
		return crashfs.Fault{Err: syscall.EIO}
	})
	defer disk.SetHook(nil)
	err = fn()
	return op, err
}

// TestFaultInBatch fails each call of a Batch, stores the same contents in another Batch of
// the same Store, and cuts the power. What the second Batch acknowledged is whole.
func TestFaultInBatch(t *testing.T) {
	t.Parallel()
	contents := []string{"first", strings.Repeat("second", 100), strings.Repeat("large", 500)}
	for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
		for n := 1; ; n++ {
			disk := crashfs.New(mode)
			require.NoError(t, writer.MkdirDurable(disk.FS(), "blobs"))
			s := on(t, disk)
			var hashes []blob.Hash
			op, err := failing(disk, n, func() (err error) {
				hashes, err = storeAll(s, contents...)
				return err
			})
			if err != nil {
				hashes, err = storeAll(s, contents...)
			}
			require.NoError(t, err, op)
			for _, v := range disk.Variants(nil, 0) {
				for _, h := range hashes {
					require.NoError(t, on(t, disk.Crash(v)).Verify(h), "%s failed before, %s", op, v.Name)
				}
			}
			if op == "" {
				require.Greater(t, n, 15)
				break
			}
		}
	}
}

// TestFullDisk sweeps a full disk. The removals need no room, and they make room for the
// rewrites.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk, live := packed(t, crashfs.Ext4)
	u, err := on(t, disk).Usage()
	require.NoError(t, err)
	disk.Capacity(int(u), 0)
	_, err = storeAll(on(t, disk), strings.Repeat("more", 100))
	require.Equal(t, writer.ClassNoSpace, writer.ClassOf(err), "%v", err)
	require.NoError(t, sweep(on(t, disk), live))
	require.NoError(t, verifyAll(on(t, disk), live))
	require.Equal(t, len(live)+1, objects(t, on(t, disk)))
	packs, err := disk.FS().ReadDir("blobs/packs")
	require.NoError(t, err)
	require.Len(t, packs, 3)
}

// objects counts what a store has.
func objects(t *testing.T, s *blob.Store) (n int) {
	t.Helper()
	for _, err := range s.All() {
		require.NoError(t, err)
		n++
	}
	return n
}
