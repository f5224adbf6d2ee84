package session_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// version1 is a session as version 1 wrote it: files that were recorded when that version
// ran the sample project, up to its fourth task. They cannot be recorded again, as
// nothing writes version 1 any more; a changed byte in them is a mistake.
func version1(t testing.TB) (state, metrics []byte) {
	t.Helper()
	var err error
	state, err = os.ReadFile("../testdata/v1/state.json")
	require.NoError(t, err)
	metrics, err = os.ReadFile("../testdata/v1/metrics.json")
	require.NoError(t, err)
	return state, metrics
}

func TestVersion1(t *testing.T) {
	t.Parallel()
	state, metrics := version1(t)
	id, err := session.ParseID("tally-20261121-1")
	require.NoError(t, err)
	load := func(state, metrics []byte) (*session.Replay, *session.State) {
		t.Helper()
		r := &session.Replay{}
		require.NoError(t, r.Load(state, metrics))
		require.Empty(t, r.Findings())
		require.EqualValues(t, 1, r.Version())
		require.Equal(t, id, r.ID())
		st, at, err := r.State(id)
		require.NoError(t, err)
		require.Equal(t, session.Mark{Seq: 13, Iterations: 13}, at)
		return r, st
	}
	r, st := load(state, metrics)
	require.Equal(t, session.Mark{Seq: 13}, r.Metrics(), "metrics.json covers the State, whatever its own number")
	require.Equal(t, 4, st.NumIterations())
	require.Equal(t, session.Progress{Done: 4, Total: 6}, st.Progress())

	t.Run("metrics are ahead", func(t *testing.T) {
		behind := sealed(strings.Replace(string(state), `"iterations":4`, `"iterations":3`, 1))
		_, st := load(behind, metrics)
		require.Equal(t, 3, st.NumIterations())
		none := sealed(strings.Replace(string(state), `"iterations":4,`, ``, 1))
		_, st = load(none, metrics)
		require.Zero(t, st.NumIterations())
	})
	t.Run("unknown members stay", func(t *testing.T) {
		file := sealed(strings.Replace(string(state), `,"tasks":`, `,"sprint":{"no":[1e2]},"tasks":`, 1))
		_, st := load(file, metrics)
		require.Equal(t, []session.Field{{Key: "sprint", Value: json.RawMessage(`{"no":[1e2]}`)}}, st.Header().Extra)
	})
	t.Run("a crash between the two files", func(t *testing.T) {
		e := st.Edit()
		e.AppendIteration(session.Iteration{Task: "x", OutputTokens: 1})
		more, err := e.State()
		require.NoError(t, err)
		r := &session.Replay{}
		require.NoError(t, r.Load(state, session.EncodeMetrics(more, session.Mark{Epoch: 1, Seq: 15, Iterations: 15})))
		require.EqualValues(t, 1, r.Version())
		require.EqualValues(t, 13, r.At().Seq)
		require.EqualValues(t, 15, r.Metrics().Seq, "the records between are due")
		// The other way round, as an earlier build left it.
		require.NoError(t, r.Load(session.EncodeState(st, session.Mark{Epoch: 1, Seq: 14}), metrics))
		require.EqualValues(t, 14, r.At().Seq)
		require.Equal(t, session.Mark{Epoch: 1, Seq: 14}, r.Metrics(), "a snapshot counts by its epoch")
	})
	t.Run("the version further on", func(t *testing.T) {
		sorted := strings.Replace(strings.Replace(string(state), `"schemaVersion":1,`, ``, 1), `,"checksum"`, `,"schemaVersion":1,"checksum"`, 1)
		load(sealed(sorted), metrics)
	})
	t.Run("edited outside", func(t *testing.T) {
		edited := strings.Replace(string(state), `"status":"paused"`, `"status":"active"`, 1)
		st, _, err := session.Decode([]byte(edited), metrics)
		require.ErrorIs(t, err, session.ErrChecksum)
		require.Equal(t, session.StatusActive, st.Status())
		_, _, err = session.Decode(state, []byte(strings.Replace(string(metrics), `"attempt":1`, `"attempt":2`, 1)))
		require.ErrorIs(t, err, session.ErrChecksum)
	})
	t.Run("damaged", func(t *testing.T) {
		for name, files := range map[string][2]string{
			"cut state":       {string(state[:500]), string(metrics)},
			"cut metrics":     {string(state), string(metrics[:500])},
			"too few":         {string(sealed(strings.Replace(string(state), `"iterations":4`, `"iterations":5`, 1))), string(metrics)},
			"no list":         {string(state), string(sealed(strings.Replace(string(metrics), `"iterations":[`, `"iterations":7,"x":[`, 1)))},
			"another session": {string(state), string(sealed(strings.Replace(string(metrics), "tally-", "other-", 1)))},
			"deep":            {strings.Replace(string(state), `"tasks":`, `"x":`+strings.Repeat("[", 100_000), 1), string(metrics)},
		} {
			st, _, err := session.Decode([]byte(files[0]), []byte(files[1]))
			require.ErrorIs(t, err, session.ErrCorrupt, name)
			require.Nil(t, st, name)
		}
	})
	t.Run("no record is of it", func(t *testing.T) {
		_, err := session.DecodeRecord(line(3, []byte(`"schemaVersion":1,"ops":[]`)))
		require.ErrorIs(t, err, session.ErrCorrupt)
		require.ErrorContains(t, err, "record 3: damaged: version 1 had no journal")
	})
}

// A plan as deeply nested as a State can have it goes through a migration.
func TestMigrationOfADeepPlan(t *testing.T) {
	t.Parallel()
	e := fresh(t).Edit()
	for i := range session.MaxTaskDepth {
		task := session.Task{ID: fmt.Sprint(i), Kind: session.KindTask, State: session.TaskPending}
		if i > 0 {
			task.Parent = fmt.Sprint(i - 1)
		}
		if i < session.MaxTaskDepth-1 {
			task.Children = []string{fmt.Sprint(i + 1)}
		}
		e.Put(task)
	}
	e.SetRoots([]string{"0"})
	st, err := e.State()
	require.NoError(t, err)
	state, metrics := encode(st)
	older := func(file []byte) []byte {
		return sealed(strings.Replace(string(file), `"schemaVersion":2`, `"schemaVersion":1`, 1))
	}
	got, _, err := session.Decode(older(state), older(metrics))
	require.NoError(t, err)
	require.Equal(t, session.MaxTaskDepth, got.NumTasks())
}

func FuzzMigrate(f *testing.F) {
	state, metrics := version1(f)
	f.Add(state, metrics)
	f.Fuzz(func(t *testing.T, state, metrics []byte) {
		st, _, err := session.Decode(sealed(string(state)), sealed(string(metrics)))
		if err != nil {
			known(t, err)
		}
		if st != nil {
			again(t, st)
		}
	})
}
