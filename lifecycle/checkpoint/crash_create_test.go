package checkpoint

import (
	"context"
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

// TestPowerCutInCreate cuts the power before every call of Create, in every variant:
// what is listed is whole, blobs included, and a sweep keeps it so; the next one gets
// a number of its own.
func TestPowerCutInCreate(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	s := simulated(t, disk)
	lay(t, s.tree, treeBefore...)
	first, err := s.Create(context.Background(), testMeta, nil, nil)
	require.NoError(t, err)
	lay(t, s.tree, treeAfter...)
	disk = disk.Crash(crashfs.Variant{})
	s = simulated(t, disk)
	var mu sync.Mutex
	var points []*crashfs.Disk
	var ops []string
	disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.N > 0 {
			mu.Lock()
			defer mu.Unlock()
			points, ops = append(points, disk.Snapshot()), append(ops, op.Call+" "+op.Name)
		}
		return crashfs.Fault{}
	})
	_, err = s.Create(context.Background(), testMeta, first, nil)
	require.NoError(t, err)
	require.NoError(t, s.Remove(2)) // cut too, and what frees its blobs
	require.NoError(t, sweep(s))
	disk.SetHook(nil)
	for i, p := range points {
		for _, v := range p.Variants(nil, 0) {
			require.NoError(t, checkCreated(t, p.Crash(v)), "cut before %s, %s", ops[i], v.Name)
		}
	}
}

// sweep removes the blobs that no checkpoint has.
func sweep(s *Store) error {
	_, err := s.blobs.Sweep(func() (map[blob.Hash]struct{}, error) {
		into := map[blob.Hash]struct{}{}
		return into, Roots(s.dir, ".", into)
	}, false)
	return err
}

// TestHeldUntilDurable tries to sweep before each call that makes the manifest: the
// blobs that it is to name look like garbage until then.
func TestHeldUntilDurable(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	s := simulated(t, disk)
	lay(t, s.tree, treeBefore...)
	other := simulated(t, disk)
	var mu sync.Mutex
	var sweeping bool
	tried := map[string]error{}
	disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		mu.Lock()
		mine := op.N > 0 && strings.HasPrefix(op.Name, "checkpoints") && !sweeping
		sweeping = sweeping || mine
		mu.Unlock()
		if mine {
			err := sweep(other)
			mu.Lock()
			defer mu.Unlock()
			sweeping, tried[op.Call+" "+op.Name] = false, err
		}
		return crashfs.Fault{}
	})
	_, err := s.Create(context.Background(), testMeta, nil, nil)
	require.NoError(t, err)
	disk.SetHook(nil)
	require.Contains(t, tried, "syncdir checkpoints")
	for call, err := range tried {
		require.ErrorIs(t, err, writer.ErrBusy, call)
	}
	require.NoError(t, sweep(other))
	require.NoError(t, s.blobs.Verify(first(t, s).Files.Find("a").Hash))
}

func first(t require.TestingT, s *Store) *Manifest {
	m, err := s.Load(1)
	require.NoError(t, err)
	return m
}

func checkCreated(t require.TestingT, disk *crashfs.Disk) error {
	s := simulated(t, disk)
	list, err := s.List()
	if err != nil {
		return err
	}
	if len(list) == 0 || list[0].ID != 1 {
		return fmt.Errorf("the first checkpoint is gone: %v", list)
	}
	if err := sweep(s); err != nil {
		return err
	}
	for _, info := range list {
		m, err := s.Load(info.ID)
		if err != nil {
			return err
		}
		m.Blobs(func(h blob.Hash, _ int64) {
			if verr := s.blobs.Verify(h); verr != nil {
				err = verr
			}
		})
		if err != nil {
			return err
		}
	}
	first, err := s.Load(1)
	if err != nil {
		return err
	}
	m, err := s.Create(context.Background(), testMeta, first, nil)
	if err != nil {
		return err
	}
	if last := list[len(list)-1].ID; m.ID <= last {
		return fmt.Errorf("%s after %s", m.ID, last)
	}
	return nil
}

// TestCreateFaults fails each call of Create once: there is a checkpoint or there is
// none, and the next one works.
func TestCreateFaults(t *testing.T) {
	t.Parallel()
	base := crashfs.New(crashfs.Ext4)
	lay(t, simulated(t, base).tree, treeBefore...)
	for n := 1; ; n++ {
		disk := base.Snapshot()
		s := simulated(t, disk)
		var mu sync.Mutex
		count, hit := 0, ""
		disk.SetHook(func(op crashfs.Op) crashfs.Fault {
			mu.Lock()
			defer mu.Unlock()
			if count++; count == n {
				hit = op.Call + " " + op.Name
				return crashfs.Fault{Err: syscall.ENOSPC}
			}
			return crashfs.Fault{}
		})
		m, err := s.Create(context.Background(), testMeta, nil, nil)
		disk.SetHook(nil)
		if hit == "" {
			require.NoError(t, err)
			require.Greater(t, n, 60)
			break
		}
		list, lerr := s.List()
		require.NoError(t, lerr)
		var e *writer.Error
		if err == nil {
			require.Equal(t, []Info{{Header: m.Header}}, list, hit)
			require.False(t, strings.HasPrefix(hit, "sync") || strings.HasPrefix(hit, "write"), hit)
		} else {
			require.ErrorIs(t, err, syscall.ENOSPC, hit)
			require.ErrorAs(t, err, &e, hit)
			require.True(t, len(list) == 0 || e.Outcome == writer.NotDurable, hit)
		}
		next, err := s.Create(context.Background(), testMeta, nil, nil)
		require.NoError(t, err, hit)
		next.Blobs(func(h blob.Hash, _ int64) { require.NoError(t, s.blobs.Verify(h), hit) })
	}
}
