package wire_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer/envelope"
)

const listed = 4 << 10 // what a listing reads of each state.json

func TestSummary(t *testing.T) {
	t.Parallel()
	st := full(t)
	state, _ := encode(st)
	h := st.Header()
	want := wire.Summary{
		ID: st.ID(), Module: "auth", Seq: 42, Status: h.Status, Phase: h.Phase, Step: h.Step, Component: "a", ActiveTask: "c", ExitReason: h.ExitReason,
		CreatedAt: h.CreatedAt, UpdatedAt: h.UpdatedAt, CompletedAt: h.CompletedAt, Progress: session.Progress{Total: 2, Failed: 1},
		Iterations: 40, InputTokens: 780, OutputTokens: 80, CachedTokens: 120, TotalCostUSD: h.TotalCostUSD, Lineage: h.Lineage,
	}
	got, err := wire.DecodeSummary(state)
	require.NoError(t, err)
	require.Equal(t, want, got)

	// Cut anywhere, it is whole or refused.
	enough := strings.Index(string(state), `"settings":`) + len(`"settings":`)
	for n := range state {
		got, err := wire.DecodeSummary(state[:n])
		if n < enough {
			require.ErrorIs(t, err, envelope.ErrCorrupt, "cut at %d", n)
			require.Zero(t, got)
		} else {
			require.NoError(t, err, "cut at %d", n)
			require.Equal(t, want, got)
		}
	}
	small, _ := encode(fresh(t))
	got, err = wire.DecodeSummary(small)
	require.NoError(t, err)
	require.Equal(t, session.StatusActive, got.Status)
}

// TestTheLongestSummary has to fit into what a listing reads, or a session with
// long names would be listed as damaged.
func TestTheLongestSummary(t *testing.T) {
	t.Parallel()
	id, err := session.NewID(strings.Repeat("m", 64), at, math.MaxUint64)
	require.NoError(t, err)
	st, err := session.New(id, time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC))
	require.NoError(t, err)
	e := st.Edit()
	h := e.Header()
	h.Status, h.Phase, h.Step, h.ExitReason = session.StatusComplete, session.PhaseRequirementGathering, session.StepDetermineDependencies, session.ExitMaxIterations
	h.CompletedAt = h.CreatedAt
	h.Component, h.ActiveTask = strings.Repeat("é", 1<<10/2), strings.Repeat("é", 1<<10/2)
	h.TotalCostUSD = -math.MaxFloat64
	e.AppendIteration(session.Iteration{InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64, CachedTokens: math.MaxInt64})
	st, err = e.State()
	require.NoError(t, err)
	state := wire.EncodeState(st, session.Mark{Seq: math.MaxUint64})
	got, err := wire.DecodeSummary(state[:listed-1<<10]) // room for the counts, which are small here
	require.NoError(t, err)
	require.Equal(t, h.ActiveTask, got.ActiveTask)
	require.EqualValues(t, uint64(math.MaxUint64), got.Seq)
}

func TestSummaryRefuses(t *testing.T) {
	t.Parallel()
	state, _ := encode(full(t))
	for _, c := range []struct {
		old, now string
		is       error
	}{
		{`"schemaVersion":2`, `"schemaVersion":3`, envelope.ErrFutureVersion},
		{`"schemaVersion":2,`, ``, envelope.ErrCorrupt},
		{`"id":"auth-20260214-1"`, `"id":"auth"`, envelope.ErrCorrupt},
		{`"id":"auth-20260214-1",`, ``, envelope.ErrCorrupt},
		{`"status":"paused"`, `"status":"x"`, envelope.ErrCorrupt},
		{`"step":"iterate-through-tasks"`, `"step":"x"`, envelope.ErrCorrupt},
		{`"seq":42`, `"seq":42,"seq":42`, envelope.ErrCorrupt},
		{`"seq":42`, `"seq":-42`, envelope.ErrCorrupt},
		{`"activeTask":"c"`, "\"activeTask\":\"\xff\"", envelope.ErrCorrupt},
	} {
		file := strings.Replace(string(state), c.old, c.now, 1)
		_, err := wire.DecodeSummary([]byte(file))
		require.ErrorIs(t, err, c.is, c.now)
	}
}
