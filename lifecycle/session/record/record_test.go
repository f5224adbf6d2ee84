package record_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

func TestAttemptSize(t *testing.T) {
	t.Parallel()
	size, err := (&record.Attempt{Task: "a", Tail: strings.Repeat("x", 1000)}).Size()
	require.NoError(t, err)
	require.Greater(t, size, 1000)
	for _, a := range []record.Attempt{
		{CostUSD: math.Inf(1)}, {CostUSD: math.NaN()}, {EndedAt: time.Unix(0, 0).AddDate(9000, 0, 0)},
		{Failure: strings.Repeat("x", record.MaxAttempt)},
	} {
		_, err := a.Size()
		require.Error(t, err)
	}
}

func TestSaves(t *testing.T) {
	t.Parallel()
	r := record.Record{}
	require.Zero(t, r.Saves())
	r.Triggers[0], r.Triggers[3] = 2, 5
	require.EqualValues(t, 7, r.Saves())
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, e := range []record.Event{"", record.EventCreated, record.EventRewindEnd} {
		require.True(t, e.Known(), e)
	}
	require.False(t, record.Event("exploded").Known())
	require.False(t, record.ChangesState(record.OpNotSetBack))
	require.True(t, record.ChangesState(record.OpTaskCreated))
}
