package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// The newest 100 limits and windows are shown.
func TestLimitsAndWindows(t *testing.T) {
	t.Parallel()
	e := state(t, session.StatusPaused, session.ExitFailed, "a failed").Edit()
	for n := range 120 {
		it := session.Iteration{ContextWindow: 200_000, ContextUsed: 100_000 + int64(n%100)*1000, RateLimit: &session.RateLimit{Limit: 500, Remaining: int64(n), SeenAt: evening}}
		if n == 119 {
			it.RateLimit = &session.RateLimit{ResetsAt: evening.Add(time.Hour), SeenAt: evening}
		}
		e.AppendIteration(it)
		e.AppendIteration(session.Iteration{})
	}
	st, err := e.State()
	require.NoError(t, err)
	rep := read(time.Time{}).Report(st, false, evening)
	require.Len(t, rep.Limits, 100)
	require.Equal(t, 41, rep.Limits[0].Iteration)
	require.Equal(t, "13 Feb 22:00, start 41: 20 of 500 left", rep.Limits[0].Text(time.UTC))
	require.Equal(t, "13 Feb 22:00, start 239: a limit, until 13 Feb 23:00", rep.Limits[99].Text(time.UTC))
	require.Len(t, rep.Windows, 100)
	require.Equal(t, Window{Iteration: 239, Size: 200_000, Used: 119_000}, rep.Windows[99])
	require.Equal(t, "119.0k of 200.0k tokens in start 239, 199.0k at most", ContextText(rep.Windows))
	require.Equal(t, "an unknown part of 5 tokens in start 1", ContextText([]Window{{1, 5, 0}}))
	require.Equal(t, "7 tokens in start 1", ContextText([]Window{{1, 0, 7}}))
}
