package blob_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// TestPowerCutInBatch cuts the power before every call of a Batch and at its end, in
// every variant. What Commit acknowledged is whole, and everything can be stored again.
func TestPowerCutInBatch(t *testing.T) {
	t.Parallel()
	contents := []string{strings.Repeat("first", 300), strings.Repeat("second", 500), strings.Repeat("\x00", 9000), "third"}
	for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
		disk := crashfs.New(mode)
		require.NoError(t, writer.MkdirDurable(disk.FS(), "blobs"))
		type point struct {
			disk *crashfs.Disk
			op   string
		}
		var mu sync.Mutex
		var points []point
		disk.SetHook(func(op crashfs.Op) crashfs.Fault {
			if op.N > 0 {
				mu.Lock()
				defer mu.Unlock()
				points = append(points, point{disk.Snapshot(), op.Call + " " + op.Name})
			}
			return crashfs.Fault{}
		})
		s := on(t, disk)
		if mode == crashfs.XFS {
			s.Compressing(codec.Options{Threshold: 1000})
		}
		h, err := s.Hold(context.Background())
		require.NoError(t, err)
		b := h.Batch()
		for _, c := range contents {
			_, _, err := b.Put(strings.NewReader(c), blob.Hash{})
			require.NoError(t, err)
		}
		require.NoError(t, b.Commit())
		disk.SetHook(nil)
		require.Greater(t, len(points), 20)
		for _, p := range points {
			for _, v := range p.disk.Variants(nil, 0) {
				require.NoError(t, checkCut(t, p.disk.Crash(v), nil, contents...), "cut before %s, %s", p.op, v.Name)
			}
		}
		for _, v := range disk.Variants(nil, 0) {
			found := on(t, disk.Crash(v))
			for _, c := range contents {
				want, err := store(found, c)
				require.NoError(t, err)
				require.NoError(t, on(t, disk.Crash(v)).Verify(want), "after Commit, %s", v.Name)
			}
		}
	}
}
