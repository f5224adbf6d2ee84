package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/journal"
)

// bounded is a policy that drops records of the State soon.
var bounded = lifecycle.Policy{JournalBytes: 32 << 10}

// logFiles are the segments of a session, and the bytes of those that were not thinned.
func (s *sim) logFiles() (plain, packed int) {
	dir, err := s.disk.FS().Sub(".lopen/sessions/" + s.id.String())
	require.NoError(s.t, err)
	defer dir.Close()
	entries, err := dir.ReadDir(".")
	require.NoError(s.t, err)
	for _, e := range entries {
		switch {
		case !journal.IsSegment(e.Name()):
		case strings.HasSuffix(e.Name(), ".zst"):
			packed++
		default:
			plain++
		}
	}
	return plain, packed
}

// attempt records one.
func (s *sim) attempt(n int) {
	require.NoError(s.t, s.sess.Record(record.Attempt{Task: fmt.Sprintf("t%d", n/3), Attempt: n, StartedAt: day, EndedAt: day, Then: record.Failed}))
}

// attempts are those that the log has, by number.
func (s *sim) attempts() (all []int) {
	require.NoError(s.t, s.store.Log(s.id, 0, func(r record.Record) error {
		for _, a := range r.Attempts {
			all = append(all, a.Attempt)
		}
		return nil
	}))
	return all
}

// shrinks saves until the history begins at a record above the number.
func (s *sim) shrinks(above uint64) (attempts []int, began uint64) {
	for began <= above {
		n := len(s.states)
		s.attempt(n)
		attempts = append(attempts, n)
		require.NoError(s.t, s.save(600))
		require.NoError(s.t, s.sync())
		require.NoError(s.t, s.flush()) // waits for the running publication
		var err error
		began, err = s.store.Began(s.id)
		require.NoError(s.t, err)
		require.Less(s.t, n, 500, "nothing is dropped")
	}
	return attempts, began
}

func TestCompaction(t *testing.T) {
	t.Parallel()
	s := newSim(t, crashfs.Ext4)
	s.talks = true
	s.initWith(bounded)
	require.NoError(t, s.create())
	want, began := s.shrinks(1)
	more, later := s.shrinks(began)
	want = append(want, more...)
	require.Greater(t, later, began)

	look := func() {
		plain, packed := s.logFiles()
		require.Less(t, plain, 4)
		require.Less(t, packed, 16)
		require.Equal(t, want, s.attempts())
		messages, events, err := conversationIn(s.store, s.id)
		require.NoError(t, err)
		require.Equal(t, s.messages, messages)
		require.Equal(t, s.events, events)
		st, seq, err := s.store.Read(s.id)
		require.NoError(t, err)
		require.Equal(t, len(s.states)-1, st.Header().TurnCount)
		for at := later; at <= seq; at++ { // and everything since history begins
			_, err := s.store.ReadAt(s.id, at)
			require.NoError(t, err, "record %d of %d", at, seq)
		}
		_, err = s.store.ReadAt(s.id, later-1)
		require.ErrorIs(t, err, lifecycle.ErrNotFound)
		require.ErrorContains(t, err, fmt.Sprintf("from %d to", later))
		all, err := s.store.Snapshots(s.id)
		require.NoError(t, err)
		require.NotEmpty(t, all)
		for _, m := range all {
			require.GreaterOrEqual(t, m.Seq, later, "snapshots of dropped records are gone")
		}
		report, err := s.store.Verify(s.id)
		require.NoError(t, err)
		require.Equal(t, repair.Intact, report.Condition, "%v %v", report.Err, report.Faults)
		past, err := s.store.Recorded(st)
		require.NoError(t, err)
		require.Equal(t, want[len(want)-1], past.Last.Attempt)
	}
	look()
	require.NoError(t, s.close())
	look()

	// The readable files are not what it rests on.
	dir, err := s.disk.FS().Sub(".lopen/sessions/" + s.id.String())
	require.NoError(t, err)
	defer dir.Close()
	for _, name := range []string{"state.json", "metrics.json", journal.ListFile} {
		require.NoError(t, dir.Remove(name))
	}
	n := len(s.states)
	require.NoError(t, s.reopen())
	require.Len(t, s.states, n, "the newest State")
	require.NoError(t, s.save(10))
	require.NoError(t, s.sync())
	require.NoError(t, s.close())
}

// What is left of dropped records is missing: verify says so, with and after the list, and the
// State does not rest on it.
func TestRemainingSegmentIsLost(t *testing.T) {
	t.Parallel()
	s := newSim(t, crashfs.Ext4)
	s.initWith(bounded)
	require.NoError(t, s.create())
	s.shrinks(1)
	require.NoError(t, s.close())
	dir, err := s.disk.FS().Sub(".lopen/sessions/" + s.id.String())
	require.NoError(t, err)
	defer dir.Close()
	entries, err := dir.ReadDir(".")
	require.NoError(t, err)
	first := ""
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".zst") && (first == "" || e.Name() < first) {
			first = e.Name()
		}
	}
	require.NoError(t, dir.Remove(first))
	n := len(s.states)
	for _, want := range []string{first, "journal"} {
		report, err := s.store.Verify(s.id)
		require.NoError(t, err)
		require.Equal(t, repair.HistoryDamaged, report.Condition)
		require.Contains(t, report.Faults[0].File, want)
		require.NoError(t, s.reopen())
		require.Len(t, s.states, n, "the newest State")
		require.NoError(t, s.close())
	}
}

// TestCompactionWithoutABound compresses, and drops nothing.
func TestCompactionWithoutABound(t *testing.T) {
	t.Parallel()
	s := newSim(t, crashfs.XFS)
	s.init()
	require.NoError(t, s.create())
	for range 40 {
		require.NoError(t, s.save(600))
		require.NoError(t, s.sync())
		require.NoError(t, s.flush())
	}
	plain, packed := s.logFiles()
	require.Less(t, plain, 4)
	require.Greater(t, packed, 3)
	began, err := s.store.Began(s.id)
	require.NoError(t, err)
	require.EqualValues(t, 1, began)
	_, seq, err := s.store.Read(s.id)
	require.NoError(t, err)
	for at := uint64(1); at <= seq; at++ {
		_, err := s.store.ReadAt(s.id, at)
		require.NoError(t, err)
	}
	require.NoError(t, s.close())
}

// TestCompactionOfShortHoldings has holders of which none holds the session long enough to
// be quiet.
func TestCompactionOfShortHoldings(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	store := storeWith(t, project, lifecycle.Policy{})
	sess := create(t, store, "m")
	require.NoError(t, sess.Close(t.Context()))
	var want []string
	for n := range 60 {
		sess, err := store.Open(sess.ID())
		require.NoError(t, err)
		want = append(want, fmt.Sprintf("m%d", n))
		says(t, sess, want[n])
		require.NoError(t, sess.Close(t.Context()))
	}
	plain, err := filepath.Glob(filepath.Join(project, ".lopen/sessions", sess.ID().String(), "journal-*.jsonl"))
	require.NoError(t, err)
	require.LessOrEqual(t, len(plain), 20)
	messages, _, err := conversationIn(store, sess.ID())
	require.NoError(t, err)
	require.Equal(t, want, messages)
	report, err := store.Verify(sess.ID())
	require.NoError(t, err)
	require.Equal(t, repair.Intact, report.Condition, "%v %v", report.Err, report.Faults)
}

// TestPowerCutInACompaction cuts it at every call while segments are compressed and
// records dropped.
func TestPowerCutInACompaction(t *testing.T) {
	t.Parallel()
	for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			s := newSim(t, mode)
			defer s.counted()
			s.talks = true
			s.initWith(lifecycle.Policy{JournalBytes: 20 << 10})
			require.NoError(t, s.create())
			s.shrinks(1)
			began, err := s.store.Began(s.id)
			require.NoError(t, err)
			s.capture.Store(true)
			s.disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
				if op.N > 0 && (strings.Contains(op.Name, ".zst") || strings.Contains(op.Name, journal.ListFile) || op.Call == "remove") {
					s.take(op.Call + " " + op.Name)
				}
				return crashfs.Fault{}
			}))
			s.shrinks(began)
			require.NoError(t, s.close())
			s.take("the end")
			s.explore(1)
		})
	}
}

// TestKilledInACompaction ends the process at every call of one.
func TestKilledInACompaction(t *testing.T) {
	t.Parallel()
	for kill := 1; ; kill += every(4) {
		s := newSim(t, crashfs.Ext4)
		s.talks = true
		s.initWith(lifecycle.Policy{JournalBytes: 20 << 10})
		require.NoError(t, s.create())
		n, dead := 0, false
		s.disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
			if strings.Contains(op.Name, ".zst") && op.N > 0 {
				n++
			}
			if dead = dead || n >= kill; dead {
				return crashfs.Fault{Err: errors.New("killed")}
			}
			return crashfs.Fault{}
		}))
		for i := 0; i < 50 && s.save(600) == nil; i++ {
			if s.sync() != nil || s.flush() != nil {
				break
			}
		}
		s.kill()
		require.NoError(t, s.reopen(), "killed at call %d", kill)
		require.NoError(t, s.save(10))
		require.NoError(t, s.sync())
		require.NoError(t, s.close())
		report, err := s.store.Verify(s.id)
		require.NoError(t, err)
		require.Contains(t, []repair.Condition{repair.Intact, repair.Torn}, report.Condition, "%v %v", report.Err, report.Faults)
		if !dead {
			require.Greater(t, kill, 20)
			return
		}
	}
}

// TestFullDiskInACompaction requires that the session continues and is compacted later.
func TestFullDiskInACompaction(t *testing.T) {
	t.Parallel()
	s := newSim(t, crashfs.Ext4)
	s.talks = true
	s.initWith(bounded)
	require.NoError(t, s.create())
	var full atomic.Bool
	full.Store(true)
	s.disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if full.Load() && op.Call == "write" && strings.Contains(op.Name, "journal-") && strings.Contains(op.Name, ".zst") {
			return crashfs.Fault{Err: syscall.ENOSPC}
		}
		return crashfs.Fault{}
	})
	for range 30 {
		require.NoError(t, s.save(600))
		require.NoError(t, s.sync())
		require.NoError(t, s.flush())
	}
	require.NoError(t, s.sess.Paused())
	_, packed := s.logFiles()
	require.Zero(t, packed)
	full.Store(false)
	s.shrinks(1)
	require.NoError(t, s.close())
	require.NoError(t, s.reopen())
	require.NoError(t, s.close())
}

// TestCursor holds back what a reader has not seen.
func TestCursor(t *testing.T) {
	t.Parallel()
	s := newSim(t, crashfs.Ext4)
	s.initWith(bounded)
	require.NoError(t, s.create())
	at, err := s.store.Cursor(s.id, "fleet")
	require.NoError(t, err)
	require.Zero(t, at)
	require.NoError(t, s.store.MoveCursor(s.id, "fleet", 5))
	require.NoError(t, s.store.MoveCursor(s.id, "fleet", 3), "it goes forward alone")
	at, err = s.store.Cursor(s.id, "fleet")
	require.NoError(t, err)
	require.EqualValues(t, 5, at)
	require.ErrorIs(t, s.store.MoveCursor(s.id, "../x", 5), lifecycle.ErrInvalid)

	fill := func() uint64 {
		for range 60 {
			require.NoError(t, s.save(600))
			require.NoError(t, s.sync())
			require.NoError(t, s.flush())
		}
		began, err := s.store.Began(s.id)
		require.NoError(t, err)
		return began
	}
	require.LessOrEqual(t, fill(), uint64(6), "what it has not passed is there")
	_, seq, err := s.store.Read(s.id)
	require.NoError(t, err)
	require.NoError(t, s.store.MoveCursor(s.id, "fleet", seq))
	require.NoError(t, s.store.MoveCursor(s.id, "other", seq-10))
	began := fill()
	require.Greater(t, began, uint64(6))
	require.LessOrEqual(t, began, seq-9)

	// One that is damaged may have passed nothing.
	dir, err := s.disk.FS().Sub(".lopen/sessions/" + s.id.String())
	require.NoError(t, err)
	defer dir.Close()
	require.NoError(t, writer.ReplaceFile(dir, "cursors/other.json", []byte(`{"schemaVersion":1,"seq":1000000}`), 0o600))
	_, err = s.store.Cursor(s.id, "other")
	require.ErrorIs(t, err, lifecycle.ErrCorrupt)
	require.Equal(t, began, fill())
	require.NoError(t, dir.Remove("cursors/other.json"))
	_, seq, err = s.store.Read(s.id)
	require.NoError(t, err)
	require.NoError(t, s.store.MoveCursor(s.id, "fleet", seq))
	require.Greater(t, fill(), began)
	require.NoError(t, s.close())
}

// TestDroppedRecordsOfAFork: a fork has what its parent dropped of the State by itself.
func TestDroppedRecordsOfAFork(t *testing.T) {
	t.Parallel()
	s := newSim(t, crashfs.Ext4)
	s.talks = true
	s.initWith(bounded)
	require.NoError(t, s.create())
	_, began := s.shrinks(1)
	before := slices.Clone(s.messages)
	require.NoError(t, s.close())
	fork, err := s.store.Fork(context.Background(), s.id, lifecycle.ForkOptions{})
	require.NoError(t, err)
	messages, _, err := conversationIn(s.store, fork.ID())
	require.NoError(t, err)
	require.Equal(t, before, messages)
	require.NoError(t, fork.Close(context.Background()))
	s.sess, err = s.store.Open(s.id)
	require.NoError(t, err)
	s.shrinks(began)
	require.NoError(t, s.close())
	messages, _, err = conversationIn(s.store, fork.ID())
	require.NoError(t, err)
	require.Equal(t, before, messages)
}

// TestNothingIsDroppedWithoutItsSnapshot: where history begins there is a State, whatever
// cursors hold back and whichever snapshots are damaged.
func TestNothingIsDroppedWithoutItsSnapshot(t *testing.T) {
	t.Parallel()
	s := newSim(t, crashfs.Ext4)
	s.initWith(bounded)
	require.NoError(t, s.create())
	require.NoError(t, s.store.MoveCursor(s.id, "fleet", 8))
	for range 60 {
		require.NoError(t, s.save(600))
		require.NoError(t, s.sync())
		require.NoError(t, s.flush())
	}
	began, err := s.store.Began(s.id)
	require.NoError(t, err)
	require.EqualValues(t, 1, began, "no State is whole up to where the cursor is")

	all, err := s.store.Snapshots(s.id)
	require.NoError(t, err)
	require.NotEmpty(t, all)
	dir, err := s.disk.FS().Sub(".lopen/sessions/" + s.id.String())
	require.NoError(t, err)
	defer dir.Close()
	for _, m := range all {
		data, err := writer.ReadFile(dir, m.File(), 1<<20)
		require.NoError(t, err)
		data[len(data)/2] ^= 1
		require.NoError(t, writer.ReplaceFile(dir, m.File(), data, 0o600))
	}
	require.NoError(t, s.store.MoveCursor(s.id, "fleet", 1<<40))
	_, began = s.shrinks(1)
	_, err = s.store.ReadAt(s.id, began)
	require.NoError(t, err)
	require.NoError(t, s.close())
}
