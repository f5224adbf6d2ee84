package loop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLimitWaits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 14, 23, 0, 0, 0, time.UTC)
	var l limits
	var waits []time.Duration
	for range 8 {
		until, ok := l.plan(now, nil, 0)
		require.True(t, ok)
		waits = append(waits, until.Sub(now))
	}
	m := time.Minute
	require.Equal(t, []time.Duration{m, 2 * m, 4 * m, 8 * m, 16 * m, 30 * m, 30 * m, 30 * m}, waits)
}

func TestLimitBudgetIsForAllWaitsTogether(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 14, 23, 0, 0, 0, time.UTC)
	var l limits
	_, ok := l.plan(now, nil, 3*time.Minute)
	require.True(t, ok, "1 minute of 3")
	_, ok = l.plan(now, nil, 3*time.Minute)
	require.True(t, ok, "3 minutes of 3")
	until, ok := l.plan(now, nil, 3*time.Minute)
	require.False(t, ok)
	require.Equal(t, now.Add(4*time.Minute), until, "it says until when it would have waited")
}

func TestLimitFollowsRetryAt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 14, 23, 0, 0, 0, time.UTC)
	at := now.Add(time.Hour)
	var l limits
	until, ok := l.plan(now, &at, 6*time.Hour)
	require.True(t, ok)
	require.Equal(t, at, until)
	past := now.Add(-time.Hour)
	until, ok = l.plan(now, &past, 6*time.Hour)
	require.True(t, ok)
	require.Equal(t, now, until, "a time that is over is no wait")
	late := now.Add(7 * time.Hour)
	_, ok = l.plan(now, &late, 6*time.Hour)
	require.False(t, ok, "waiting that cannot help is not begun")
	never := time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	_, ok = l.plan(now, &never, 6*time.Hour)
	require.False(t, ok, "nor is one so long that, with what was waited, no Duration holds it")
}
