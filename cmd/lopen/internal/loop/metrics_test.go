package loop

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/scratch"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

func TestReadMetrics(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 14, 23, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		content string
		want    metrics
		warning string
	}{
		"all": {content: `{"inputTokens":1,"outputTokens":2,"cachedTokens":3,"contextWindow":4,"premiumRequests":0.5,"costUSD":1.25,"model":"m","turns":6,"agentSession":"s"}`,
			want: metrics{InputTokens: 1, OutputTokens: 2, CachedTokens: 3, ContextWindow: 4, PremiumRequests: 0.5, CostUSD: 1.25, Model: "m", Turns: 6, AgentSession: "s"}},
		"unknown fields": {content: `{"inputTokens":1,"mood":"good"}`, want: metrics{InputTokens: 1}},
		"cut":            {content: `{"inputTokens":`, warning: "ends before the value"},
		"negative":       {content: `{"costUSD":-1}`, warning: "below 0"},
		"absurd":         {content: `{"inputTokens":9223372036854775807}`, warning: "beyond"},
		"long name":      {content: `{"model":"` + strings.Repeat("x", 2000) + `"}`, warning: "1024"},
		"wrong type":     {content: `{"turns":"many"}`, warning: "turns"},
		"late retry":     {content: `{"retryAt":"9999-01-01T00:00:00Z"}`, warning: "more than a year ahead"},
		"late reset":     {content: `{"rateLimit":{"resetsAt":"9999-12-31T23:59:59-23:00"}}`, warning: "more than a year ahead"}, // in UTC, no year that is kept
		"early reset":    {content: `{"rateLimit":{"resetsAt":"0000-01-01T00:00:00Z"}}`, warning: "before the year 1"},
		"too large":      {content: `{"model":"` + strings.Repeat("x", maxMetrics) + `"}`, warning: "more than the"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := given1(t)
			require.NoError(t, os.WriteFile(r.given.metrics, []byte(c.content), 0o600))
			m, err := r.readMetrics(now)
			if c.warning != "" {
				require.ErrorContains(t, err, c.warning)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, c.want, m)
		})
	}
	r := given1(t)
	m, err := r.readMetrics(now)
	require.NoError(t, err, "none was written")
	require.Equal(t, metrics{}, m)
	require.NoError(t, os.Mkdir(r.given.metrics, 0o700))
	_, err = r.readMetrics(now)
	require.ErrorContains(t, err, "no regular file but a folder")
}

// given1 returns a runner whose command was given a file for its metrics.
func given1(t *testing.T) *runner {
	t.Helper()
	dir, err := scratch.New()
	require.NoError(t, err)
	t.Cleanup(dir.Close)
	return &runner{dir: dir, given: given{metrics: dir.Name("metrics", ".json")}}
}

func TestMetricsOnTheHeader(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 14, 23, 0, 0, 0, time.UTC)
	h := session.Header{TurnCount: 2, TotalCostUSD: 1, Models: []string{"a"}}
	m := metrics{Turns: 3, CostUSD: 0.5, Model: "b", AgentSession: "s", RateLimit: &rateLimit{Limit: 10, Remaining: 1}}
	m.apply(&h, now)
	m.apply(&h, now)
	require.Equal(t, 8, h.TurnCount)
	require.InDelta(t, 2.0, h.TotalCostUSD, 1e-9)
	require.Equal(t, []string{"a", "b"}, h.Models)
	require.Equal(t, "s", h.AgentSession)
	require.Equal(t, &session.RateLimit{Limit: 10, Remaining: 1, SeenAt: now}, h.RateLimit)
}
