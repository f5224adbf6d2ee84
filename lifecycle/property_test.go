package lifecycle_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/writer/crashfs"
)

// Every run has the same examples; -rapid.seed 0 draws others.
func init() { _ = flag.Set("rapid.seed", "1") }

// TestAnyHistory makes random histories of saves, faults, restarts and power cuts
// on one disk. After each the model of sim must hold.
func TestAnyHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]crashfs.Mode{crashfs.Ext4, crashfs.XFS}).Draw(t, "mode")
		s := newSim(t, mode)
		s.init()
		require.NoError(t, s.create())
		s.talks = rapid.Bool().Draw(t, "talk")
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			step(t, s)
		}
		s.disk.SetHook(nil)
		if err := s.unpause(); err == nil {
			require.NoError(t, s.save(1))
			require.NoError(t, s.sync())
		}
		s.kill()
		require.NoError(t, s.reopen())
		require.NoError(t, s.close())
		crashStates.Add(1)
	})
}

var errnos = []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.EACCES, syscall.EMFILE}

// step does one random thing. Calls whose success it does not require may fail.
func step(t *rapid.T, s *sim) {
	switch what := rapid.SampledFrom([]string{"save", "save", "sync", "flush", "fault", "heal", "unpause", "restart", "cut", "cut while working"}).Draw(t, "step"); what {
	case "save":
		for range rapid.IntRange(1, 4).Draw(t, "burst") {
			_ = s.save(rapid.SampledFrom([]int{1, 600, 6000}).Draw(t, "bulk"))
		}
	case "sync":
		_ = s.sync()
	case "flush":
		_ = s.flush()
	case "fault": // the k-th call from now, once or for ever
		k, forever := rapid.IntRange(1, 12).Draw(t, "call"), rapid.Bool().Draw(t, "forever")
		errno := rapid.SampledFrom(errnos).Draw(t, "errno")
		n := 0
		s.watch(serial(func(op crashfs.Op) crashfs.Fault {
			if n++; n == k || forever && n > k {
				return crashfs.Fault{Err: &os.PathError{Op: op.Call, Path: op.Name, Err: errno}, Partial: op.Bytes / 3}
			}
			return crashfs.Fault{}
		}))
	case "heal":
		s.watch(nil)
	case "unpause":
		_ = s.unpause()
	case "restart":
		s.kill()
		require.NoError(t, s.reopen())
	case "cut":
		s.cut(t, s.disk.Snapshot())
	case "cut while working": // at a call of a save
		k, n := rapid.IntRange(1, 14).Draw(t, "call"), 0
		var at *crashfs.Disk
		var then acked
		s.watch(serial(func(crashfs.Op) crashfs.Fault {
			if n++; n == k {
				at = s.disk.Snapshot()
				then = s.lastAcked()
			}
			return crashfs.Fault{}
		}))
		_ = s.save(10)
		_ = s.flush()
		s.disk.SetHook(nil)
		if at != nil {
			_ = s.sess.Close(t.Context())
			s.mu.Lock()
			s.acked = then
			s.mu.Unlock()
			s.cut(t, at)
		}
	}
}

func (s *sim) lastAcked() acked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acked
}

// cut cuts the power of a disk and continues with what is found.
func (s *sim) cut(t *rapid.T, disk *crashfs.Disk) {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	all := disk.Variants(rng, 3)
	v := all[rng.IntN(len(all))]
	s.kill()
	s.disk = disk.Crash(v)
	require.NoError(t, s.reopen(), v.Name)
}
