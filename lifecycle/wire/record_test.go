package wire_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// line frames a body as the journal does, without its checksum.
func line(seq uint64, body []byte) []byte {
	return fmt.Appendf(nil, `{"seq":%d,"epoch":1,"synced":0,%s,"crc":"00000000"}`+"\n", seq, body)
}

// headline changes random members of the header and adds iterations.
func headline(t *rapid.T, e *session.Edit) {
	h := e.Header()
	for _, what := range rapid.SliceOfN(rapid.IntRange(0, 9), 0, 4).Draw(t, "members") {
		n := rapid.IntRange(0, 3).Draw(t, "value")
		text := strings.Repeat("x\"", n)
		switch what {
		case 0:
			h.Phase = []session.Phase{session.PhasePlanning, session.PhaseBuilding, session.PhaseComplete, session.PhasePlanning}[n]
		case 1:
			h.ActiveTask, h.Component = strings.Repeat("a", n), strings.Repeat("b", n)
		case 2:
			h.Settings = session.Settings{Command: []string{text}, RequireChange: n > 1, Timeout: time.Duration(n)}
		case 3:
			h.Data = strictjson.Value(`{"rating":` + fmt.Sprint(n) + `}`)
			if n == 0 {
				h.Data = nil
			}
		case 4:
			h.Extra = nil
			for i := range n {
				h.Extra = append(h.Extra, session.Field{Key: fmt.Sprintf("later\"%d", i), Value: strictjson.Value(fmt.Sprint(n))})
			}
		case 5:
			h.Check = nil
			if n > 0 {
				h.Check = &session.CheckResult{Command: text, Exit: n, At: at, Task: text}
			}
		case 6:
			h.UpdatedAt = at.Add(time.Duration(n) * time.Second)
		case 7:
			h.ExitReason = []session.ExitReason{"", session.ExitCrashed, session.ExitPaused, ""}[n]
		default:
			for range 1 + 20*n {
				e.AppendIteration(session.Iteration{Task: "a", Attempt: n, StartedAt: at, OutputTokens: int64(what)})
			}
		}
	}
}

// TestRecordsReplayToTheState makes a random history, in which a save may also go
// back to an earlier State and on from there, and requires that the records lead
// from nothing and from any two snapshots to exactly the State that was saved.
func TestRecordsReplayToTheState(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		states := []*session.State{fresh(t)}
		marks := []session.Mark{{Epoch: 1, Seq: 1}}
		lines := [][]byte{line(1, wire.EncodeChange(nil, states[0], record.Record{At: at, Event: record.EventCreated}, 0).Body)}
		for range rapid.IntRange(1, 10).Draw(t, "saves") {
			from := states[len(states)-1]
			if rapid.IntRange(0, 3).Draw(t, "back") == 0 {
				from = states[rapid.IntRange(0, len(states)-1).Draw(t, "to")]
			}
			e := from.Edit()
			headline(t, e)
			if rapid.Bool().Draw(t, "tasks") {
				change(t, e)
			}
			st, err := e.State()
			if err != nil {
				continue
			}
			c := wire.EncodeChange(states[len(states)-1], st, record.Record{At: at, Triggers: [session.NumTriggers]uint64{0, 2, 0, 1}}, 0)
			mark := session.Mark{Epoch: 1, Seq: uint64(len(states) + 1), Iterations: marks[len(marks)-1].Iterations}
			if c.Iterations {
				mark.Iterations = mark.Seq
			}
			require.True(t, json.Valid(line(1, c.Body)), "%s", c.Body)
			require.NotContains(t, string(c.Body), "\n")
			states, marks, lines = append(states, st), append(marks, mark), append(lines, line(mark.Seq, c.Body))
		}
		last := len(states) - 1
		want := wire.EncodeState(states[last], marks[last])
		wantMetrics := wire.EncodeMetrics(states[last], marks[last])

		var r wire.Replay
		for _, l := range lines {
			rec, err := r.Apply(l)
			require.NoError(t, err, "%s", l)
			require.NotZero(t, rec.At)
		}
		st, mark, err := r.State(states[0].ID())
		require.NoError(t, err)
		require.Equal(t, string(want), string(wire.EncodeState(st, mark)))
		require.Equal(t, string(wantMetrics), string(wire.EncodeMetrics(st, mark)))

		i, j := rapid.IntRange(0, last).Draw(t, "state"), rapid.IntRange(0, last).Draw(t, "metrics")
		r = wire.Replay{}
		require.NoError(t, r.Load(wire.EncodeState(states[i], marks[i]), wire.EncodeMetrics(states[j], marks[j])))
		due := min(r.At().Seq, r.Metrics().Seq)
		for _, l := range lines[due:] {
			_, err := r.Apply(l)
			require.NoError(t, err)
		}
		st, mark, err = r.State(states[0].ID())
		require.NoError(t, err)
		require.Equal(t, string(want), string(wire.EncodeState(st, mark)))
		require.Equal(t, string(wantMetrics), string(wire.EncodeMetrics(st, mark)))
	})
}

func TestRecordOperations(t *testing.T) {
	t.Parallel()
	st := family(t)
	e := st.Edit()
	a, _ := e.Task("a")
	a.State, a.DependsOn = session.TaskFailed, []string{"b"}
	e.Put(a)
	b, _ := e.Task("b")
	b.DependsOn = []string{"a"}
	e.Put(b)
	h := e.Header()
	h.Phase, h.TurnCount, h.ActiveTask = session.PhaseBuilding, 3, "a"
	e.AppendIteration(session.Iteration{Task: "a", StartedAt: at})
	to, err := e.State()
	require.NoError(t, err)
	c := wire.EncodeChange(st, to, record.Record{At: at, Commit: 187 * time.Microsecond, Triggers: [session.NumTriggers]uint64{1, 0, 2}}, 0)
	rec, err := wire.DecodeRecord(line(5, c.Body))
	require.NoError(t, err)
	require.EqualValues(t, 3, rec.Saves())
	require.Equal(t, 187*time.Microsecond, rec.Commit)
	require.Equal(t, []record.Op{
		{Name: record.OpIterationsAdded, Count: 1},
		{Name: record.OpPhaseChanged, From: "requirement-gathering", To: "building"},
		{Name: record.OpActiveTaskChanged, To: "a"},
		{Name: record.OpModified},
		{Name: record.OpTaskStatusChanged, Task: "a", From: "pending", To: "failed"},
		{Name: record.OpDependencyAdded, Task: "b"},
	}, rec.Ops)
	counts := map[string]uint64{}
	for _, op := range rec.Ops {
		counts[op.Name]++
	}
	require.Equal(t, counts, wire.CountChanges(st, to))
}

// TestRecordNotes reads notes, which do not change the State, from a record of operations
// and from a record that names a snapshot.
func TestRecordNotes(t *testing.T) {
	t.Parallel()
	st := family(t)
	ops := []record.Op{
		{Name: record.OpMessagesAppended, Count: 2},
		{Name: record.OpFilesChanged, Task: "a", To: "created", Count: 21, Paths: []string{"x", "y z"}},
		{Name: record.OpCheckpointMade, To: "cp-000001"},
		{Name: record.OpNotSetBack, Task: "a", To: "HEAD moved"},
	}
	c := wire.EncodeChange(st, st, record.Record{At: at, Ops: ops}, 0)
	require.True(t, c.None)
	rec, err := wire.DecodeRecord(line(5, c.Body))
	require.NoError(t, err)
	require.Equal(t, ops, rec.Ops)

	ref := record.SnapshotRef{SHA256: strings.Repeat("a", 64), Counts: map[string]uint64{record.OpTaskCreated: 3}}
	rec, err = wire.DecodeRecord(line(5, wire.EncodeSnapshotRecord(record.Record{At: at, Ops: ops}, ref)))
	require.NoError(t, err)
	require.Equal(t, ops, rec.Ops)
	require.Equal(t, &ref, rec.Snapshot)
}

// TestOneTaskMoreInALongList requires that one more task costs a line and not the whole list.
func TestOneTaskMoreInALongList(t *testing.T) {
	t.Parallel()
	e := fresh(t).Edit()
	var ids []string
	for i := range 10_000 {
		ids = append(ids, fmt.Sprintf("task-%d", i))
		e.Put(task(ids[i], ""))
	}
	e.SetRoots(ids)
	st, err := e.State()
	require.NoError(t, err)
	e = st.Edit()
	e.Put(task("new", ""))
	e.SetRoots(append(append(ids[:500:500], "new"), ids[500:]...))
	to, err := e.State()
	require.NoError(t, err)
	require.Less(t, len(wire.EncodeChange(st, to, record.Record{At: at}, 0).Body), 500)

	c := wire.EncodeChange(nil, st, record.Record{At: at}, 100_000)
	require.True(t, c.Large)
	require.Nil(t, c.Body)
	counts := wire.CountChanges(nil, st)
	require.Equal(t, map[string]uint64{
		record.OpTaskCreated: 10_000, record.OpChildrenChanged: 1, record.OpStatusChanged: 1, record.OpPhaseChanged: 1, record.OpStepChanged: 1, record.OpModified: 1,
	}, counts)
	rec, err := wire.DecodeRecord(line(9, wire.EncodeSnapshotRecord(record.Record{At: at}, record.SnapshotRef{SHA256: strings.Repeat("0a", 32), Counts: counts})))
	require.NoError(t, err)
	require.Equal(t, counts, rec.Snapshot.Counts)
}

func TestRefusedRecords(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`"schemaVersion":3,"x":[]`:                                                        "newer version",
		`"schemaVersion":2,"ops":[{"op":"exploded"}]`:                                     "none of those",
		`"schemaVersion":2,"ops":[{"op":"children-changed","of":"x","inserted":["y"]}]`:   "not there",
		`"schemaVersion":2,"ops":[{"op":"children-changed","at":4,"removed":1}]`:          "from 4 on",
		`"schemaVersion":2,"ops":[{"op":"iterations-added","keep":3}]`:                    "from 3 on",
		`"schemaVersion":2,"ops":[{"op":"iterations-added","iterations":[{"number":9}]}]`: "iteration 9",
		`"schemaVersion":2,"event":"birthday"`:                                            "no event",
		`"schemaVersion":2,"snapshot":{"sha256":"00"}`:                                    "checksum is missing",
		`"ops":[]`: "schemaVersion is missing",
		`"schemaVersion":2,"ops":[{"op":"task-created","task":{"id":"a","kind":"task","state":"x"},"parent":1}]`: "want",
	} {
		var r wire.Replay
		_, err := r.Apply(line(1, []byte(body)))
		require.ErrorContains(t, err, want)
		if strings.Contains(body, ":3,") {
			require.ErrorIs(t, err, envelope.ErrFutureVersion)
		} else {
			require.ErrorIs(t, err, envelope.ErrCorrupt)
		}
	}
	var r wire.Replay
	_, _, err := r.State(fresh(t).ID())
	require.ErrorIs(t, err, envelope.ErrCorrupt)
	// A task that breaks a rule is found when the State is made.
	_, err = r.Apply(line(1, []byte(`"schemaVersion":2,"ops":[{"op":"task-created","task":{"id":"a","kind":"task","state":"x"}}]`)))
	require.NoError(t, err)
	_, _, err = r.State(fresh(t).ID())
	require.ErrorIs(t, err, envelope.ErrCorrupt)
}

// TestLenientReplay applies the records that follow a lost record to the State before
// it, as far as they can be applied.
func TestLenientReplay(t *testing.T) {
	t.Parallel()
	states := []*session.State{fresh(t)}
	var lines [][]byte
	for n := uint64(2); n <= 5; n++ {
		from := states[len(states)-1]
		e := from.Edit()
		id := fmt.Sprintf("t%d", n)
		e.Put(task(id, ""))
		e.SetRoots(append(from.Roots(), id))
		e.AppendIteration(session.Iteration{Task: id, StartedAt: at})
		st, err := e.State()
		require.NoError(t, err)
		lines = append(lines, line(n, wire.EncodeChange(from, st, record.Record{At: at}, 0).Body))
		states = append(states, st)
	}
	strict := wire.Continue(states[1], session.Mark{Epoch: 1, Seq: 2})
	_, err := strict.Apply(lines[2]) // of record 4: that of 3 is lost
	require.ErrorIs(t, err, envelope.ErrCorrupt)

	r := wire.Continue(states[1], session.Mark{Epoch: 1, Seq: 2})
	r.Lenient = true
	for _, l := range lines[2:] {
		_, err := r.Apply(l)
		require.NoError(t, err)
	}
	st, mark, err := r.State(states[0].ID())
	require.NoError(t, err)
	require.EqualValues(t, 5, mark.Seq)
	require.Equal(t, []string{"t2", "t4", "t5"}, st.Roots())
	require.Equal(t, 3, st.NumIterations())
	require.Empty(t, session.Check(st))
	require.Equal(t, []string{"t2"}, states[1].Roots(), "the State before is as it was")

	// Iterations that are lost are left out, where the caller says so.
	state, none := wire.EncodeState(states[4], session.Mark{Epoch: 1, Seq: 5, Iterations: 5}), wire.EncodeMetrics(states[0], session.Mark{})
	r = &wire.Replay{}
	require.NoError(t, r.Load(state, none))
	_, _, err = r.State(states[0].ID())
	require.ErrorIs(t, err, envelope.ErrCorrupt)
	r.Level()
	st, mark, err = r.State(states[0].ID())
	require.NoError(t, err)
	require.EqualValues(t, 5, mark.Seq)
	require.Zero(t, st.NumIterations())
	require.Equal(t, states[4].Roots(), st.Roots())
}

func TestAsAnotherSession(t *testing.T) {
	t.Parallel()
	st := full(t)
	other, err := session.ParseID("auth-20260214-9")
	require.NoError(t, err)
	as, err := st.As(other)
	require.NoError(t, err)
	require.Equal(t, other, as.ID())
	require.Equal(t, "auth-20260214-1", st.ID().String())
	require.Equal(t, st.Header(), as.Header())
	require.Empty(t, wire.CountChanges(st, as), "all else is shared")
	_, err = st.As(session.ID{})
	require.Error(t, err)
}
