package lifecycle_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// The tests of this file and its neighbours are named after the numbers of the
// faults that docs/FAULTS.md lists.

// bed is a session on a simulated disk with one State acknowledged, and a record
// of the calls that are made from then on.
type bed struct {
	*sim
	calls []crashfs.Op
}

func newBed(t *testing.T, mode crashfs.Mode) *bed {
	b := &bed{sim: newSim(t, mode)}
	b.init()
	require.NoError(t, b.create())
	require.NoError(t, b.save(10))
	require.NoError(t, b.flush())
	b.fail(nil)
	return b
}

// fail has every call that match picks end as fault says, from now on; nil heals.
func (b *bed) fail(match func(crashfs.Op) bool, fault ...crashfs.Fault) {
	b.watch(func(op crashfs.Op) crashfs.Fault {
		b.mu.Lock()
		b.calls = append(b.calls, op)
		b.mu.Unlock()
		if match != nil && match(op) {
			return fault[0]
		}
		return crashfs.Fault{}
	})
}

// called counts the calls since the last look on files whose names have this suffix.
func (b *bed) called(suffix string, calls ...string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, op := range b.calls {
		if strings.HasSuffix(op.Name, suffix) && slices.Contains(calls, op.Call) {
			n++
		}
	}
	return n
}

// found returns the State that a reader without the lease finds.
func (b *bed) found(t *testing.T) int {
	t.Helper()
	store, err := lifecycle.OpenOn(b.disk.FS(), simOptions)
	require.NoError(t, err)
	st, seq, err := store.Read(b.id)
	require.NoError(t, err)
	require.NoError(t, store.Close(t.Context()))
	n := st.Header().TurnCount
	require.Equal(t, image(b.states[n]), image(st), "record %d", seq)
	return n
}

// survives requires that the newest State that was acknowledged is there after a
// power cut that leaves nothing that was not synced, and that no number of a record
// is missing or there twice.
func (b *bed) survives(t *testing.T) {
	t.Helper()
	cut := b.disk.Snapshot().Crash(crashfs.Variant{})
	store, err := lifecycle.OpenOn(cut.FS(), simOptions)
	require.NoError(t, err)
	defer store.Close(t.Context())
	st, seq, err := store.Read(b.id)
	require.NoError(t, err)
	require.GreaterOrEqual(t, st.Header().TurnCount, b.acked.state)
	require.Equal(t, image(b.states[st.Header().TurnCount]), image(st))
	want := uint64(0)
	require.NoError(t, store.Log(b.id, 0, func(r record.Record) error {
		want++
		require.Equal(t, want, r.Seq)
		return nil
	}))
	require.Equal(t, want, seq)
}

func named(call, suffix string) func(crashfs.Op) bool {
	return func(op crashfs.Op) bool { return op.Call == call && strings.Contains(op.Name, suffix) }
}

func errnoOf(errno syscall.Errno) crashfs.Fault { return crashfs.Fault{Err: errno} }

// pausedBy requires that err is a pause that says why, where and what to do.
func pausedBy(t *testing.T, err error, class lifecycle.Class, errno syscall.Errno) *lifecycle.PausedError {
	t.Helper()
	var paused *lifecycle.PausedError
	require.ErrorAs(t, err, &paused)
	require.ErrorIs(t, err, errno)
	require.Equal(t, class, lifecycle.ClassOf(err), "%v", err)
	require.ErrorContains(t, err, errno.Error())
	require.ErrorContains(t, err, "/sim/.lopen/sessions/sim-20260214-1")
	return paused
}

func TestFault02PowerCutAfterAcknowledgement(t *testing.T) {
	t.Parallel()
	for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
		b := newBed(t, mode)
		for range 5 {
			require.NoError(t, b.save(10))
			require.NoError(t, b.sync())
			b.survives(t)
		}
	}
}

func TestFault03PowerCutBetweenRenameAndFolderSync(t *testing.T) {
	t.Parallel()
	b := newBed(t, crashfs.Ext4)
	var between []*crashfs.Disk
	renamed := false
	b.watch(serial(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "syncdir" && renamed {
			between = append(between, b.disk.Snapshot())
		}
		renamed = op.Call == "rename"
		return crashfs.Fault{}
	}))
	require.NoError(t, b.save(10))
	require.NoError(t, b.flush())
	require.Len(t, between, 2, "state.json and metrics.json")
	shown := map[uint64]int{}
	for _, disk := range between {
		for _, v := range disk.Variants(nil, 0) {
			store, err := lifecycle.OpenOn(disk.Crash(v).FS(), simOptions)
			require.NoError(t, err)
			infos, err := store.List()
			require.NoError(t, err)
			require.NoError(t, infos[0].Err, "old or new, whole: %s", v.Name)
			shown[infos[0].Seq]++
			st, _, err := store.Read(b.id)
			require.NoError(t, err)
			require.Equal(t, 2, st.Header().TurnCount, "the record was acknowledged before: %s", v.Name)
			require.NoError(t, store.Close(t.Context()))
		}
	}
	require.Len(t, shown, 2, "both were seen, or this test proves nothing")
}

func TestFault04PowerCutWhileCreating(t *testing.T) {
	t.Parallel()
	s := newSim(t, crashfs.Ext4)
	s.init()
	s.capture.Store(true)
	s.watch(nil)
	require.NoError(t, s.create())
	whole, absent := 0, 0
	for _, p := range s.points {
		for _, v := range p.disk.Variants(nil, 0) {
			store, err := lifecycle.OpenOn(p.disk.Crash(v).FS(), simOptions)
			require.NoError(t, err)
			infos, err := store.List()
			require.NoError(t, err)
			for _, info := range infos {
				require.NoError(t, info.Err, "%s, %s", p.op, v.Name)
				sess, err := store.Open(info.ID)
				require.NoError(t, err, "%s, %s", p.op, v.Name)
				require.Equal(t, session.PhaseRequirementGathering, sess.State().Phase())
			}
			whole += len(infos)
			absent += 1 - len(infos)
			require.NoError(t, store.Close(t.Context()))
		}
	}
	require.NotZero(t, whole)
	require.NotZero(t, absent)
}

func TestFault05UnsyncedWritesTornAndReordered(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("all states of a cut; TestPowerCutAnywhere has some; -short")
	}
	b := newBed(t, crashfs.Ext4)
	require.NoError(t, b.save(3000)) // several blocks
	b.capture.Store(true)
	require.NoError(t, b.sync())
	require.NoError(t, b.save(2000))
	require.NoError(t, b.sync())
	b.explore(0)
	require.Greater(t, b.explored, 40, "disks that differ: torn at each block, with NULs, holes and garbage")
}

func TestFault08AppendAfterATornTail(t *testing.T) {
	t.Parallel()
	b := newBed(t, crashfs.Ext4)
	var torn *crashfs.Disk
	b.watch(serial(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "datasync" && torn == nil {
			torn = b.disk.Snapshot()
		}
		return crashfs.Fault{}
	}))
	require.NoError(t, b.save(2000))
	require.NoError(t, b.sync())
	tried := 0
	for _, v := range torn.Variants(nil, 0) {
		if !strings.Contains(v.Name, "torn at") {
			continue
		}
		tried++
		after := &bed{sim: newSim(t, crashfs.Ext4)}
		after.disk, after.model = torn.Crash(v), b.model
		after.acked.state = 1
		require.NoError(t, after.reopen(), v.Name)
		require.NoError(t, after.save(10))
		require.NoError(t, after.sync())
		after.survives(t)
		require.NoError(t, after.close())
	}
	require.NotZero(t, tried)
}

func TestFault09NoSpaceAnywhere(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"create", "write", "datasync", "sync", "rename", "syncdir"} {
		b := newBed(t, crashfs.Ext4)
		b.fail(func(op crashfs.Op) bool { return op.Call == call }, errnoOf(syscall.ENOSPC))
		saved := b.save(10)
		err := b.flush()
		pausedBy(t, err, lifecycle.ClassNoSpace, syscall.ENOSPC)
		raised := <-b.sess.Critical()
		pausedBy(t, raised, lifecycle.ClassNoSpace, syscall.ENOSPC)
		pausedBy(t, b.save(10), lifecycle.ClassNoSpace, syscall.ENOSPC)
		require.Contains(t, []error{nil, raised}, saved)
		require.GreaterOrEqual(t, b.found(t), 1, "%s: the old state is intact", call)
		require.Error(t, b.unpause(), "%s: the disk is still full", call)
		b.fail(nil)
		require.NoError(t, b.unpause(), call)
		require.Equal(t, 3, b.acked.state)
		require.Equal(t, 3, b.found(t), call)
		b.survives(t)
		require.NoError(t, b.close())
	}
	s := newSim(t, crashfs.Ext4)
	s.init()
	s.watch(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "mkdir" {
			return errnoOf(syscall.ENOSPC)
		}
		return crashfs.Fault{}
	})
	_, err := s.store.Create(t.Context(), "sim")
	require.Equal(t, lifecycle.ClassNoSpace, lifecycle.ClassOf(err), "%v", err)
	s.watch(nil)
	require.NoError(t, s.create())
	require.NoError(t, s.close())
}

func TestFault10InodesExhausted(t *testing.T) {
	t.Parallel()
	b := newBed(t, crashfs.Ext4)
	b.disk.Capacity(0, 1)
	_ = b.save(10)
	pausedBy(t, b.flush(), lifecycle.ClassNoSpace, syscall.ENOSPC)
	b.disk.Capacity(0, 0)
	require.NoError(t, b.unpause())
	require.Equal(t, 2, b.found(t))
	b.survives(t)
	require.NoError(t, b.close())
}

// A file whose fsync failed is given up: whatever the next fsync would say, it is
// neither written nor synced again, and nothing is acknowledged on it.
func TestFault11And12FsyncFailsOnce(t *testing.T) {
	t.Parallel()
	for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
		for _, errno := range []syscall.Errno{syscall.EDQUOT, syscall.EIO} {
			class := lifecycle.ClassNoSpace
			if errno == syscall.EIO {
				class = lifecycle.ClassDevice
			}
			b := newBed(t, mode)
			failed := false
			b.fail(func(op crashfs.Op) bool {
				if op.Call != "datasync" || failed {
					return false
				}
				failed = true
				return true
			}, errnoOf(errno))
			_ = b.save(10)
			pausedBy(t, b.sync(), class, errno)
			const given = "journal-1-1.jsonl"
			written := b.called(given, "write")
			require.Equal(t, 1, b.called(given, "datasync"))
			require.Equal(t, 1, b.acked.state)
			require.NoError(t, b.unpause())
			require.NoError(t, b.save(10))
			require.NoError(t, b.sync())
			require.Equal(t, written, b.called(given, "write"))
			require.Equal(t, 1, b.called(given, "datasync", "sync"))
			require.Equal(t, 2, b.called("journal-1-2.jsonl", "datasync"))
			require.Equal(t, 3, b.acked.state)
			b.survives(t)
			require.NoError(t, b.close())
		}
	}
}

func TestFault13FolderSyncFails(t *testing.T) {
	t.Parallel()
	b := newBed(t, crashfs.Ext4)
	failed := false
	b.fail(func(op crashfs.Op) bool {
		if op.Call != "syncdir" || failed {
			return false
		}
		failed = true
		return true
	}, errnoOf(syscall.EIO))
	_ = b.save(10)
	require.True(t, pausedBy(t, b.flush(), lifecycle.ClassDevice, syscall.EIO).Durable, "the record was acknowledged")
	require.Equal(t, 1, b.called("journal-1-1.jsonl", "datasync"))
	require.Zero(t, b.called("journal-1-1.jsonl", "remove"), "nothing that the snapshot would cover is dropped")
	renames := b.called(".json", "rename")
	require.NoError(t, b.unpause())
	require.Greater(t, b.called(".json", "rename"), renames, "written and renamed anew")
	b.survives(t)
	require.NoError(t, b.close())
}

func TestFault14CloseFails(t *testing.T) {
	t.Parallel()
	b := newBed(t, crashfs.Ext4)
	b.fail(named("close", ".tmp-"), errnoOf(syscall.EIO))
	_ = b.save(10)
	pausedBy(t, b.flush(), lifecycle.ClassDevice, syscall.EIO)
	temps := map[string]int{}
	for _, op := range b.calls {
		if op.Call == "close" && strings.Contains(op.Name, ".tmp-") {
			temps[op.Name]++
		}
	}
	for name, n := range temps {
		require.Equal(t, 1, n, "close of %s is not tried again", name)
	}
	b.fail(nil)
	require.NoError(t, b.unpause())
	require.Equal(t, 2, b.found(t))
	b.survives(t)
	require.NoError(t, b.close())
}

func TestFault15ReadOnly(t *testing.T) {
	t.Parallel()
	b := newBed(t, crashfs.Ext4)
	changes := func(op crashfs.Op) bool { return op.N > 0 && op.Call != "close" && op.Call != "syncdir" }
	b.fail(changes, errnoOf(syscall.EROFS))
	_ = b.save(10)
	pausedBy(t, b.sync(), lifecycle.ClassDenied, syscall.EROFS)
	require.Equal(t, 1, b.found(t), "reading goes on")
	pausedBy(t, b.unpause(), lifecycle.ClassDenied, syscall.EROFS)
	b.fail(nil)
	require.NoError(t, b.unpause())
	require.Equal(t, 2, b.found(t))
	require.NoError(t, b.close())
}

func TestFault16NoPermission(t *testing.T) {
	t.Parallel()
	b := newBed(t, crashfs.Ext4)
	b.fail(func(op crashfs.Op) bool { return op.Call == "create" }, errnoOf(syscall.EACCES))
	_ = b.save(10)
	err := b.flush()
	pausedBy(t, err, lifecycle.ClassDenied, syscall.EACCES)
	require.ErrorContains(t, err, ".json")
	require.ErrorContains(t, err, "permission denied")
	b.fail(nil)
	require.NoError(t, b.unpause())
	require.NoError(t, b.close())
}

func TestFault17ShortWrite(t *testing.T) {
	t.Parallel()
	for _, partial := range []int{1, 100, 600} {
		b := newBed(t, crashfs.Ext4)
		short := false
		b.fail(func(op crashfs.Op) bool {
			if op.Call != "write" || !strings.HasSuffix(op.Name, "journal-1-1.jsonl") || short {
				return false
			}
			short = true
			return true
		}, crashfs.Fault{Partial: partial})
		_ = b.save(700)
		require.Error(t, b.sync())
		require.Equal(t, 1, b.found(t), "no fragment is applied")
		require.NoError(t, b.unpause())
		require.Equal(t, 1, b.called("journal-1-1.jsonl", "write"), "the segment is given up")
		require.Equal(t, 2, b.found(t))
		b.survives(t)
		require.NoError(t, b.close())
	}
}

func TestFault18SpaceIsFreed(t *testing.T) {
	t.Parallel()
	b := newBed(t, crashfs.Ext4)
	for round := range 4 {
		b.fail(func(op crashfs.Op) bool { return op.Call == "write" }, crashfs.Fault{Err: syscall.ENOSPC, Partial: 50 * round})
		for range 3 {
			_ = b.save(10)
		}
		require.Error(t, b.sync())
		require.Error(t, b.unpause())
		b.fail(nil)
		require.NoError(t, b.unpause())
		b.survives(t) // which counts the numbers
	}
	require.Equal(t, 13, b.found(t))
	require.NoError(t, b.close())
}

func TestFault19OutOfDescriptors(t *testing.T) {
	t.Parallel()
	b := newBed(t, crashfs.Ext4)
	left := 2
	b.fail(func(op crashfs.Op) bool {
		if op.Call != "create" || left == 0 {
			return false
		}
		left--
		return true
	}, errnoOf(syscall.EMFILE))
	require.NoError(t, b.save(10))
	require.NoError(t, b.flush(), "a descriptor comes back after two tries")

	b.fail(func(op crashfs.Op) bool { return op.Call == "create" }, errnoOf(syscall.EMFILE))
	b.calls = nil
	_ = b.save(10)
	err := b.flush()
	require.ErrorIs(t, err, syscall.EMFILE)
	require.ErrorContains(t, err, "too many open files")
	tries := map[string]int{}
	for _, op := range b.calls {
		if op.Call == "create" {
			tries[op.Name]++
		}
	}
	for name, n := range tries {
		require.LessOrEqual(t, n, 4, name)
	}
	b.fail(nil)
	require.NoError(t, b.unpause())
	b.survives(t)
	require.NoError(t, b.close())
}

func TestFault31FsyncFailsThenRestartThenPowerCut(t *testing.T) {
	t.Parallel()
	for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
		b := newBed(t, mode)
		b.fail(func(op crashfs.Op) bool { return op.Call == "datasync" }, errnoOf(syscall.EIO))
		_ = b.save(10)
		require.Error(t, b.sync())
		b.kill() // the cache may still show what never reached the disk
		b.fail(nil)
		require.NoError(t, b.reopen())
		require.NoError(t, b.save(10))
		require.NoError(t, b.sync())
		b.survives(t)
		require.NoError(t, b.close())
	}
}
