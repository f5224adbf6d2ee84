package checkpoint

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

// The trees before and after a task.
var (
	treeBefore = []string{"a", "one", "gone/", "", "gone/x", "two", "link", "-> a", "swap", "a file", ".gitignore", "ignored\n"}
	treeAfter  = []string{"a", "ONE!", "link", "-> mode", "swap/", "", "swap/in", "six", "new/", "", "new/moved", "five", ".gitignore", "other\n"}
)

// sweep removes the objects that no entry needs.
func sweep(s *Store) error {
	_, err := s.blobs.Sweep(func() (map[blob.Hash]struct{}, error) {
		into := map[blob.Hash]struct{}{}
		return into, Roots(s.dir, s.blobs, into)
	})
	return err
}

// whole says whether the chain can be read and every entry that was not removed has all
// of its objects.
func whole(s *Store) error {
	c, err := s.load()
	if err != nil {
		return err
	}
	err = errors.Join(c.faults...) // but for a last line that a crash spoilt
	for _, e := range c.entries {
		if e.Removed != "" {
			continue
		}
		err = errors.Join(err, s.Objects(e, func(h blob.Hash, _ int64) bool {
			if verr := s.blobs.Verify(h); verr != nil {
				err = errors.Join(err, fmt.Errorf("checkpoint %d: %w", e.Number, verr))
				return false
			}
			return true
		}))
	}
	return err
}

// TestPowerCutInCreate cuts the power before every call of entries that are made, pinned
// and removed, and of the sweep: what was acknowledged is there, what is listed is whole,
// also after a sweep, and the next entry gets a number of its own.
func TestPowerCutInCreate(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	disk := crashfs.New(crashfs.Ext4)
	s := simulated(t, disk)
	lay(t, s.tree, treeBefore...)
	_, err := s.Create(ctx, about("s", Manual, nil))
	require.NoError(t, err)
	lay(t, s.tree, treeAfter...)
	disk = disk.Crash(crashfs.Variant{})
	s = simulated(t, disk)
	type point struct {
		disk *crashfs.Disk
		op   string
		made uint64 // the newest entry that was acknowledged
		gone uint64 // the newest one whose removal was
	}
	var mu sync.Mutex
	var points []point
	now := point{made: 1}
	disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.N > 0 {
			mu.Lock()
			defer mu.Unlock()
			now.disk, now.op = disk.Snapshot(), op.Call+" "+op.Name
			points = append(points, now)
		}
		return crashfs.Fault{}
	})
	acknowledged := func(made, gone uint64) {
		mu.Lock()
		defer mu.Unlock()
		now.made, now.gone = made, gone
	}
	create := func(want uint64) {
		e, err := s.Create(ctx, about("s", Manual, nil))
		require.NoError(t, err)
		require.Equal(t, want, e.Number)
		acknowledged(want, now.gone)
	}
	create(2)
	create(3) // nothing changed; its line is appended
	require.NoError(t, writer.ReplaceFile(s.tree, "a", []byte("three"), 0o644))
	create(4)
	_, err = s.Forget(ctx, "test", func(e *Entry) bool { return e.Number == 1 || e.Number == 4 })
	require.NoError(t, err)
	acknowledged(4, 4)
	require.NoError(t, sweep(s))
	create(5)
	disk.SetHook(nil)
	for i, p := range points {
		if i%sparse() != 0 {
			continue
		}
		for _, v := range p.disk.Variants(nil, 0) {
			msg := fmt.Sprintf("cut before %s, %s", p.op, v.Name)
			s := simulated(t, p.disk.Crash(v))
			require.NoError(t, whole(s), msg)
			entries, _, err := s.List()
			require.NoError(t, err)
			require.GreaterOrEqual(t, uint64(len(entries)), p.made, msg)
			for _, e := range entries {
				require.True(t, e.Number > p.gone || e.Removed != "" || e.Number == 2 || e.Number == 3, msg)
			}
			require.NoError(t, sweep(s), msg)
			require.NoError(t, whole(s), msg)
			next, err := s.Create(ctx, about("s", Manual, nil))
			require.NoError(t, err, msg)
			require.Greater(t, next.Number, entries[len(entries)-1].Number, msg)
			require.NoError(t, whole(s), msg)
			temps, err := writer.Temps(s.dir, ".")
			require.NoError(t, err)
			require.Empty(t, temps, msg)
		}
	}
}

// TestTornTwice cuts the power while a line is appended, appends behind what is left, and
// cuts again.
func TestTornTwice(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	disk := crashfs.New(crashfs.Ext4)
	s := simulated(t, disk)
	lay(t, s.tree, treeBefore...)
	for range 2 {
		_, err := s.Create(ctx, about("s", Manual, nil))
		require.NoError(t, err)
	}
	// cut has the next Create end before the sync of its line.
	cut := func(s *Store, disk *crashfs.Disk, call string) *crashfs.Disk {
		var at *crashfs.Disk
		disk.SetHook(func(op crashfs.Op) crashfs.Fault {
			if at == nil && op.Call == call && (op.Name == "checkpoints/main.jsonl" || call == "sync" && strings.HasPrefix(op.Name, "checkpoints/.tmp-main")) {
				at = disk.Snapshot()
			}
			return crashfs.Fault{}
		})
		_, err := s.Create(ctx, about("s", Manual, nil))
		require.NoError(t, err)
		disk.SetHook(nil)
		require.NotNil(t, at)
		return at
	}
	count := 0
	first := cut(s, disk, "datasync")
	for _, v := range first.Variants(nil, 0) {
		disk := first.Crash(v)
		s := simulated(t, disk)
		entries, _, err := s.List()
		require.NoError(t, err, v.Name)
		require.GreaterOrEqual(t, len(entries), 2, v.Name)
		for _, second := range []*crashfs.Disk{cut(s, disk, "rename"), cut(s, disk, "datasync")} {
			for _, w := range second.Variants(nil, 0) {
				s := simulated(t, second.Crash(w))
				require.NoError(t, whole(s), "%s, %s", v.Name, w.Name)
				again, _, err := s.List()
				require.NoError(t, err)
				require.GreaterOrEqual(t, len(again), len(entries), "%s, %s", v.Name, w.Name)
				count++
			}
		}
	}
	require.Greater(t, count, 20)
}

// TestCreateFaults fails each call of Create once: there is a checkpoint or there is
// none, and the next one works, also after a power cut.
func TestCreateFaults(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	base := crashfs.New(crashfs.Ext4)
	lay(t, simulated(t, base).tree, treeBefore...)
	for _, before := range []int{0, 2} { // entries that this Store made: then it appends
		for n := 1; ; n += sparse() {
			disk := base.Snapshot()
			s := simulated(t, disk)
			for range before {
				_, err := s.Create(ctx, about("s", Manual, nil))
				require.NoError(t, err)
			}
			require.NoError(t, writer.ReplaceFile(s.tree, "a", []byte("new"), 0o644))
			var mu sync.Mutex
			count, hit := 0, ""
			disk.SetHook(func(op crashfs.Op) crashfs.Fault {
				mu.Lock()
				defer mu.Unlock()
				if count++; count == n {
					hit = op.Call + " " + op.Name
					return crashfs.Fault{Err: syscall.ENOSPC, Partial: op.Bytes / 2}
				}
				return crashfs.Fault{}
			})
			e, err := s.Create(ctx, about("s", Manual, nil))
			disk.SetHook(nil)
			if hit == "" {
				require.NoError(t, err)
				require.Greater(t, n, 60)
				break
			}
			list, _, lerr := s.List()
			require.NoError(t, lerr)
			if err == nil {
				require.Len(t, list, before+1, hit)
				require.Equal(t, e, list[before], hit)
				require.False(t, strings.HasPrefix(hit, "sync ") || strings.HasPrefix(hit, "write checkpoints/main"), hit)
			} else {
				var werr *writer.Error
				require.ErrorContains(t, err, syscall.ENOSPC.Error(), hit)
				require.ErrorAs(t, err, &werr, hit)
				require.True(t, len(list) == before || werr.Outcome == writer.NotDurable, hit)
			}
			next, err := s.Create(ctx, about("s", Manual, nil))
			require.NoError(t, err, hit)
			require.NoError(t, whole(s), hit)
			for _, v := range disk.Variants(nil, 0) {
				s := simulated(t, disk.Crash(v))
				require.NoError(t, whole(s), "%s, %s", hit, v.Name)
				found, err := s.Find(next.ID)
				require.NoError(t, err, "%s, %s", hit, v.Name)
				require.Equal(t, next, found, "%s, %s", hit, v.Name)
			}
		}
	}
}

// TestRemovalThatIsNotDurable fails the sync of a removal: the entry is not removed, since
// a sweep would take its objects, and a power cut would bring it back.
func TestRemovalThatIsNotDurable(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	disk := crashfs.New(crashfs.Ext4)
	s := simulated(t, disk)
	for i := range 3 {
		lay(t, s.tree, "a", fmt.Sprint(i))
		_, err := s.Create(ctx, about("s", Manual, nil))
		require.NoError(t, err)
	}
	disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "datasync" {
			return crashfs.Fault{Err: syscall.EIO}
		}
		return crashfs.Fault{}
	})
	_, err := s.Forget(ctx, "test", func(e *Entry) bool { return e.Number == 1 })
	disk.SetHook(nil)
	var werr *writer.Error
	require.ErrorAs(t, err, &werr)
	require.Equal(t, writer.NotCommitted, werr.Outcome)
	require.NoError(t, sweep(simulated(t, disk)))
	for _, v := range disk.Variants(nil, 0) {
		s := simulated(t, disk.Crash(v))
		require.NoError(t, whole(s), v.Name)
		e, err := s.At(1)
		require.NoError(t, err, v.Name)
		require.Empty(t, e.Removed, v.Name)
	}
}

// TestKilledBeforeTheSync has a process die between the write of a removal and its sync:
// a sweep makes the removal durable before it believes it.
func TestKilledBeforeTheSync(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	disk := crashfs.New(crashfs.Ext4)
	s := simulated(t, disk)
	for i := range 3 {
		lay(t, s.tree, "a", fmt.Sprint(i))
		_, err := s.Create(ctx, about("s", Manual, nil))
		require.NoError(t, err)
	}
	var killed *crashfs.Disk
	disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "datasync" && killed == nil {
			killed = disk.Snapshot()
		}
		return crashfs.Fault{}
	})
	_, err := s.Forget(ctx, "test", func(e *Entry) bool { return e.Number == 1 })
	require.NoError(t, err)
	disk.SetHook(nil)
	require.NoError(t, sweep(simulated(t, killed))) // the power stays on
	for _, v := range killed.Variants(nil, 0) {
		require.NoError(t, whole(simulated(t, killed.Crash(v))), v.Name)
	}
}

// TestHeldUntilDurable tries to sweep before each call that makes the entry: the objects
// that it is to name look like garbage until then.
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
		mine := op.N > 0 && strings.HasPrefix(op.Name, "checkpoints/") && !sweeping
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
	_, err := s.Create(context.Background(), about("s", Manual, nil))
	require.NoError(t, err)
	disk.SetHook(nil)
	require.Contains(t, tried, "rename checkpoints/main.jsonl")
	for call, err := range tried {
		require.ErrorIs(t, err, writer.ErrBusy, call)
	}
	require.NoError(t, sweep(other))
	require.NoError(t, whole(other))
}
