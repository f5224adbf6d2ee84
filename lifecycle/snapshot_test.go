package lifecycle_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// phase accepts a State in the next phase.
func (s *sim) phase(p session.Phase) error {
	e := s.sess.State().Edit()
	e.Header().TurnCount, e.Header().Phase = len(s.states), p
	st, err := e.State()
	require.NoError(s.t, err)
	s.states = append(s.states, st)
	return s.sess.Save(st, session.TriggerPhaseChanged)
}

func TestReadAtEveryRecord(t *testing.T) {
	t.Parallel()
	s := newSim(t, crashfs.Ext4)
	s.initWith(lifecycle.Policy{Interval: 4, Retention: 2})
	require.NoError(t, s.create())
	for i := range 30 {
		bulk := 10
		if i%11 == 7 {
			bulk = 6000 // a change that is too large for a record
		}
		require.NoError(t, s.save(bulk))
		require.NoError(t, s.flush())
		if i == 3 || i == 17 {
			require.NoError(t, s.phase([]session.Phase{session.PhasePlanning, session.PhaseBuilding}[i/10]))
			require.NoError(t, s.flush())
		}
	}
	all, err := s.store.Snapshots(s.id)
	require.NoError(t, err)
	kinds := map[history.Reason]int{}
	for _, m := range all {
		kinds[m.Reason]++
		st, err := s.store.ReadAt(s.id, m.Seq)
		require.NoError(t, err)
		require.Equal(t, st.Progress().Total, m.Tasks.Total)
		require.Equal(t, st.NumIterations(), m.Iterations)
		require.NotEmpty(t, m.SHA256)
		require.NotZero(t, m.Bytes)
	}
	require.Equal(t, map[history.Reason]int{history.Large: 3, history.Phase: 2, history.Interval: 2}, kinds)
	for n, want := range s.states {
		st, err := s.store.ReadAt(s.id, uint64(n+1))
		require.NoError(t, err, "record %d", n+1)
		require.Equal(t, image(want), image(st))
	}
	for _, seq := range []uint64{0, uint64(len(s.states) + 1)} {
		_, err := s.store.ReadAt(s.id, seq)
		require.ErrorIs(t, err, lifecycle.ErrNotFound)
	}
	require.NoError(t, s.close())
}

// With a hole in the journal the nearest snapshot behind it still leads to what
// comes after, and what lies in the hole is reported as gone.
func TestReadAtAcrossAHole(t *testing.T) {
	t.Parallel()
	store := storeWith(t, t.TempDir(), lifecycle.Policy{Iterations: true})
	sess := create(t, store, "auth")
	for n := 1; n <= 6; n++ {
		require.NoError(t, sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
			if n == 4 {
				e.AppendIteration(session.Iteration{Task: "a", StartedAt: day})
			}
			return turns(n)(e)
		}))
		require.NoError(t, sess.Flush(t.Context()))
	}
	require.NoError(t, sess.Close(t.Context()))
	all, err := store.Snapshots(sess.ID())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, history.Iteration, all[0].Reason)
	require.Equal(t, 1, all[0].NewIterations)
	require.EqualValues(t, 5, all[0].Seq)

	file := path(store, "sessions", sess.ID().String(), "journal-1-1.jsonl")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := splitLines(data)
	lines[lineOf(lines, 3)][20] ^= 1
	write(t, file, joinLines(lines))
	for seq, want := range map[uint64]int{1: 0, 2: 1, 5: 4, 6: 5, 7: 6} {
		st, err := store.ReadAt(sess.ID(), seq)
		require.NoError(t, err, "record %d", seq)
		require.Equal(t, want, st.Header().TurnCount)
	}
	for _, seq := range []uint64{3, 4} {
		_, err := store.ReadAt(sess.ID(), seq)
		require.ErrorIs(t, err, lifecycle.ErrCorrupt, "record %d", seq)
	}
}

// Retention drops snapshots, but never one that a record names: what it says was
// acknowledged, and stands nowhere else.
func TestRetentionKeepsWhatRecordsName(t *testing.T) {
	t.Parallel()
	s := newSim(t, crashfs.Ext4)
	s.initWith(lifecycle.Policy{Interval: 1, Retention: 1})
	require.NoError(t, s.create())
	for _, bulk := range []int{6000, 7000, 6000, 10, 10, 10} { // three changes too large for a record
		require.NoError(t, s.save(bulk))
		require.NoError(t, s.flush())
	}
	require.NoError(t, s.close())
	all, err := s.store.Snapshots(s.id)
	require.NoError(t, err)
	kinds := map[history.Reason]int{}
	for _, m := range all {
		kinds[m.Reason]++
	}
	require.Equal(t, 1, kinds[history.Interval], "or nothing was dropped and this test proves nothing")
	for n, want := range s.states {
		st, err := s.store.ReadAt(s.id, uint64(n+1))
		require.NoError(t, err, "record %d", n+1)
		require.Equal(t, image(want), image(st))
	}
	r, err := s.store.Verify(s.id)
	require.NoError(t, err)
	require.Equal(t, repair.Intact, r.Condition, "%v", r.Faults)
}

// The snapshot that a record names counts only if it has the record's checksum. Another
// snapshot with the same number does not count.
func TestSnapshotThatTheRecordDoesNotName(t *testing.T) {
	t.Parallel()
	b := newBed(t, crashfs.Ext4)
	dir, err := b.disk.FS().Sub(".lopen/sessions/" + b.id.String())
	require.NoError(t, err)
	behind := map[string][]byte{} // the readable files, of the record before
	for _, name := range []string{"state.json", "metrics.json"} {
		behind[name], err = writer.ReadFile(dir, name, 1<<20)
		require.NoError(t, err)
	}
	require.NoError(t, b.save(6000))
	require.NoError(t, b.close())
	for name, data := range behind {
		require.NoError(t, writer.ReplaceFile(dir, name, data, 0o600))
	}
	require.Equal(t, 2, b.found(t), "it is read by way of the snapshot")
	all, err := b.store.Snapshots(b.id)
	require.NoError(t, err)
	require.Len(t, all, 1)
	mark := session.Mark{Epoch: all[0].Epoch, Seq: all[0].Seq}
	_, err = history.Write(dir, all[0], wire.EncodeState(b.states[0], mark), wire.EncodeMetrics(b.states[0], mark), codec.Options{})
	require.NoError(t, err)
	_, _, err = b.store.Read(b.id)
	require.ErrorIs(t, err, lifecycle.ErrCorrupt)
}
